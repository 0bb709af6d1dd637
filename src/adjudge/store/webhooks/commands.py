"""Webhooks: who wants to be told, and what became of telling them.

A delivery and its job are created in the transaction of what they tell of: an event is never told that did not happen,
and never forgotten. A secret is kept as it is, because a signature needs it; it is shown once, when it is made.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.domain.errors import Conflict, NotFound
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.states import JobStatus
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Row
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import FinishedJob, Job, NewJob
from adjudge.store.webhooks import statements as sql

JOB_KIND_WEBHOOK: Final = "webhook"
"""The kind of job that delivers."""
JUDGED: Final = "submission.judged"
CANCELED: Final = "submission.canceled"
REJUDGED: Final = "submission.rejudged"
PING: Final = "ping"
EVENTS: Final = (JUDGED, CANCELED, REJUDGED)
"""What can be asked for; a ping comes when it is asked for."""
ATTEMPTS: Final = 6
_NEVER: Final = 2**62
PRIORITY: Final = 3
_SECRET_PREFIX: Final = "whsec_"  # noqa: S105  # a mark to know one by


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """Somebody's wish to be told. Its secret is not among what is read."""

    id: str
    user_id: str
    url: str
    events: tuple[str, ...]
    is_active: bool
    created_at: int
    updated_at: int
    failures: int = 0
    """How many deliveries failed in a row."""
    disabled_at: int | None = None
    """When it was switched off because it failed too often; nothing where its owner did it."""
    disabled_reason: str | None = None


@dataclass(frozen=True, slots=True)
class WebhookDeliveryRow:
    """One telling."""

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
    """What a worker needs to deliver."""

    delivery_id: str
    url: str
    secret: str
    event: str
    body: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class WebhookDelivered:
    """What the other side answered: the outcome that a ``Finish`` of a delivery carries."""

    response_status: int


@dataclass(frozen=True, slots=True)
class WebhookFailed:
    """The other side did not take it, and will not be asked again: what the last attempt failed of."""

    error: str
    response_status: int | None = None


@dataclass(frozen=True, slots=True)
class WebhookSkipped:
    """Nobody wants it any more: its webhook was switched off."""


def new_secret() -> str:
    """A secret for signatures."""
    return _SECRET_PREFIX + secrets.token_urlsafe(32)


async def insert(tx: Tx, *, webhook_id: str, user_id: str, url: str, secret: str, events: Sequence[str]) -> None:
    """Remember a webhook."""
    await tx.execute(sql.INSERT, id=webhook_id, user_id=user_id, url=url, secret=secret, events=json.dumps([*events]))


async def list_by_user(tx: Tx, user_id: str) -> list[WebhookRow]:
    """A user's webhooks."""
    return [_webhook(row) for row in await tx.fetch(sql.OF_USER, user_id=user_id)]


async def find(tx: Tx, webhook_id: str, user_id: str) -> WebhookRow:
    """One of a user's webhooks; another's does not exist."""
    row = await fetch_one(tx, sql.FIND, id=webhook_id, user_id=user_id)
    if row is None:
        raise NotFound("webhook", webhook_id)
    return _webhook(row)


async def update(tx: Tx, webhook: WebhookRow, *, begins_anew: bool = False) -> None:
    """Write what may be changed of a webhook; one that begins anew has failed at nothing yet."""
    await tx.execute(
        sql.UPDATE,
        id=webhook.id,
        user_id=webhook.user_id,
        url=webhook.url,
        events=json.dumps([*webhook.events]),
        is_active=webhook.is_active,
        begins_anew=begins_anew,
    )


async def remove(tx: Tx, webhook_id: str, user_id: str) -> None:
    """Forget a webhook and its deliveries; those that wait are not made."""
    if not await tx.execute(sql.DELETE, id=webhook_id, user_id=user_id):
        raise NotFound("webhook", webhook_id)


async def list_deliveries(tx: Tx, webhook_id: str, *, before: str, limit: int) -> list[WebhookDeliveryRow]:
    """The log of deliveries, the newest first."""
    rows = await tx.fetch(sql.PAGE_DELIVERIES, webhook_id=webhook_id, before=before, limit=limit)
    return [WebhookDeliveryRow(*row) for row in rows]


async def enqueue_deliveries(
    tx: Tx, submission_ids: Sequence[str], event: str | None = None, *, new_id: IdFactory = new_id
) -> None:
    """Tell of submissions to those of their authors who asked for it; by default, whether judged or canceled."""
    if not submission_ids:
        return
    wanted = []
    for row in await tx.fetch(sql.SELECT_SUBSCRIBERS, [(item,) for item in dict.fromkeys(submission_ids)]):
        happened = event or (CANCELED if row["status"] == "canceled" else JUDGED)
        if happened in json.loads(row["events"]):
            wanted.append((row["webhook_id"], happened, _data(row)))
    await _deliver(tx, wanted, new_id)


async def ping(tx: Tx, webhook: WebhookRow, *, new_id: IdFactory = new_id) -> str:
    """Send a sign of life; return the delivery's id."""
    (delivery_id,) = await _deliver(tx, [(webhook.id, PING, {"webhook_id": webhook.id})], new_id)
    return delivery_id


async def redeliver(tx: Tx, webhook: WebhookRow, delivery_id: str, *, new_id: IdFactory = new_id) -> str:
    """Make a delivery that has ended anew, with the same id and body; return its new job."""
    row = await fetch_one(tx, sql.DELIVERY_STATE, id=delivery_id, webhook_id=webhook.id)
    if row is None:
        raise NotFound("delivery", delivery_id)
    job = _job(new_id(), delivery_id)
    await JobCommands({}).enqueue(tx, [job])
    if not await tx.execute(sql.REDELIVER, id=delivery_id, webhook_id=webhook.id, job_id=job.id):
        raise Conflict(f"Delivery {delivery_id!r} is still in progress.")
    return job.id


async def find_delivery_request(tx: Tx, delivery_id: str) -> DeliveryRequest | None:
    """What is to be delivered; nothing where its webhook is gone."""
    row = await fetch_one(tx, sql.SELECT_REQUEST, id=delivery_id)
    if row is None:
        return None
    return DeliveryRequest(row["id"], row["url"], row["secret"], row["event"], row["body"], bool(row["is_active"]))


async def delete_old(tx: Tx, *, older_than_ms: int, limit: int = 500) -> int:
    """Remove deliveries that ended long ago; return how many."""
    return await tx.execute(sql.DELETE_OLD, older_than_us=older_than_ms * 1_000, limit=limit)


async def _deliver(tx: Tx, wanted: Sequence[tuple[str, str, dict[str, Any]]], new_id: IdFactory) -> list[str]:
    made = [(new_id(), new_id(), webhook_id, event, data) for webhook_id, event, data in wanted]
    if not made:
        return []
    jobs = [_job(job_id, delivery_id) for delivery_id, job_id, *_ in made]
    await JobCommands({}).enqueue(tx, jobs)  # creating jobs asks nothing of their owners
    rows = [
        (delivery_id, job_id, webhook_id, event, json.dumps({"id": delivery_id, "event": event, "data": data}))
        for delivery_id, job_id, webhook_id, event, data in made
    ]
    await tx.execute(sql.INSERT_DELIVERIES, rows)
    return [delivery_id for delivery_id, *_ in made]


def _job(job_id: str, delivery_id: str) -> NewJob:
    return NewJob(
        id=job_id,
        kind=JOB_KIND_WEBHOOK,
        max_attempts=ATTEMPTS,
        priority=PRIORITY,
        timeout_ms=60_000,
        payload={"delivery_id": delivery_id},
    )


def _data(row: Row) -> dict[str, Any]:
    names = ("submission_id", "problem_id", "status", "verdict", "score", "time_ms", "mem_kb", "version")
    return {name: row[name] for name in names}


def _webhook(row: Row) -> WebhookRow:
    return WebhookRow(
        row["id"],
        row["user_id"],
        row["url"],
        tuple(json.loads(row["events"])),
        bool(row["is_active"]),
        row["created_at"],
        row["updated_at"],
        row["failures"],
        row["disabled_at"],
        row["disabled_reason"],
    )


class SubmissionWebhookListener:
    """Tells authors when judging has ended; stands after the owner that writes the verdict."""

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """Nothing to tell."""

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """Nothing to tell."""

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """Tell of what decided a submission; a rejudge tells when it is applied."""
        jobs = [item.job for item in ended if item.job.rejudge_batch_id is None]
        await enqueue_deliveries(tx, [job.submission_id for job in jobs if job.submission_id is not None])


class WebhookDeliveryListener:
    """Keeps deliveries in step with their jobs, and switches off webhooks that fail again and again."""

    def __init__(self, *, disable_after: int = 0) -> None:
        self._max_failures = disable_after or _NEVER

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """A delivery under way is still pending."""

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """A delivery that will be tried again is still pending; its job says when, and why."""

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """Note how deliveries ended."""
        await tx.execute(sql.FINISH, [_end_row(item) for item in ended])
        tally = [row for item in ended if (row := _tally_row(item)) is not None]
        if tally:
            await tx.execute(sql.UPDATE_FAILURES, tally, limit=self._max_failures)


def _end_row(item: FinishedJob) -> tuple[object, ...]:
    states = {JobStatus.SUCCEEDED: "delivered", JobStatus.CANCELED: "canceled"}
    state = "canceled" if isinstance(item.typed_result, WebhookSkipped) else states.get(item.job.status, "failed")
    status = (
        item.typed_result.response_status if isinstance(item.typed_result, WebhookDelivered | WebhookFailed) else None
    )
    error = item.typed_result.error if isinstance(item.typed_result, WebhookFailed) else None
    return (_delivery_of(item), item.job.id, state, status, error)


def _tally_row(item: FinishedJob) -> tuple[object, ...] | None:
    """What it says of the other side; nothing where it ended for a reason of ours."""
    if isinstance(item.typed_result, WebhookFailed):
        return (_delivery_of(item), item.typed_result.error)
    return (_delivery_of(item), None) if isinstance(item.typed_result, WebhookDelivered) else None


def _delivery_of(item: FinishedJob) -> str:
    return str(item.job.payload["delivery_id"])  # not its job's id: a repetition is another job
