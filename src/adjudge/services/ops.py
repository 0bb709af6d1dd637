"""Operations for operators: status, queue, workers, dead letters, audit log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.domain.ids import is_id, parse_id_or_not_found
from adjudge.registry.driver import LiveProcess, ProcessRole, Registry
from adjudge.services import health
from adjudge.services.dead_letters import (
    ANY_DEAD_LETTER,
    DeadLetterSelection,
    count_dead_letters,
    discard_matching,
    list_dead_letters,
    replay_matching,
)
from adjudge.services.health import Check, ComponentHealth
from adjudge.services.viewer import Viewer
from adjudge.settings import EffectiveSetting as Setting
from adjudge.settings import Settings
from adjudge.store import Database, Tx
from adjudge.store.accounts import users
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.dead_letters import DeadLetterRow, JobAttemptRow
from adjudge.store.judging import queries as submission_queries
from adjudge.store.judging.models import JobStatusChange
from adjudge.store.ops import audit_log, metric_samples, queue_stats
from adjudge.store.ops.metric_samples import MetricSampleRow
from adjudge.store.ops.queue_stats import OutboxStats, QueueStats


@dataclass(frozen=True, slots=True)
class SystemStatus:
    """System status."""

    components: list[ComponentHealth]
    queues: list[QueueStats]
    running: int
    outbox: OutboxStats
    dead_letters: int


@dataclass(frozen=True, slots=True)
class JobHistory:
    """A job with its attempts and every change of its status."""

    job: dict[str, Any]
    attempts: list[JobAttemptRow]
    log: list[JobStatusChange]


@dataclass(frozen=True, slots=True)
class OpsService:
    """Operations for operators."""

    database: Database
    jobs: JobCommands
    registry: Registry
    settings: Settings
    checks: Mapping[str, Check]

    async def get_system_status(self) -> SystemStatus:
        """Check all components and count waiting jobs."""

        async def count(tx: Tx) -> tuple[list[QueueStats], int, OutboxStats, int]:
            waiting, running = await queue_stats.find_queue_stats(tx)
            return (
                waiting,
                sum(band.running for band in running),
                await queue_stats.find_outbox_stats(tx),
                await dead_letters.count_open(tx),
            )

        components = await health.check_components(self.checks)
        return SystemStatus(components, *await self.database.read(count))

    async def list_metric_samples(self, *, window_ms: int) -> list[MetricSampleRow]:
        """Metric samples of all processes within the last ``window_ms``."""
        return await self.database.read(lambda tx: metric_samples.list_recent(tx, window_ms=window_ms))

    async def list_processes(self) -> list[LiveProcess]:
        """Live API servers, schedulers and workers."""
        return await self.registry.list()

    async def list_workers(self) -> list[LiveProcess]:
        """Online workers."""
        return [process for process in await self.registry.list() if process.info.role is ProcessRole.WORKER]

    async def get_queue_status(self) -> tuple[list[QueueStats], int]:
        """Waiting jobs by priority band, and the number of running jobs."""
        waiting, running = await self.database.read(queue_stats.find_queue_stats)
        return waiting, sum(band.running for band in running)

    async def get_outbox_status(self) -> OutboxStats:
        return await self.database.read(queue_stats.find_outbox_stats)

    async def list_dead_letters(
        self, *, state: str, match: DeadLetterSelection = ANY_DEAD_LETTER, after: str, limit: int
    ) -> list[DeadLetterRow]:
        """Dead letters in one state, oldest first."""
        return await list_dead_letters(self.database, state=state, match=match, after=after, limit=limit)

    async def count_dead_letters(self, match: DeadLetterSelection = ANY_DEAD_LETTER) -> int:
        """The number of open dead letters."""
        return await count_dead_letters(self.database, match)

    async def get_dead_letter(self, letter_id: str) -> tuple[DeadLetterRow, list[JobAttemptRow]]:
        known = parse_id_or_not_found(letter_id, "dead_letter")
        return await self.database.read(lambda tx: dead_letters.find(tx, known))

    async def replay_dead_letters(
        self, viewer: Viewer, letter_ids: Sequence[str], *, reason: str
    ) -> dict[str, str | None]:
        """Replay dead letters, all or none; return letter id → new job id, or None if the job is created later."""
        known = [parse_id_or_not_found(letter_id, "dead_letter") for letter_id in letter_ids]
        return await self.database.transact(
            lambda tx: dead_letters.replay(tx, self.jobs, known, actor=viewer.id, reason=reason)
        )

    async def discard_dead_letters(self, viewer: Viewer, letter_ids: Sequence[str], *, reason: str) -> None:
        """Discard dead letters, all or none."""
        known = [parse_id_or_not_found(letter_id, "dead_letter") for letter_id in letter_ids]
        await self.database.transact(
            lambda tx: dead_letters.discard(tx, self.jobs, known, actor=viewer.id, reason=reason)
        )

    async def replay_matching_dead_letters(
        self, viewer: Viewer, match: DeadLetterSelection, *, reason: str
    ) -> dict[str, str | None]:
        """Replay all open dead letters that match, in batches; return letter id → new job id."""
        return await replay_matching(self.database, self.jobs, match, actor=viewer.id, reason=reason)

    async def discard_matching_dead_letters(self, viewer: Viewer, match: DeadLetterSelection, *, reason: str) -> int:
        """Discard all open dead letters that match, in batches; return how many."""
        return await discard_matching(self.database, self.jobs, match, actor=viewer.id, reason=reason)

    async def list_audit_entries(
        self, *, actor: str, of: tuple[str, str] | None, before: int | None, limit: int
    ) -> list[audit_log.AuditLogRow]:
        """Audit log entries: of one actor (id or name), of one object, or all."""

        async def read(tx: Tx) -> list[audit_log.AuditLogRow]:
            if of is not None:
                return await audit_log.page_by_object(tx, *of, before=before, limit=limit)
            known = await users.find_with_password_by_name(tx, actor) if actor else None
            by = known.user.id if known is not None else actor
            return await audit_log.page(tx, actor=by, before=before, limit=limit)

        return await self.database.read(read)

    async def user_names(self, actors: Iterable[str | None]) -> dict[str, str]:
        """User id → name, for the actors that are users."""
        wanted = {actor for actor in actors if actor is not None and is_id(actor)}
        return await self.database.read(lambda tx: users.find_names(tx, wanted)) if wanted else {}

    async def get_job_history(self, job_id: str) -> JobHistory:
        """A job of any kind with its attempts and status changes."""
        known = parse_id_or_not_found(job_id, "job")

        async def read(tx: Tx) -> JobHistory:
            row = await queue_stats.find_job_row(tx, known)
            return JobHistory(
                row, await dead_letters.attempts(tx, known), await submission_queries.list_job_status_log(tx, known)
            )

        return await self.database.read(read)

    def list_settings(self) -> list[Setting]:
        """All effective settings and their sources; secrets are redacted."""
        return list(self.settings.entries())
