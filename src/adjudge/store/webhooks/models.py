"""Dataclasses of webhooks and their deliveries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """A webhook, without its secret."""

    id: str
    user_id: str
    url: str
    events: tuple[str, ...]
    is_active: bool
    created_at: int
    updated_at: int
    failures: int = 0
    """The number of consecutive failed deliveries."""
    disabled_at: int | None = None
    """When it was disabled because of failures; None if its owner disabled it."""
    disabled_reason: str | None = None


@dataclass(frozen=True, slots=True)
class WebhookDeliveryRow:
    """One delivery of an event."""

    id: str
    webhook_id: str
    job_id: str
    event: str
    body: str
    state: str
    response_status: int | None
    attempts: int
    error: str | None
    next_attempt_at: int | None
    created_at: int
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class DeliveryRequest:
    """What a worker needs to deliver an event."""

    delivery_id: str
    url: str
    secret: str
    event: str
    body: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class WebhookDelivered:
    """Result of a successful delivery."""

    response_status: int


@dataclass(frozen=True, slots=True)
class WebhookFailed:
    """Result of a delivery that failed finally, with the error of the last attempt."""

    error: str
    response_status: int | None = None


@dataclass(frozen=True, slots=True)
class WebhookSkipped:
    """Result of a delivery that was not made because its webhook is disabled."""


@dataclass(frozen=True, slots=True)
class SubmissionEvent:
    """The state of a submission as webhooks report it."""

    submission_id: str
    problem_id: str
    status: str
    verdict: str | None
    score: float | None
    time_ms: int | None
    mem_kb: int | None
    version: int


@dataclass(frozen=True, slots=True)
class ContestSubscription:
    """An active webhook of a user who takes part in a contest."""

    webhook_id: str
    user_id: str
    participant_id: str
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subscription:
    """An active webhook of the author of a submission."""

    webhook_id: str
    events: tuple[str, ...]
    submission: SubmissionEvent
