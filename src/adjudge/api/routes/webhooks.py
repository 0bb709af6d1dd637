"""Webhooks of the user."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routing import api_router
from adjudge.api.schema.webhooks import WebhookCreate, WebhookUpdate
from adjudge.domain.permissions import Permission
from adjudge.schema.webhooks import DeliveryPage, DeliveryQueued, DeliveryRead, WebhookCreated, WebhookList, WebhookRead
from adjudge.services.viewer import Viewer
from adjudge.services.webhooks import WebhookService

Owner = Annotated[Viewer, require_permission(Permission.WEBHOOK_OWN)]


def router(webhooks: WebhookService) -> APIRouter:
    routes = api_router("webhooks", "/webhooks")

    @routes.post(
        "",
        status_code=201,
        summary="Create a webhook",
        description="The response contains the signing secret. It is shown only once.",
    )
    async def add(body: WebhookCreate, viewer: Owner) -> WebhookCreated:
        made, secret = await webhooks.create_webhook(viewer, body.url, body.events)
        return WebhookCreated(webhook=WebhookRead.of(made), secret=secret)

    @routes.get("", summary="List your webhooks")
    async def page(viewer: Owner) -> WebhookList:
        return WebhookList(items=[WebhookRead.of(item) for item in await webhooks.list_webhooks(viewer)])

    @routes.get("/{webhook_id}", summary="Get a webhook")
    async def read(webhook_id: str, viewer: Owner) -> WebhookRead:
        return WebhookRead.of(await webhooks.get_webhook(viewer, webhook_id))

    @routes.patch("/{webhook_id}", summary="Update, enable or disable a webhook")
    async def edit(webhook_id: str, body: WebhookUpdate, viewer: Owner) -> WebhookRead:
        changed = await webhooks.update_webhook(
            viewer, webhook_id, url=body.url, events=body.events, is_active=body.is_active
        )
        return WebhookRead.of(changed)

    @routes.delete("/{webhook_id}", status_code=204, summary="Delete a webhook", response_class=Response)
    async def remove(webhook_id: str, viewer: Owner) -> Response:
        await webhooks.delete_webhook(viewer, webhook_id)
        return Response(status_code=204)

    @routes.post(
        "/{webhook_id}:ping",
        status_code=202,
        summary="Send a ping",
        description="Fails with 409 if the webhook is disabled.",
    )
    async def ping(webhook_id: str, viewer: Owner) -> DeliveryQueued:
        return DeliveryQueued(delivery_id=await webhooks.send_ping(viewer, webhook_id))

    @routes.get("/{webhook_id}/deliveries", summary="List deliveries, newest first")
    async def deliveries(
        webhook_id: str,
        viewer: Owner,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> DeliveryPage:
        place = decode_cursor(cursor, [str])
        before = str(place[0]) if place else None
        rows = await webhooks.list_deliveries(viewer, webhook_id, before=before, limit=limit + 1)
        more = encode_cursor([rows[limit - 1].id]) if len(rows) > limit else None
        return DeliveryPage(items=[DeliveryRead.of(row) for row in rows[:limit]], next=more)

    @routes.post("/{webhook_id}/deliveries/{delivery_id}:repeat", status_code=202, include_in_schema=False)
    @routes.post(
        "/{webhook_id}/deliveries/{delivery_id}:redeliver",
        status_code=202,
        summary="Redeliver a finished delivery",
        description=(
            "Sends the same ID and payload again, with all retries. Fails with 409 if the webhook is disabled."
        ),
    )
    async def redeliver(webhook_id: str, delivery_id: str, viewer: Owner) -> DeliveryQueued:
        await webhooks.redeliver(viewer, webhook_id, delivery_id)
        return DeliveryQueued(delivery_id=delivery_id)

    return routes
