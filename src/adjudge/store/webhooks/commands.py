"""Webhooks and their deliveries.

A delivery and its job are created in the transaction of the event, so that no event is lost and none is reported that
did not happen. The secret is stored unhashed, because signatures need it; it is shown once, when it is created.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from adjudge.domain.errors import Conflict, NotFound
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.states import JobStatus
from adjudge.store.chains.triggers import CONTEST_EVENTS
from adjudge.store.engine.driver import Tx, fetch_one, or_not_found
from adjudge.store.engine.rows import column_values
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import FinishedJob, Job, NewJob
from adjudge.store.ops import operational_events
from adjudge.store.ops.operational_events import OperationalEventRow
from adjudge.store.webhooks import statements as sql
from adjudge.store.webhooks.models import (
    ContestSubscription,
    DeliveryRequest,
    WebhookDelivered,
    WebhookDeliveryRow,
    WebhookFailed,
    WebhookRow,
    WebhookSkipped,
)

JOB_KIND_WEBHOOK: Final = "webhook"
"""The kind of job that delivers an event."""
JUDGED: Final = "submission.judged"
CANCELED: Final = "submission.canceled"
REJUDGED: Final = "submission.rejudged"
ANSWERED: Final = "clarification.answered"
ANNOUNCEMENT: Final = "contest.announcement"
PING: Final = "ping"
EVENTS: Final = (JUDGED, CANCELED, REJUDGED, ANSWERED, ANNOUNCEMENT, *CONTEST_EVENTS.values())
"""The events that a webhook can subscribe to; a ping is sent on request."""
OPERATIONAL_EVENTS: Final = operational_events.EVENTS
"""The events that webhooks of operators can subscribe to besides."""
ATTEMPTS: Final = 6
_NEVER: Final = 2**62
PRIORITY: Final = 3
_SECRET_PREFIX: Final = "whsec_"  # noqa: S105  # a mark to know one by


def new_secret() -> str:
    return _SECRET_PREFIX + secrets.token_urlsafe(32)


async def insert(tx: Tx, *, webhook_id: str, user_id: str, url: str, secret: str, events: Sequence[str]) -> None:
    await tx.execute(sql.INSERT, id=webhook_id, user_id=user_id, url=url, secret=secret, events=json.dumps([*events]))


async def list_by_user(tx: Tx, user_id: str) -> list[WebhookRow]:
    return await tx.fetch(sql.OF_USER, user_id=user_id)


async def find(tx: Tx, webhook_id: str, user_id: str) -> WebhookRow:
    """Read one of a user's webhooks; the webhook of another user is NotFound."""
    return or_not_found(await fetch_one(tx, sql.FIND, id=webhook_id, user_id=user_id), "webhook", webhook_id)


async def update(tx: Tx, webhook: WebhookRow, *, reset_failures: bool = False) -> None:
    """Update a webhook; ``reset_failures`` also clears its failure count and the reason for which it was disabled."""
    await tx.execute(sql.UPDATE, reset_failures=reset_failures, **column_values(webhook))


async def remove(tx: Tx, webhook_id: str, user_id: str) -> None:
    """Delete a webhook with its deliveries; pending ones are not made."""
    if not await tx.execute(sql.DELETE, id=webhook_id, user_id=user_id):
        raise NotFound("webhook", webhook_id)


async def list_deliveries(tx: Tx, webhook_id: str, *, before: str, limit: int) -> list[WebhookDeliveryRow]:
    """List deliveries, newest first; ``before`` is the last id of the previous page."""
    return await tx.fetch(sql.PAGE_DELIVERIES, webhook_id=webhook_id, before=before, limit=limit)


async def enqueue_deliveries(
    tx: Tx,
    submission_ids: Sequence[str],
    event: str | None = None,
    *,
    causes: Mapping[str, Job] | None = None,
    new_id: IdFactory = new_id,
) -> None:
    """Create deliveries for the subscribed webhooks of the authors; ``event`` follows from the status by default.

    ``causes`` are the judge runs of the submissions, whose traces the deliveries continue.
    """
    if not submission_ids:
        return
    deliveries, judge_runs = [], list[Job | None]()
    for item in await tx.fetch(sql.SELECT_SUBSCRIBERS, [(item,) for item in dict.fromkeys(submission_ids)]):
        name = event or (CANCELED if item.submission.status == "canceled" else JUDGED)
        if name in item.events:
            deliveries.append((item.webhook_id, name, asdict(item.submission)))
            judge_runs.append((causes or {}).get(item.submission.submission_id))
    await _deliver(tx, deliveries, new_id, judge_runs)


async def list_contest_subscribers(tx: Tx, contest_id: str) -> list[ContestSubscription]:
    """The active webhooks of everybody who takes part in a contest, once for each participant of a user."""
    return await tx.fetch(sql.SELECT_CONTEST_SUBSCRIBERS, contest_id=contest_id)


async def enqueue_transition(
    tx: Tx, contest_id: str, event: str, data: dict[str, Any], *, new_id: IdFactory = new_id
) -> None:
    """Create deliveries of a transition of a contest for everybody who takes part in it."""
    subscribers = await list_contest_subscribers(tx, contest_id)
    webhook_ids = dict.fromkeys(item.webhook_id for item in subscribers if event in item.events)
    await enqueue(tx, [(webhook_id, event, data) for webhook_id in webhook_ids], new_id=new_id)


async def enqueue_operational(
    tx: Tx, events: Sequence[OperationalEventRow], *, roles: Sequence[str], new_id: IdFactory = new_id
) -> None:
    """Create deliveries of operational events for the webhooks of users with one of ``roles``."""
    subscribers = await tx.fetch(sql.SELECT_OPERATOR_WEBHOOKS, [(role,) for role in sorted(roles)])
    deliveries = [
        (webhook.id, event.kind, {"subject": event.subject, "detail": event.detail})
        for webhook in subscribers
        for event in events
        if event.kind in webhook.events
    ]
    await _deliver(tx, deliveries, new_id)


async def enqueue(tx: Tx, deliveries: Sequence[tuple[str, str, dict[str, Any]]], *, new_id: IdFactory = new_id) -> None:
    """Create deliveries: webhook, event and data of each."""
    await _deliver(tx, deliveries, new_id)


async def ping(tx: Tx, webhook: WebhookRow, *, new_id: IdFactory = new_id) -> str:
    """Create a ping delivery; return its id."""
    (delivery_id,) = await _deliver(tx, [(webhook.id, PING, {"webhook_id": webhook.id})], new_id)
    return delivery_id


async def redeliver(tx: Tx, webhook: WebhookRow, delivery_id: str, *, new_id: IdFactory = new_id) -> str:
    """Repeat a finished delivery with the same id and body; return the id of its new job."""
    if await fetch_one(tx, sql.DELIVERY_STATE, id=delivery_id, webhook_id=webhook.id) is None:
        raise NotFound("delivery", delivery_id)
    job = _job(new_id(), delivery_id)
    await JobCommands({}).enqueue(tx, [job])
    if not await tx.execute(sql.REDELIVER, id=delivery_id, webhook_id=webhook.id, job_id=job.id):
        raise Conflict(f"Delivery {delivery_id!r} is still in progress.")
    return job.id


async def find_delivery_request(tx: Tx, delivery_id: str) -> DeliveryRequest | None:
    """Read what is to be delivered; None if the webhook was deleted."""
    return await fetch_one(tx, sql.SELECT_REQUEST, id=delivery_id)


async def delete_old(tx: Tx, *, older_than_ms: int, limit: int = 500) -> int:
    """Delete deliveries that finished before the retention period; return their number."""
    return await tx.execute(sql.DELETE_OLD, older_than_us=older_than_ms * 1_000, limit=limit)


async def _deliver(
    tx: Tx,
    wanted: Sequence[tuple[str, str, dict[str, Any]]],
    new_id: IdFactory,
    causes: Sequence[Job | None] | None = None,
) -> list[str]:
    made = [(new_id(), new_id(), webhook_id, event, data) for webhook_id, event, data in wanted]
    if not made:
        return []
    jobs = [
        _job(job_id, delivery_id, cause)
        for (delivery_id, job_id, *_), cause in zip(made, causes or [None] * len(made), strict=True)
    ]
    await JobCommands({}).enqueue(tx, jobs)  # creating jobs calls no listener
    rows = [
        (delivery_id, job_id, webhook_id, event, json.dumps({"id": delivery_id, "event": event, "data": data}))
        for delivery_id, job_id, webhook_id, event, data in made
    ]
    await tx.execute(sql.INSERT_DELIVERIES, rows)
    return [delivery_id for delivery_id, *_ in made]


def _job(job_id: str, delivery_id: str, cause: Job | None = None) -> NewJob:
    return NewJob(
        id=job_id,
        kind=JOB_KIND_WEBHOOK,
        max_attempts=ATTEMPTS,
        priority=PRIORITY,
        timeout_ms=60_000,
        payload={"delivery_id": delivery_id} | ({} if cause is None else {"cause_job_id": cause.id}),
        trace_id=None if cause is None else cause.trace_id,
    )


class SubmissionWebhookListener:
    """Creates deliveries when judging ends; called after the listener that writes the verdict."""

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """No event."""

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """No event."""

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """Report submissions that got their verdict; a rejudge is reported when it is applied."""
        jobs = [item.job for item in ended if item.job.rejudge_batch_id is None]
        causes = {job.submission_id: job for job in jobs if job.submission_id is not None}
        await enqueue_deliveries(tx, list(causes), causes=causes)


class WebhookDeliveryListener:
    """Updates deliveries with their jobs, and disables webhooks that fail repeatedly."""

    def __init__(self, *, disable_after: int = 0) -> None:
        self._max_failures = disable_after or _NEVER

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """A running delivery is still pending."""

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """A delivery that is retried is still pending; its job has the time and the error."""

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        await tx.execute(sql.FINISH, [_end_row(item) for item in ended])
        failures = [row for item in ended if (row := _failure_row(item)) is not None]
        if failures:
            await tx.execute(sql.UPDATE_FAILURES, failures, limit=self._max_failures)


def _end_row(item: FinishedJob) -> tuple[object, ...]:
    states = {JobStatus.SUCCEEDED: "delivered", JobStatus.CANCELED: "canceled"}
    state = "canceled" if isinstance(item.typed_result, WebhookSkipped) else states.get(item.job.status, "failed")
    status = (
        item.typed_result.response_status if isinstance(item.typed_result, WebhookDelivered | WebhookFailed) else None
    )
    error = item.typed_result.error if isinstance(item.typed_result, WebhookFailed) else None
    return (_delivery_of(item), item.job.id, state, status, error)


def _failure_row(item: FinishedJob) -> tuple[object, ...] | None:
    """Whether the receiver failed; None if the delivery ended for another reason."""
    if isinstance(item.typed_result, WebhookFailed):
        return (_delivery_of(item), item.typed_result.error)
    return (_delivery_of(item), None) if isinstance(item.typed_result, WebhookDelivered) else None


def _delivery_of(item: FinishedJob) -> str:
    return str(item.job.payload["delivery_id"])  # a redelivery is another job of the same delivery
