"""Parameters and results of the operations on jobs.

Classes with an object per job are named tuples: creating a frozen dataclass of twenty fields takes several times as
long.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from adjudge.domain.errors import RefusalReason
from adjudge.domain.ids import trace_id_from
from adjudge.domain.retry import RetryPolicy
from adjudge.domain.states import JobStatus
from adjudge.store.engine.driver import Tx

T = TypeVar("T")


_NOTHING: Mapping[str, Any] = {}

HELD_AT: Final = 7_258_118_400_000_000
"""A job that is due from this time on (the year 2200) is held: it waits until it is released, however long.

Whatever sends a job back keeps the hold; only ``jobs.unhold`` ends it.
"""
HELD_DELAY_MS: Final = 200 * 365 * 86_400 * 1_000
"""The delay of a job that is held from the start."""


class NewJob(NamedTuple):
    """A job to be created."""

    id: str
    kind: str
    dedupe_key: str | None = None
    """At most one job of a kind exists for a key; a second request returns the existing one."""
    submission_id: str | None = None
    rejudge_batch_id: str | None = None
    chain_run_id: str | None = None
    node_id: str | None = None
    origin_job_id: str | None = None
    """The job that this one replays."""
    max_attempts: int | None = None
    """Default: the maximum of the retry policy."""
    priority: int = 2
    """The priority band: 0 is served first."""
    timeout_ms: int | None = None
    delay_ms: int = 0
    payload: Mapping[str, Any] = _NOTHING
    """Identifiers only: large or private data is read by them."""
    actor: str | None = None
    trace_id: str | None = None
    """The trace that it belongs to; default: a new one."""

    @property
    def effective_trace_id(self) -> str:
        return self.trace_id or trace_id_from(self.id)


class Fence(NamedTuple):
    """The fence that a write of a worker must match; a tuple, because it is a dictionary key."""

    job_id: str
    attempt_id: int
    lease_owner: str


class Job(NamedTuple):
    """A job after an operation."""

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
    created_at: int


class JobResult(NamedTuple):
    """The result of an attempt. ``typed_result`` is written by the job listener in the same transaction."""

    fence: Fence
    status: JobStatus = JobStatus.SUCCEEDED
    """The new status: succeeded, failed, or pending for a retry, which becomes failed without an attempt left."""
    result: Mapping[str, Any] | None = None
    typed_result: object = None
    reason: str | None = "finished"
    error_code: str | None = None
    error: str | None = None
    dead_letter: bool = True
    """Whether a failed job gets a dead letter: not if another party failed and the owner of the job can repeat it."""
    delay_ms: int = 0
    """Delay before the retry."""
    refund: bool = False
    """Whether the attempt is refunded: its worker released the job in an orderly way, or never started it."""
    job: Job | None = None
    """The job as its claim returned it; read from its row if the caller does not have it."""


@dataclass(frozen=True, slots=True)
class PoisonJob:
    """A job that fails without a claim, because no worker can run it."""

    job_id: str
    error_code: str
    error: str


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """A write that changed no row, and why."""

    job_id: str
    reason: RefusalReason


@dataclass(frozen=True, slots=True)
class DispatchedMessage:
    """A published message, and the read of the outbox row that it belongs to."""

    job_id: str
    entry_id: str
    dispatch_seq: int


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job whose message no worker has read yet."""

    job_id: str
    priority: int
    entry_id: str | None
    queued_at: int

    @property
    def scan_position(self) -> tuple[int, str]:
        return self.queued_at, self.job_id


class DuplicateJob(NamedTuple):
    """A requested job whose deduplication key exists."""

    new_id: str
    existing_id: str


class JobState(NamedTuple):
    """The columns of a job that decide whether a write is accepted."""

    id: str
    kind: str
    status: JobStatus
    attempt_id: int
    max_attempts: int
    available_at: int
    lease_owner: str | None
    lease_until: int | None
    trace_id: str | None
    now: int


class ExpiredJob(NamedTuple):
    """A running job whose lease has expired."""

    id: str
    kind: str


class ExpiredAttempt(NamedTuple):
    """A running attempt whose lease has expired, locked."""

    id: str
    attempt_id: int
    max_attempts: int
    lease_owner: str
    heartbeat_at: int | None


class RefundedJob(NamedTuple):
    """A job with refunded attempts."""

    job_id: str
    refunds: int


@dataclass(frozen=True, slots=True)
class OpenDeadLetter:
    """An open dead letter, with what is needed to replay its job."""

    letter_id: str
    job_id: str
    kind: str
    submission_id: str | None
    rejudge_batch_id: str | None
    chain_run_id: str | None
    node_id: str | None
    priority: int
    timeout_ms: int | None
    payload: Mapping[str, Any]
    trace_id: str | None


@dataclass(frozen=True, slots=True)
class BatchResult(Generic[T]):
    """The result of a batch: every requested job is in exactly one of the two."""

    done: tuple[T, ...]
    refused: tuple[RefusedWrite, ...] = ()


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A finished job, as passed to its listener."""

    job: Job
    typed_result: object = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a worker has reserved for follow-up jobs before it sends the results of finished ones."""

    worker: str
    lease_ms: int
    slots: int
    limits: Mapping[str, int] = field(default_factory=dict)
    """How many more jobs may use each limit of the worker."""
    limit_keys: Callable[[NewJob], Sequence[str]] = lambda _: ()
    """The limits that a job uses."""
    is_instant: Callable[[NewJob], bool] = lambda _: False
    """Whether a job finishes almost immediately, so that many of them at once delay no other job."""


@dataclass(frozen=True)
class FinishReport(BatchResult[Job]):
    """What was finished and refused, and which follow-up jobs the worker has claimed."""

    claimed: Mapping[str, tuple[Job, ...]] = field(default_factory=dict)
    """Follow-up jobs, by the finished job."""
    counted: frozenset[str] = frozenset()
    """Finished jobs whose typed result was written; for the others, the target row had changed in the meantime."""


class FinishedAttempts(NamedTuple):
    """The rows that a follow-up listener has written."""

    rows: Sequence[Sequence[Any]]
    """Rows of the step ``finished_job``."""
    counted: frozenset[str]
    claimed: Mapping[str, tuple[Job, ...]]


@runtime_checkable
class FollowUpListener(Protocol):
    """A listener whose jobs have follow-up jobs: it finishes attempts with its own script, which may claim them."""

    async def finish_attempts(
        self, tx: Tx, results: Sequence[tuple[JobResult, Job, str | None]], capacity: Capacity | None
    ) -> FinishedAttempts:
        """Finish attempts, given with their jobs and the ids of their dead letters."""
        ...


@runtime_checkable
class ReplayListener(Protocol):
    """A listener that replays the jobs of dead letters itself."""

    async def replay(self, tx: Tx, jobs: Sequence[NewJob], *, reason: str) -> Mapping[str, str | None]:
        """The jobs that replay, by the ids of the requested jobs; None if they are created later."""
        ...


class JobListener(Protocol):
    """Called for jobs of one kind, in the transaction that changes them."""

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None: ...

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """These jobs were released: they are pending again."""
        ...

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """These jobs are finished and never change again."""
        ...


MILLISECOND = 1_000
"""In microseconds, the unit of every timestamp in the database."""


_DEFAULT_ATTEMPTS = RetryPolicy().max_attempts
_STATUS = {str(status): status for status in JobStatus}


def insert_row(job: NewJob, default_attempts: int = _DEFAULT_ATTEMPTS) -> tuple[object, ...]:
    return (
        job.id,
        job.kind,
        job.dedupe_key,
        job.submission_id,
        job.rejudge_batch_id,
        job.chain_run_id,
        job.node_id,
        job.origin_job_id,
        default_attempts if job.max_attempts is None else job.max_attempts,
        job.priority,
        job.timeout_ms,
        job.delay_ms * MILLISECOND,
        json.dumps(job.payload),
        job.actor,
        job.effective_trace_id,
    )


def finish_row(finish: JobResult, letter_id: str | None = None) -> tuple[object, ...]:
    """The input row of ``jobs.finish``; ``letter_id`` is the id of the dead letter, if one is needed."""
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
    """The job after ``jobs.finish``, from the columns that the step returned."""
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


def replay_job(letter: OpenDeadLetter, job_id: str, actor: str) -> NewJob:
    """The job that replays a dead letter."""
    return NewJob(
        id=job_id,
        kind=letter.kind,
        submission_id=letter.submission_id,
        rejudge_batch_id=letter.rejudge_batch_id,
        chain_run_id=letter.chain_run_id,
        node_id=letter.node_id,
        origin_job_id=letter.job_id,
        priority=letter.priority,
        timeout_ms=letter.timeout_ms,
        payload=letter.payload,
        actor=actor,
        trace_id=letter.trace_id,
    )


def by_kind(jobs: Sequence[Job]) -> dict[str, list[Job]]:
    """Group jobs by kind, in the lock order of the rows that they belong to."""
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        groups[job.kind].append(job)
    return dict(sorted(groups.items(), key=_lock_rank)) if len(groups) > 1 else groups


def _lock_rank(group: tuple[str, list[Job]]) -> tuple[int, str]:
    """The position of a kind in the lock order: chains last, because finishing another kind may resume a node."""
    return (1 if group[0] == "node" else 0, group[0])


def first_by_fence(items: Sequence[JobResult]) -> tuple[dict[Fence, JobResult], list[Fence]]:
    """The first result of each fence, and the fences of further results, which are refused as late."""
    first: dict[Fence, JobResult] = {}
    late = [item.fence for item in items if first.setdefault(item.fence, item) is not item]
    return first, late


def ordered(fences: Iterable[Fence]) -> list[Fence]:
    """Sort by job, so that transactions lock the same rows in the same order."""
    return sorted(fences)
