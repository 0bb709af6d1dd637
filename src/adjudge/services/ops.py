"""What operators see and do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.api.parts import Parts
from adjudge.domain.ids import is_id, parse_id_or_not_found
from adjudge.registry.driver import LiveWorker
from adjudge.services import health
from adjudge.services.health import ComponentHealth
from adjudge.services.viewer import Viewer
from adjudge.settings import EffectiveSetting as Setting
from adjudge.store import Tx
from adjudge.store.accounts import users
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.dead_letters import DeadLetterRow, JobAttemptRow
from adjudge.store.judging import queries as submission_queries
from adjudge.store.judging.models import JobStatusChange
from adjudge.store.ops import audit_log, queue_stats
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


async def get_system_status(parts: Parts) -> SystemStatus:
    """Ask every part and count what waits."""

    async def count(tx: Tx) -> tuple[list[QueueStats], int, OutboxStats, int]:
        return (
            *await queue_stats.find_queue_stats(tx),
            await queue_stats.find_outbox_stats(tx),
            await dead_letters.count_open(tx),
        )

    taken = await health.check_components(parts.checks)
    return SystemStatus(taken, *await parts.database.read(count))


async def list_workers(parts: Parts) -> list[LiveWorker]:
    """Online workers."""
    return await parts.registry.list()


async def get_queue_status(parts: Parts) -> tuple[list[QueueStats], int]:
    """What waits, band by band, and how many jobs run."""
    return await parts.database.read(queue_stats.find_queue_stats)


async def get_outbox_status(parts: Parts) -> OutboxStats:
    """How delivery stands."""
    return await parts.database.read(queue_stats.find_outbox_stats)


async def list_dead_letters(parts: Parts, *, state: str, after: str, limit: int) -> list[DeadLetterRow]:
    """Dead letters in one state, the oldest first."""
    return await parts.database.read(lambda tx: dead_letters.page(tx, state=state, after=after, limit=limit))


async def get_dead_letter(parts: Parts, letter_id: str) -> tuple[DeadLetterRow, list[JobAttemptRow]]:
    """One dead letter with the attempts of its job."""
    known = parse_id_or_not_found(letter_id, "dead_letter")
    return await parts.database.read(lambda tx: dead_letters.find(tx, known))


async def replay_dead_letters(
    parts: Parts, viewer: Viewer, letter_ids: Sequence[str], *, reason: str
) -> dict[str, str | None]:
    """Run what dead letters speak of again, all or none; return letter id → new job id, if there is one yet."""
    known = [parse_id_or_not_found(letter_id, "dead_letter") for letter_id in letter_ids]
    return await parts.database.transact(
        lambda tx: dead_letters.replay(tx, parts.jobs, known, actor=viewer.id, reason=reason)
    )


async def discard_dead_letters(parts: Parts, viewer: Viewer, letter_ids: Sequence[str], *, reason: str) -> None:
    """Close dead letters for good, all or none."""
    known = [parse_id_or_not_found(letter_id, "dead_letter") for letter_id in letter_ids]
    await parts.database.transact(
        lambda tx: dead_letters.discard(tx, parts.jobs, known, actor=viewer.id, reason=reason)
    )


async def list_audit_entries(
    parts: Parts, *, actor: str, of: tuple[str, str] | None, before: int | None, limit: int
) -> list[audit_log.AuditLogRow]:
    """What was done by hand: by somebody (by id or name), to one object, or all of it."""

    async def read(tx: Tx) -> list[audit_log.AuditLogRow]:
        if of is not None:
            return await audit_log.page_by_object(tx, *of, before=before, limit=limit)
        known = await users.find_with_password_by_name(tx, actor) if actor else None
        by = known.user.id if known is not None else actor
        return await audit_log.page(tx, actor=by, before=before, limit=limit)

    return await parts.database.read(read)


async def user_names(parts: Parts, actors: Iterable[str | None]) -> dict[str, str]:
    """What those of the actors are called who are users."""
    wanted = {actor for actor in actors if actor is not None and is_id(actor)}
    return await parts.database.read(lambda tx: users.find_names(tx, wanted)) if wanted else {}


async def get_job_history(parts: Parts, job_id: str) -> JobHistory:
    """All that is known of a job of any kind."""
    known = parse_id_or_not_found(job_id, "job")

    async def read(tx: Tx) -> JobHistory:
        row = await queue_stats.find_job_row(tx, known)
        return JobHistory(
            row, await dead_letters.attempts(tx, known), await submission_queries.list_job_status_log(tx, known)
        )

    return await parts.database.read(read)


def list_settings(parts: Parts) -> list[Setting]:
    """Every setting in force and where it came from; secrets are blanked by their type."""
    return list(parts.settings.entries())
