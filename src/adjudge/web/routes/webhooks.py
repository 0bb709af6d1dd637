"""Pages: the own webhooks and their deliveries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import decode_cursor, encode_cursor
from adjudge.domain.errors import AdjudgeError, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.services.viewer import Viewer
from adjudge.services.webhooks import WebhookService, offered_events
from adjudge.store.webhooks.commands import EVENTS, OPERATIONAL_EVENTS
from adjudge.store.webhooks.models import WebhookDeliveryRow, WebhookRow
from adjudge.web import forms
from adjudge.web.render import PageRenderer, no_store, page_router, redirect

Owner = Annotated[Viewer, require_permission(Permission.WEBHOOK_OWN)]
ROOT: Final = "/me/webhooks"
_PAGE: Final = 20
_URL_MOST: Final = 2_000
_POLL_MIN_MS: Final = 2_000
_POLL_MAX_MS: Final = 300_000


def router(pages: PageRenderer, webhooks: WebhookService) -> APIRouter:
    routes = page_router(pages)
    _add_list_routes(routes, pages, webhooks)
    _add_detail_routes(routes, pages, webhooks)
    _add_action_routes(routes, webhooks)
    return routes


async def _wanted(request: Request) -> tuple[str, list[str]]:
    """URL and events of the form."""
    url, chosen = await forms.text(request, "url", limit=_URL_MOST), await forms.checked_values(request, "event")
    return url.strip(), [event for event in chosen if event in (*EVENTS, *OPERATIONAL_EVENTS)]


def _check_events(events: list[str]) -> None:
    if not events:
        raise InvalidInput("events: select at least one.", field="events")


def _add_list_routes(routes: APIRouter, pages: PageRenderer, webhooks: WebhookService) -> None:
    async def page(request: Request, viewer: Viewer, **shown: Any) -> Response:
        listed = await webhooks.list_webhooks(viewer)
        shown = {"made": None, "secret": "", "error": None, "url": "", "wanted": list(EVENTS[:1]), **shown}
        status = shown["error"].http_status if shown["error"] else 200
        return await pages.render(
            request, "webhooks.html", status=status, webhooks=listed, events=offered_events(viewer), **shown
        )

    @routes.get(ROOT)
    async def every(request: Request, viewer: Owner) -> Response:
        return await page(request, viewer)

    @routes.post(ROOT)
    async def add(request: Request, viewer: Owner) -> Response:
        url, events = await _wanted(request)
        try:
            _check_events(events)
            made, secret = await webhooks.create_webhook(viewer, url, events)
        except AdjudgeError as error:
            return await page(request, viewer, error=error, url=url, wanted=events)
        return no_store(await page(request, viewer, made=made, secret=secret))


def _add_detail_routes(routes: APIRouter, pages: PageRenderer, webhooks: WebhookService) -> None:
    async def page(
        request: Request, viewer: Viewer, webhook: WebhookRow, cursor: str | None = None, **shown: Any
    ) -> Response:
        shown = {"error": None, "url": webhook.url, "wanted": webhook.events, **shown}
        status = shown["error"].http_status if shown["error"] else 200
        log = await _deliveries_page(webhooks, viewer, webhook, cursor)
        return await pages.render(
            request, "webhook.html", status=status, webhook=webhook, events=offered_events(viewer), **log, **shown
        )

    @routes.get(ROOT + "/{webhook_id}")
    async def one(request: Request, viewer: Owner, webhook_id: str, cursor: str | None = None) -> Response:
        return await page(request, viewer, await webhooks.get_webhook(viewer, webhook_id), cursor)

    @routes.get(ROOT + "/{webhook_id}/state")
    async def state(request: Request, viewer: Owner, webhook_id: str, cursor: str | None = None) -> Response:
        """The live region of the page of a webhook."""
        webhook = await webhooks.get_webhook(viewer, webhook_id)
        log = await _deliveries_page(webhooks, viewer, webhook, cursor)
        return await pages.render(request, "webhook_state.html", webhook=webhook, **log)

    @routes.post(ROOT + "/{webhook_id}/edit")
    async def edit(request: Request, viewer: Owner, webhook_id: str) -> Response:
        url, events = await _wanted(request)
        try:
            _check_events(events)
            await webhooks.update_webhook(viewer, webhook_id, url=url, events=events, is_active=None)
        except NotFound:
            raise
        except AdjudgeError as error:
            webhook = await webhooks.get_webhook(viewer, webhook_id)
            return await page(request, viewer, webhook, error=error, url=url, wanted=events)
        return redirect(f"{ROOT}/{webhook_id}", done="saved")


async def _deliveries_page(
    webhooks: WebhookService, viewer: Viewer, webhook: WebhookRow, cursor: str | None
) -> dict[str, Any]:
    """One page of deliveries, newest first."""
    place = decode_cursor(cursor, [str])
    before = str(place[0]) if place else None
    rows = await webhooks.list_deliveries(viewer, webhook.id, before=before, limit=_PAGE + 1)
    more = f"cursor={encode_cursor([rows[_PAGE - 1].id])}" if len(rows) > _PAGE else ""
    return {
        "deliveries": rows[:_PAGE],
        "more": more,
        "cursor": cursor or "",
        "poll_ms": _poll_interval_ms(rows[:_PAGE]),
    }


def _poll_interval_ms(deliveries: Sequence[WebhookDeliveryRow]) -> int | None:
    """Poll interval until the next attempt is due; None if no delivery is pending."""
    now_us = time.time_ns() // 1_000
    waits_us = [(item.next_attempt_at or now_us) - now_us for item in deliveries if item.finished_at is None]
    return min(max(min(waits_us) // 1_000, _POLL_MIN_MS), _POLL_MAX_MS) if waits_us else None


def _add_action_routes(routes: APIRouter, webhooks: WebhookService) -> None:
    @routes.post(ROOT + "/{webhook_id}/switch")
    async def switch(request: Request, viewer: Owner, webhook_id: str) -> Response:
        is_active = await forms.text(request, "to") == "on"
        await webhooks.update_webhook(viewer, webhook_id, url=None, events=None, is_active=is_active)
        return redirect(f"{ROOT}/{webhook_id}", done="enabled" if is_active else "disabled")

    @routes.post(ROOT + "/{webhook_id}/ping")
    async def ping(viewer: Owner, webhook_id: str) -> Response:
        await webhooks.send_ping(viewer, webhook_id)
        return redirect(f"{ROOT}/{webhook_id}", done="pinged")

    @routes.post(ROOT + "/{webhook_id}/remove")
    async def remove(viewer: Owner, webhook_id: str) -> Response:
        await webhooks.delete_webhook(viewer, webhook_id)
        return redirect(ROOT, done="deleted")

    @routes.post(ROOT + "/{webhook_id}/deliveries/{delivery_id}/repeat")
    async def repeat(viewer: Owner, webhook_id: str, delivery_id: str) -> Response:
        await webhooks.redeliver(viewer, webhook_id, delivery_id)
        return redirect(f"{ROOT}/{webhook_id}", done="redelivered")
