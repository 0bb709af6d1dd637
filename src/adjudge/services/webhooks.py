"""Webhooks of a user and their deliveries."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final
from urllib.parse import urlsplit

from adjudge.cache.token_buckets import TokenBuckets
from adjudge.domain.errors import Conflict, InvalidInput, RateLimited
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.permissions import Permission
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.judging.queries import MAX_ID
from adjudge.store.webhooks import commands as webhook_commands
from adjudge.store.webhooks.models import WebhookDeliveryRow, WebhookRow

_PINGS_PER_SEC: Final = 0.1
_PING_BURST: Final = 10


def validate_url(url: str) -> str:
    """Reject an invalid URL. Its address is checked at each call, because names can change their address."""
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        raise InvalidInput("url: invalid URL; expected https://HOST/PATH.", field="url") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not has_port:
        raise InvalidInput("url: expected https://HOST/PATH.", field="url")
    if parts.username or parts.password or parts.fragment or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput("url: user info, fragments and non-ASCII characters are not allowed.", field="url")
    try:
        ipaddress.ip_address(parts.hostname)
    except ValueError:
        if "." not in parts.hostname.rstrip(".") and parts.hostname != "localhost":
            raise InvalidInput(f"url: {parts.hostname!r} is not a fully qualified host name.", field="url") from None
    return url


def offered_events(viewer: Viewer) -> tuple[str, ...]:
    """The events that a webhook of the viewer can subscribe to."""
    if viewer.can(Permission.OPS_READ):
        return (*webhook_commands.EVENTS, *webhook_commands.OPERATIONAL_EVENTS)
    return webhook_commands.EVENTS


def _check_events(viewer: Viewer, events: Sequence[str]) -> None:
    for event in events:
        if event not in offered_events(viewer):
            raise InvalidInput(f"events: {event} is only for operators (ops:read).", field="events")


@dataclass(frozen=True, slots=True)
class WebhookService:
    """The viewer's webhooks and their deliveries."""

    database: Database
    max_webhooks: int
    buckets: TokenBuckets
    new_id: IdFactory = new_id

    async def create_webhook(self, viewer: Viewer, url: str, events: Sequence[str]) -> tuple[WebhookRow, str]:
        """Create a webhook; its secret is returned only here."""
        _check_events(viewer, events)
        webhook_id, secret, most = self.new_id(), webhook_commands.new_secret(), self.max_webhooks
        checked = validate_url(url)

        async def operation(tx: Tx) -> WebhookRow:
            if len(await webhook_commands.list_by_user(tx, viewer.id)) >= most:
                raise Conflict(f"Webhook limit reached ({most}): delete one first.")
            await webhook_commands.insert(
                tx,
                webhook_id=webhook_id,
                user_id=viewer.id,
                url=checked,
                secret=secret,
                events=list(dict.fromkeys(events)),
            )
            return await webhook_commands.find(tx, webhook_id, viewer.id)

        return await self.database.transact(operation), secret

    async def list_webhooks(self, viewer: Viewer) -> list[WebhookRow]:
        return await self.database.read(lambda tx: webhook_commands.list_by_user(tx, viewer.id))

    async def get_webhook(self, viewer: Viewer, webhook_id: str) -> WebhookRow:
        return await self.database.read(lambda tx: webhook_commands.find(tx, webhook_id, viewer.id))

    async def update_webhook(
        self,
        viewer: Viewer,
        webhook_id: str,
        *,
        url: str | None,
        events: Sequence[str] | None,
        is_active: bool | None,
    ) -> WebhookRow:
        """Change one of the viewer's webhooks; omitted values stay."""
        _check_events(viewer, events or ())

        async def operation(tx: Tx) -> WebhookRow:
            found = await webhook_commands.find(tx, webhook_id, viewer.id)
            changed = replace(
                found,
                url=found.url if url is None else validate_url(url),
                events=found.events if events is None else tuple(dict.fromkeys(events)),
                is_active=found.is_active if is_active is None else is_active,
            )
            await webhook_commands.update(tx, changed, reset_failures=changed.is_active and not found.is_active)
            return await webhook_commands.find(tx, webhook_id, viewer.id)

        return await self.database.transact(operation)

    async def delete_webhook(self, viewer: Viewer, webhook_id: str) -> None:
        await self.database.transact(lambda tx: webhook_commands.remove(tx, webhook_id, viewer.id))

    async def send_ping(self, viewer: Viewer, webhook_id: str) -> str:
        """Send a test delivery and return its id. The rate is limited, because the receiver did not ask for it."""
        await self._limit_pings(viewer)

        async def operation(tx: Tx) -> str:
            return await webhook_commands.ping(tx, await _find_active(tx, viewer, webhook_id), new_id=self.new_id)

        return await self.database.transact(operation)

    async def redeliver(self, viewer: Viewer, webhook_id: str, delivery_id: str) -> None:
        """Repeat a finished delivery."""
        await self._limit_pings(viewer)

        async def operation(tx: Tx) -> None:
            await webhook_commands.redeliver(
                tx, await _find_active(tx, viewer, webhook_id), delivery_id, new_id=self.new_id
            )

        await self.database.transact(operation)

    async def _limit_pings(self, viewer: Viewer) -> None:
        wait_sec = await self.buckets.take(f"ping:{viewer.id}", rate_per_sec=_PINGS_PER_SEC, burst=_PING_BURST)
        if wait_sec > 0:
            raise RateLimited("Too many pings and redeliveries: retry later.", retry_after_sec=ceil(wait_sec))

    async def list_deliveries(
        self, viewer: Viewer, webhook_id: str, *, before: str | None, limit: int
    ) -> list[WebhookDeliveryRow]:
        """The deliveries of one of the viewer's webhooks, newest first."""

        async def look(tx: Tx) -> list[WebhookDeliveryRow]:
            found = await webhook_commands.find(tx, webhook_id, viewer.id)
            return await webhook_commands.list_deliveries(tx, found.id, before=before or MAX_ID, limit=limit)

        return await self.database.read(look)


async def _find_active(tx: Tx, viewer: Viewer, webhook_id: str) -> WebhookRow:
    """One of the viewer's webhooks, if it is enabled."""
    found = await webhook_commands.find(tx, webhook_id, viewer.id)
    if not found.is_active:
        raise Conflict("The webhook is disabled: enable it first.")
    return found
