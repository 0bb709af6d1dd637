"""Wire models of the operations routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from adjudge.api.schema.base import TIMESTAMP_EXAMPLE, ApiModel
from adjudge.api.schema.submissions import AttemptRead, JobStatusChangeRead
from adjudge.domain.timestamps import format_timestamp
from adjudge.registry.driver import LiveWorker
from adjudge.services.ops import JobHistory, SystemStatus
from adjudge.settings import EffectiveSetting as Setting
from adjudge.store.jobs.dead_letters import DeadLetterRow
from adjudge.store.ops import audit_log
from adjudge.store.ops.queue_stats import OutboxStats, QueueStats

_TIMESTAMPS = frozenset(
    {"available_at", "lease_until", "created_at", "updated_at", "queued_at", "started_at", "finished_at"}
)


class ComponentHealthRead(ApiModel):
    """Health of one component."""

    name: str = Field(examples=["database"])
    status: Literal["ok", "away"]
    took_ms: float
    error: str | None


class PriorityQueueRead(ApiModel):
    """Queue of one priority: 0 admins, 1 staff, 2 contestants, 3 services."""

    band: int
    waiting: int
    oldest_ms: int = Field(description="Age of the oldest due row.")

    @classmethod
    def of(cls, queue: QueueStats) -> PriorityQueueRead:
        return cls(band=queue.band, waiting=queue.waiting, oldest_ms=queue.oldest_ms)


class QueueStatusRead(ApiModel):
    """Waiting and running jobs."""

    bands: list[PriorityQueueRead]
    running: int


class OutboxFailureRead(ApiModel):
    """A failed outbox delivery."""

    job_id: str
    attempts: int
    next_attempt_at: str
    last_error: str


class OutboxStatusRead(ApiModel):
    """Undelivered outbox rows."""

    pending: int
    due: int
    oldest_ms: int
    trouble: list[OutboxFailureRead]

    @classmethod
    def of(cls, state: OutboxStats) -> OutboxStatusRead:
        trouble = [
            OutboxFailureRead(**dict(item) | {"next_attempt_at": format_timestamp(item["next_attempt_at"])})
            for item in state.trouble
        ]
        return cls(pending=state.pending, due=state.due, oldest_ms=state.oldest_ms, trouble=trouble)


class SystemStatusRead(ApiModel):
    """System status."""

    version: str
    vitals: list[ComponentHealthRead]
    queues: QueueStatusRead
    outbox: OutboxStatusRead
    dead_letters: int

    @classmethod
    def of(cls, state: SystemStatus, version: str) -> SystemStatusRead:
        vitals = [
            ComponentHealthRead(
                name=vital.name, status="ok" if vital.is_well else "away", took_ms=vital.took_ms, error=vital.error
            )
            for vital in state.components
        ]
        queues = QueueStatusRead(bands=[PriorityQueueRead.of(queue) for queue in state.queues], running=state.running)
        return cls(
            version=version,
            vitals=vitals,
            queues=queues,
            outbox=OutboxStatusRead.of(state.outbox),
            dead_letters=state.dead_letters,
        )


class WorkerRead(ApiModel):
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

    @classmethod
    def of(cls, worker: LiveWorker) -> WorkerRead:
        info = worker.info
        return cls(
            name=info.name,
            host=info.host,
            pid=info.pid,
            version=info.version,
            slots=info.slots,
            languages=dict(info.languages),
            isolation=info.isolation,
            health=info.health,
            lease_left_sec=round(worker.lease_left_sec, 1),
        )


class WorkerList(ApiModel):
    """Online workers."""

    items: list[WorkerRead]


class DeadLetterRead(ApiModel):
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
    created_at: str = Field(examples=[TIMESTAMP_EXAMPLE])
    resolved_at: str | None

    @classmethod
    def of(cls, letter: DeadLetterRow) -> DeadLetterRead:
        return cls.model_validate(dead_letter_fields(letter))


class DeadLetterDetail(DeadLetterRead):
    """A dead letter with the attempts of its job."""

    attempts: list[AttemptRead]


class DeadLetterPage(ApiModel):
    """Dead letters, oldest first."""

    items: list[DeadLetterRead]
    next: str | None = Field(description="Cursor of the next page; null on the last page.")


class DeadLetterRequest(ApiModel):
    """Dead letter IDs and a reason."""

    ids: list[Annotated[str, Field(max_length=64, examples=["019a8c5e-7c1f-7a3b-9d52-3f1f0c7d2b11"])]] = Field(
        min_length=1, max_length=1000
    )
    reason: Annotated[str, Field(min_length=1, max_length=500, examples=["the disk was full"])]


class ReplayRead(ApiModel):
    """Dead letter ID → ID of the new job."""

    jobs: dict[str, str | None] = Field(
        description="null: the node or its run is queued by a concurrency limit and has no job yet."
    )


class AuditEntryRead(ApiModel):
    """An audit log entry."""

    id: int
    actor: str = Field(description="User ID, or `cli:NAME` for local commands.")
    actor_name: str | None = Field(description="Username of the actor.", examples=["ada"])
    action: str
    object_kind: str
    object_id: str
    reason: str | None
    details: dict[str, Any]
    at: str = Field(examples=[TIMESTAMP_EXAMPLE])

    @classmethod
    def of(cls, entry: audit_log.AuditLogRow) -> AuditEntryRead:
        return cls(
            id=entry.id,
            actor=entry.actor,
            actor_name=entry.actor_name,
            action=entry.action,
            object_kind=entry.object_kind,
            object_id=entry.object_id,
            reason=entry.reason,
            details=dict(entry.details),
            at=format_timestamp(entry.at),
        )


class AuditPage(ApiModel):
    """Audit log entries, newest first."""

    items: list[AuditEntryRead]
    next: str | None = Field(description="Cursor of the next page; null on the last page.")


class JobHistoryRead(ApiModel):
    """A job with its attempts and status changes."""

    job: dict[str, Any]
    attempts: list[AttemptRead]
    log: list[JobStatusChangeRead]

    @classmethod
    def of(cls, history: JobHistory) -> JobHistoryRead:
        row = {name: format_timestamp(value) if name in _TIMESTAMPS else value for name, value in history.job.items()}
        return cls(
            job=row,
            attempts=[AttemptRead.of(attempt) for attempt in history.attempts],
            log=[JobStatusChangeRead.of(change) for change in history.log],
        )


class SettingRead(ApiModel):
    """An effective setting."""

    name: str = Field(examples=["jobs.lease_sec"])
    value: str
    source: str
    purpose: str

    @classmethod
    def of(cls, entry: Setting) -> SettingRead:
        return cls(name=entry.name, value=str(entry.value), source=entry.source, purpose=entry.setting.help)


class SettingList(ApiModel):
    """All effective settings and their sources."""

    items: list[SettingRead]


def dead_letter_fields(letter: DeadLetterRow) -> dict[str, Any]:
    """The fields of a dead letter under their wire names."""
    return {name: getattr(letter, name) for name in DeadLetterRow.__slots__} | {
        "created_at": format_timestamp(letter.created_at),
        "resolved_at": format_timestamp(letter.resolved_at),
    }
