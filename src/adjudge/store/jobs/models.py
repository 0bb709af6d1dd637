"""What goes into and comes out of the operations on jobs.

What is made for every job is a named tuple: a frozen dataclass of twenty fields takes several times as long to make.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from adjudge.domain.errors import RefusalReason
from adjudge.domain.ids import trace_id_from
from adjudge.domain.retry import RetryPolicy
from adjudge.domain.states import JobStatus
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Row

T = TypeVar("T")


_NOTHING: Mapping[str, Any] = {}


class NewJob(NamedTuple):
    """A job to be created."""

    id: str
    kind: str
    dedupe_key: str | None = None
    """At most one job of a kind ever exists for a key; asking again returns the one that is there."""
    submission_id: str | None = None
    rejudge_batch_id: str | None = None
    chain_run_id: str | None = None
    node_id: str | None = None
    origin_job_id: str | None = None
    """The job that this one replays."""
    max_attempts: int | None = None
    """By default, as many as the retry policy allows."""
    priority: int = 2
    """The band: 0 is served first."""
    timeout_ms: int | None = None
    delay_ms: int = 0
    payload: Mapping[str, Any] = _NOTHING
    """Identifiers only: what is large or private is looked up by them."""
    actor: str | None = None
    trace_id: str | None = None
    """What it is done for; by default a trace of its own."""

    @property
    def effective_trace_id(self) -> str:
        """The trace that its row gets."""
        return self.trace_id or trace_id_from(self.id)


class Fence(NamedTuple):
    """The proof that a write comes from the claim that still holds the job; a tuple, because maps are keyed by it."""

    job_id: str
    attempt_id: int
    lease_owner: str


class Job(NamedTuple):
    """A job as an operation left it."""

    id: str
    kind: str
    status: JobStatus
    prior_status: JobStatus
    attempt_id: int
    max_attempts: int
    priority: int
    timeout_ms: int | None
    submission_id: str | None
    rejudge_batch_id: str | None
    chain_run_id: str | None
    node_id: str | None
    origin_job_id: str | None
    payload: Mapping[str, Any]
    actor: str | None
    reason: str | None
    error_code: str | None
    trace_id: str | None
    lease_until: int | None
    started_at: int | None
    finished_at: int | None
    preloaded: object = None
    """What its handler read for it in the transaction that claimed it."""


class JobResult(NamedTuple):
    """How a claim ends its attempt. ``outcome`` is what the job's owner writes in the same transaction."""

    fence: Fence
    status: JobStatus = JobStatus.SUCCEEDED
    """What the job becomes: succeeded, failed, or pending to be tried again, which fails without an attempt left."""
    result: Mapping[str, Any] | None = None
    typed_result: object = None
    reason: str | None = "finished"
    error_code: str | None = None
    error: str | None = None
    dead_letter: bool = True
    """Whether a failed job becomes a dead letter: not where another party failed, whose owner can try again."""
    delay_ms: int = 0
    """Until it is tried again."""
    refund: bool = False
    """Whether the attempt costs the job none: its worker hands it back in good order, or never started it."""
    job: Job | None = None
    """The job as its claim returned it; read from its row where the caller does not have it."""


@dataclass(frozen=True, slots=True)
class PoisonJob:
    """A job to be ended without ever having been claimed: nobody could run it."""

    job_id: str
    error_code: str
    error: str


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """A write that changed nothing, and why."""

    job_id: str
    reason: RefusalReason


@dataclass(frozen=True, slots=True)
class DispatchedMessage:
    """A message in the stream, and which taking of the outbox row it answers."""

    job_id: str
    entry_id: str
    dispatch_seq: int


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that waits for a worker to read its message."""

    job_id: str
    priority: int
    entry_id: str | None
    queued_at: int

    @property
    def scan_position(self) -> tuple[int, str]:
        """Where it stands among all that are queued."""
        return self.queued_at, self.job_id


@dataclass(frozen=True, slots=True)
class BatchResult(Generic[T]):
    """What became of a batch: every job asked for is in exactly one of the two."""

    done: tuple[T, ...]
    refused: tuple[RefusedWrite, ...] = ()


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A job that has just ended, on its way to its owner."""

    job: Job
    typed_result: object = None


class FollowUpSlots(Protocol):
    """What a worker that ends jobs can go on with."""

    worker: str
    lease_ms: int

    def reserve(self, ended: Job, job: NewJob) -> bool:
        """Whether the worker runs ``job``, should it be created because ``ended`` ends; it then keeps a slot for it."""
        ...


@dataclass(frozen=True)
class FinishReport(BatchResult[Job]):
    """What became of results, and which follow-up jobs the finishing worker has claimed."""

    claimed: Mapping[str, tuple[Job, ...]] = field(default_factory=dict)
    """Follow-up jobs, by the job that each follows from."""
    counted: frozenset[str] = frozenset()
    """Finished jobs whose typed result was written; what another belongs to had moved on without it."""


class FinishedAttempts(NamedTuple):
    """What a listener that finishes attempts itself has written."""

    rows: Sequence[Sequence[Any]]
    """Of the step ``finished_job``."""
    counted: frozenset[str]
    claimed: Mapping[str, tuple[Job, ...]]


@runtime_checkable
class FollowUpListener(Protocol):
    """A listener whose jobs have follow-ups: it finishes attempts by a script of its own, which may claim those."""

    async def finish_attempts(
        self, tx: Tx, results: Sequence[tuple[JobResult, Job, str | None]], slots: FollowUpSlots | None
    ) -> FinishedAttempts:
        """Finish attempts, given with their jobs and the ids of their dead letters."""
        ...


@runtime_checkable
class ReplayListener(Protocol):
    """An owner of jobs that sees itself to what dead letters speak of being done again."""

    async def replay(self, tx: Tx, jobs: Sequence[NewJob], *, reason: str) -> Mapping[str, str | None]:
        """By the ids of the jobs that would do it: those that do, or none where they are still to be made."""
        ...


class JobListener(Protocol):
    """What a kind of job belongs to: told of its fate in the transaction that decides it."""

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """These jobs were claimed."""
        ...

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """These jobs went back to waiting."""
        ...

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """These jobs ended and will never change again."""
        ...


MILLISECOND = 1_000
"""In microseconds, the unit of every moment in the database."""


_USUAL_ATTEMPTS = RetryPolicy().max_attempts
_STATUS = {str(status): status for status in JobStatus}
_DECODE = json.JSONDecoder().raw_decode
_AT_STATUS, _AT_PRIOR, _AT_PAYLOAD = (Job._fields.index(name) for name in ("status", "prior_status", "payload"))


def job_from_row(row: Iterable[Any]) -> Job:
    """The job as an operation left it.

    By position, because looking twenty names up in every row was a third of what a batch cost on SQLite; statements
    return the columns in the order of ``Job``'s fields, which a test holds.
    """
    values = list(row)
    values[_AT_STATUS] = _STATUS[values[_AT_STATUS]]
    values[_AT_PRIOR] = _STATUS[values[_AT_PRIOR]]
    values[_AT_PAYLOAD] = _DECODE(values[_AT_PAYLOAD])[0]
    return Job(*values)


def insert_row(job: NewJob, usual_attempts: int = _USUAL_ATTEMPTS) -> tuple[object, ...]:
    """What ``jobs.insert`` is given."""
    return (
        job.id,
        job.kind,
        job.dedupe_key,
        job.submission_id,
        job.rejudge_batch_id,
        job.chain_run_id,
        job.node_id,
        job.origin_job_id,
        usual_attempts if job.max_attempts is None else job.max_attempts,
        job.priority,
        job.timeout_ms,
        job.delay_ms * MILLISECOND,
        json.dumps(job.payload),
        job.actor,
        job.effective_trace_id,
    )


def finish_row(finish: JobResult, letter_id: str | None = None) -> tuple[object, ...]:
    """What ``jobs.finish`` is given; ``letter_id`` is that of the dead letter, should there be one."""
    fence = finish.fence
    result = None if finish.result is None else json.dumps(finish.result)
    return (
        fence.job_id,
        fence.attempt_id,
        fence.lease_owner,
        str(finish.status),
        result,
        finish.reason,
        finish.error_code,
        finish.error,
        finish.delay_ms * MILLISECOND,
        int(finish.refund),
        letter_id,
    )


def finished_job(job: Job, finish: JobResult, row: Sequence[Any]) -> Job:
    """The job as ``jobs.finish`` left it, from the columns that the step returned."""
    status, error_code, finished_at, max_attempts, *_ = row[3:]
    return job._replace(
        status=_STATUS[status],
        prior_status=JobStatus.RUNNING,
        max_attempts=max_attempts,
        actor=finish.fence.lease_owner,
        reason=finish.reason,
        error_code=error_code,
        lease_until=None,
        finished_at=finished_at,
    )


def replay_job(letter: Row, job_id: str, actor: str) -> NewJob:
    """The job that does again what a dead letter speaks of."""
    return NewJob(
        id=job_id,
        kind=letter["kind"],
        submission_id=letter["submission_id"],
        rejudge_batch_id=letter["rejudge_batch_id"],
        chain_run_id=letter["chain_run_id"],
        node_id=letter["node_id"],
        origin_job_id=letter["id"],
        priority=letter["priority"],
        timeout_ms=letter["timeout_ms"],
        payload=json.loads(letter["payload"]),
        actor=actor,
        trace_id=letter["trace_id"],
    )
