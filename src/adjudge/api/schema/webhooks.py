"""Webhooks on the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from adjudge.api.schema.base import ApiModel
from adjudge.domain.timestamps import format_timestamp
from adjudge.store.webhooks import models as webhook_models

EventName = Literal["submission.judged", "submission.canceled", "submission.rejudged"]
_URL = "https://example.org/hooks/adjudge"


class WebhookCreate(ApiModel):
    """A new webhook."""

    url: str = Field(max_length=2_000, examples=[_URL])
    events: list[EventName] = Field(min_length=1, max_length=10)


class WebhookUpdate(ApiModel):
    """Changes to a webhook; omitted fields stay."""

    url: str | None = Field(None, max_length=2_000, examples=[_URL])
    events: list[EventName] | None = Field(None, min_length=1, max_length=10)
    is_active: bool | None = None


class WebhookRead(ApiModel):
    """A webhook, without its secret."""

    id: str
    url: str
    events: list[str]
    is_active: bool
    created_at: str
    updated_at: str
    failures: int = Field(description="Number of consecutive failed deliveries.")
    disabled_at: str | None = Field(description="When it was disabled because of repeated failures.")
    disabled_reason: str | None = Field(description="Error of the last failed delivery.")

    @classmethod
    def of(cls, found: webhook_models.WebhookRow) -> WebhookRead:
        """From the store's value."""
        return cls(
            id=found.id,
            url=found.url,
            events=list(found.events),
            is_active=found.is_active,
            created_at=format_timestamp(found.created_at),
            updated_at=format_timestamp(found.updated_at),
            failures=found.failures,
            disabled_at=format_timestamp(found.disabled_at),
            disabled_reason=found.disabled_reason,
        )


class WebhookCreated(ApiModel):
    """A new webhook with its signing secret, shown once."""

    webhook: WebhookRead
    secret: str


class WebhookList(ApiModel):
    """Your webhooks."""

    items: list[WebhookRead]


class DeliveryRead(ApiModel):
    """A webhook delivery."""

    id: str
    event: str
    state: str = Field(examples=["delivered"], description="pending, delivered, failed or canceled.")
    response_status: int | None
    attempts: int
    error: str | None = Field(description="Error of the last attempt.")
    next_attempt_at: str | None
    body: str = Field(description="Payload as sent and signed.")
    job_id: str
    created_at: str
    finished_at: str | None

    @classmethod
    def of(cls, found: webhook_models.WebhookDeliveryRow) -> DeliveryRead:
        """From the store's value."""
        return cls(
            id=found.id,
            event=found.event,
            state=found.state,
            response_status=found.response_status,
            attempts=found.attempts,
            error=found.error,
            next_attempt_at=format_timestamp(found.next_attempt_at),
            body=found.body,
            job_id=found.job_id,
            created_at=format_timestamp(found.created_at),
            finished_at=format_timestamp(found.finished_at),
        )


class DeliveryPage(ApiModel):
    """A page of deliveries, newest first."""

    items: list[DeliveryRead]
    next: str | None


class DeliveryQueued(ApiModel):
    """A queued delivery; see the delivery log for the result."""

    delivery_id: str
