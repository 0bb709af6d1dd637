"""Webhooks on the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from adjudge.api.moments import moment
from adjudge.api.wire.base import Wire
from adjudge.store import webhooks

EventName = Literal["submission.judged", "submission.canceled", "submission.rejudged"]
_URL = "https://example.org/hooks/adjudge"


class NewWebhook(Wire):
    """A new webhook."""

    url: str = Field(max_length=2_000, examples=[_URL])
    events: list[EventName] = Field(min_length=1, max_length=10)


class WebhookEdit(Wire):
    """Changes to a webhook; omitted fields stay."""

    url: str | None = Field(None, max_length=2_000, examples=[_URL])
    events: list[EventName] | None = Field(None, min_length=1, max_length=10)
    is_active: bool | None = None


class Webhook(Wire):
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
    def of(cls, found: webhooks.Webhook) -> Webhook:
        """From the store's value."""
        return cls(
            id=found.id,
            url=found.url,
            events=list(found.events),
            is_active=found.is_active,
            created_at=moment(found.created_at),
            updated_at=moment(found.updated_at),
            failures=found.failures,
            disabled_at=moment(found.disabled_at),
            disabled_reason=found.disabled_reason,
        )


class WebhookMade(Wire):
    """A new webhook with its signing secret, shown once."""

    webhook: Webhook
    secret: str


class Webhooks(Wire):
    """Your webhooks."""

    items: list[Webhook]


class Delivery(Wire):
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
    def of(cls, found: webhooks.Delivery) -> Delivery:
        """From the store's value."""
        return cls(
            id=found.id,
            event=found.event,
            state=found.state,
            response_status=found.response_status,
            attempts=found.attempts,
            error=found.error,
            next_attempt_at=moment(found.next_attempt_at),
            body=found.body,
            job_id=found.job_id,
            created_at=moment(found.created_at),
            finished_at=moment(found.finished_at),
        )


class DeliveryPage(Wire):
    """A page of deliveries, newest first."""

    items: list[Delivery]
    next: str | None


class PingSent(Wire):
    """A queued delivery; see the delivery log for the result."""

    delivery_id: str
