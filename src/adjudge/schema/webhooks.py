"""Webhooks on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.schema.base import ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class WebhookRead(ResponseModel):
    """A webhook, without its secret."""

    id: str
    url: str
    events: list[str]
    is_active: bool
    created_at: Timestamp
    updated_at: Timestamp
    failures: int = field(metadata=doc("Number of consecutive failed deliveries."))
    disabled_at: Timestamp | None = field(metadata=doc("When it was disabled because of repeated failures."))
    disabled_reason: str | None = field(metadata=doc("Error of the last failed delivery."))


@dataclass(frozen=True, kw_only=True)
class WebhookCreated(ResponseModel):
    """A new webhook with its signing secret, shown once."""

    webhook: WebhookRead
    secret: str


@dataclass(frozen=True, kw_only=True)
class WebhookList(ResponseModel):
    """Your webhooks."""

    items: list[WebhookRead]


@dataclass(frozen=True, kw_only=True)
class DeliveryRead(ResponseModel):
    """A webhook delivery."""

    id: str
    event: str
    state: str = field(metadata=doc("pending, delivered, failed or canceled.", examples=["delivered"]))
    response_status: int | None
    attempts: int
    error: str | None = field(metadata=doc("Error of the last attempt."))
    next_attempt_at: Timestamp | None
    body: str = field(metadata=doc("Payload as sent and signed."))
    job_id: str
    created_at: Timestamp
    finished_at: Timestamp | None


@dataclass(frozen=True, kw_only=True)
class DeliveryPage(ResponseModel):
    """A page of deliveries, newest first."""

    items: list[DeliveryRead]
    next: str | None


@dataclass(frozen=True, kw_only=True)
class DeliveryQueued(ResponseModel):
    """A queued delivery; see the delivery log for the result."""

    delivery_id: str
