"""Webhooks: one's own, and nobody else's."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Final
from urllib.parse import urlsplit

from adjudge.api.parts import Parts
from adjudge.api.viewer import Viewer
from adjudge.domain.errors import Conflict, InvalidInput, RateLimited
from adjudge.store import Tx, webhooks
from adjudge.store.reads import AFTER_ALL
from adjudge.store.webhooks import Delivery, Webhook

_PINGS_PER_SEC: Final = 0.1
_PINGS_AT_ONCE: Final = 10


def check_url(url: str) -> str:
    """Refuse what cannot be called. Whether its address may be called is asked when it is called: names move."""
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


async def add(parts: Parts, viewer: Viewer, url: str, events: Sequence[str]) -> tuple[Webhook, str]:
    """Make a webhook; its secret is returned here and nowhere else."""
    webhook_id, secret, most = parts.mint(), webhooks.new_secret(), parts.settings.webhooks.most
    checked = check_url(url)

    async def operation(tx: Tx) -> Webhook:
        if len(await webhooks.of_user(tx, viewer.id)) >= most:
            raise Conflict(f"Webhook limit reached ({most}): delete one first.")
        await webhooks.add(
            tx,
            webhook_id=webhook_id,
            user_id=viewer.id,
            url=checked,
            secret=secret,
            events=list(dict.fromkeys(events)),
        )
        return await webhooks.find(tx, webhook_id, viewer.id)

    return await parts.database.transact(operation), secret


async def page(parts: Parts, viewer: Viewer) -> list[Webhook]:
    """Your webhooks."""
    return await parts.database.read(lambda tx: webhooks.of_user(tx, viewer.id))


async def read(parts: Parts, viewer: Viewer, webhook_id: str) -> Webhook:
    """One of one's own webhooks."""
    return await parts.database.read(lambda tx: webhooks.find(tx, webhook_id, viewer.id))


async def edit(
    parts: Parts,
    viewer: Viewer,
    webhook_id: str,
    *,
    url: str | None,
    events: Sequence[str] | None,
    is_active: bool | None,
) -> Webhook:
    """Change one of one's own webhooks; what is not given stays."""

    async def operation(tx: Tx) -> Webhook:
        found = await webhooks.find(tx, webhook_id, viewer.id)
        changed = replace(
            found,
            url=found.url if url is None else check_url(url),
            events=found.events if events is None else tuple(dict.fromkeys(events)),
            is_active=found.is_active if is_active is None else is_active,
        )
        await webhooks.edit(tx, changed, begins_anew=changed.is_active and not found.is_active)
        return await webhooks.find(tx, webhook_id, viewer.id)

    return await parts.database.transact(operation)


async def remove(parts: Parts, viewer: Viewer, webhook_id: str) -> None:
    """Forget one of one's own webhooks."""
    await parts.database.transact(lambda tx: webhooks.remove(tx, webhook_id, viewer.id))


async def ping(parts: Parts, viewer: Viewer, webhook_id: str) -> str:
    """Send a sign of life; return the delivery's id. Few at a time: the other side did not ask for them."""
    await _take_turn(parts, viewer)

    async def operation(tx: Tx) -> str:
        return await webhooks.ping(tx, await _find_active(tx, viewer, webhook_id), mint=parts.mint)

    return await parts.database.transact(operation)


async def repeat(parts: Parts, viewer: Viewer, webhook_id: str, delivery_id: str) -> None:
    """Make a delivery that has ended anew."""
    await _take_turn(parts, viewer)

    async def operation(tx: Tx) -> None:
        await webhooks.repeat(tx, await _find_active(tx, viewer, webhook_id), delivery_id, mint=parts.mint)

    await parts.database.transact(operation)


async def _find_active(tx: Tx, viewer: Viewer, webhook_id: str) -> Webhook:
    """One of one's own webhooks, if anything sent to it would arrive."""
    found = await webhooks.find(tx, webhook_id, viewer.id)
    if not found.is_active:
        raise Conflict("The webhook is disabled: enable it first.")
    return found


async def _take_turn(parts: Parts, viewer: Viewer) -> None:
    wait_sec = await parts.buckets.take(f"ping:{viewer.id}", rate_per_sec=_PINGS_PER_SEC, burst=_PINGS_AT_ONCE)
    if wait_sec > 0:
        raise RateLimited("Too many pings and redeliveries: retry later.", retry_after_sec=ceil(wait_sec))


async def deliveries(
    parts: Parts, viewer: Viewer, webhook_id: str, *, before: str | None, at_most: int
) -> list[Delivery]:
    """The log of one of one's own webhooks, the newest first."""

    async def look(tx: Tx) -> list[Delivery]:
        found = await webhooks.find(tx, webhook_id, viewer.id)
        return await webhooks.deliveries(tx, found.id, before=before or AFTER_ALL, at_most=at_most)

    return await parts.database.read(look)
