"""Wire models of the operations routes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from adjudge.schema.base import NextCursor, ResponseModel, Timestamp, doc
from adjudge.schema.submissions import AttemptRead, JobStatusChangeRead


@dataclass(frozen=True, kw_only=True)
class ComponentHealthRead(ResponseModel):
    """Health of one component."""

    name: str = field(metadata=doc(examples=["database"]))
    status: Literal["ok", "away"]
    took_ms: float
    error: str | None


@dataclass(frozen=True, kw_only=True)
class PriorityQueueRead(ResponseModel):
    """Queue of one priority: 0 admins, 1 staff, 2 contestants, 3 services."""

    band: int
    waiting: int = field(metadata=doc("Due jobs, published or not."))
    delayed: int = field(metadata=doc("Jobs that are not due yet: retries, delayed and held jobs."))
    oldest_ms: int = field(metadata=doc("Time since the oldest due job became due."))


@dataclass(frozen=True, kw_only=True)
class QueueStatusRead(ResponseModel):
    """Waiting and running jobs."""

    bands: list[PriorityQueueRead]
    running: int


@dataclass(frozen=True, kw_only=True)
class OutboxFailureRead(ResponseModel):
    """A failed outbox delivery."""

    job_id: str
    attempts: int
    next_attempt_at: Timestamp
    last_error: str


@dataclass(frozen=True, kw_only=True)
class OutboxStatusRead(ResponseModel):
    """Undelivered outbox rows."""

    pending: int
    due: int
    oldest_ms: int
    trouble: list[OutboxFailureRead]


@dataclass(frozen=True, kw_only=True)
class SystemStatusRead(ResponseModel):
    """System status."""

    sources: ClassVar = {"vitals": "components"}
    version: str
    vitals: list[ComponentHealthRead]
    queues: QueueStatusRead
    outbox: OutboxStatusRead
    dead_letters: int


@dataclass(frozen=True, kw_only=True)
class WorkerRead(ResponseModel):
    """An online worker."""

    name: str
    host: str
    pid: int
    version: str
    slots: int
    languages: dict[str, str]
    isolation: str
    health: str
    lease_left_sec: float


@dataclass(frozen=True, kw_only=True)
class ProcessRead(ResponseModel):
    """A live process: an API server, a scheduler or a worker."""

    name: str
    role: Literal["api", "scheduler", "worker"]
    host: str
    pid: int
    version: str
    health: str
    slots: int
    seen_ago_sec: float
    lease_left_sec: float


@dataclass(frozen=True, kw_only=True)
class ProcessList(ResponseModel):
    """Live processes."""

    items: list[ProcessRead]


@dataclass(frozen=True, kw_only=True)
class WorkerList(ResponseModel):
    """Online workers."""

    items: list[WorkerRead]


@dataclass(frozen=True, kw_only=True)
class JudgingPauseRead(ResponseModel):
    """A pause of judging."""

    scope: Literal["all", "language", "problem"]
    subject: str = field(metadata=doc("Language, or slug of the problem; empty for everything."))
    reason: str
    actor: str = field(metadata=doc("User ID of the operator."))
    created_at: Timestamp


@dataclass(frozen=True, kw_only=True)
class JudgingPauseList(ResponseModel):
    """The pauses of judging in force."""

    items: list[JudgingPauseRead]


@dataclass(frozen=True, kw_only=True)
class DeadLetterRead(ResponseModel):
    """A dead letter: a job that failed on its last attempt."""

    id: str
    job_id: str
    kind: str
    attempt_id: int
    error_code: str
    error: str | None
    state: Literal["open", "replayed", "discarded"]
    replayed_by_job_id: str | None
    resolved_by: str | None
    note: str | None
    created_at: Timestamp
    resolved_at: Timestamp | None


@dataclass(frozen=True, kw_only=True)
class DeadLetterDetail(DeadLetterRead):
    """A dead letter with the attempts of its job."""

    attempts: list[AttemptRead]


@dataclass(frozen=True, kw_only=True)
class DeadLetterPage(ResponseModel):
    """Dead letters, oldest first."""

    items: list[DeadLetterRead]
    next: NextCursor
    total: int | None = field(metadata=doc("Number of open dead letters that match, on all pages; null for others."))


@dataclass(frozen=True, kw_only=True)
class DiscardRead(ResponseModel):
    """The result of discarding dead letters by a filter."""

    discarded: int


@dataclass(frozen=True, kw_only=True)
class ReplayRead(ResponseModel):
    """Dead letter ID → ID of the new job."""

    jobs: dict[str, str | None] = field(
        metadata=doc("null: the node or its run is queued by a concurrency limit and has no job yet.")
    )


@dataclass(frozen=True, kw_only=True)
class AuditEntryRead(ResponseModel):
    """An audit log entry."""

    id: int
    actor: str = field(metadata=doc("User ID, or `cli:NAME` for local commands."))
    actor_name: str | None = field(metadata=doc("Username of the actor.", examples=["ada"]))
    action: str
    object_kind: str
    object_id: str
    reason: str | None
    details: dict[str, Any]
    at: Timestamp


@dataclass(frozen=True, kw_only=True)
class AuditPage(ResponseModel):
    """Audit log entries, newest first."""

    items: list[AuditEntryRead]
    next: NextCursor


@dataclass(frozen=True, kw_only=True)
class JobHistoryRead(ResponseModel):
    """A job with its attempts and status changes."""

    job: dict[str, Any]
    attempts: list[AttemptRead]
    log: list[JobStatusChangeRead]


@dataclass(frozen=True, kw_only=True)
class SettingRead(ResponseModel):
    """An effective setting."""

    name: str = field(metadata=doc(examples=["jobs.lease_sec"]))
    value: str
    source: str
    purpose: str


@dataclass(frozen=True, kw_only=True)
class SettingList(ResponseModel):
    """All effective settings and their sources."""

    items: list[SettingRead]
