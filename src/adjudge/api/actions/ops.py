"""What operators see and do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.api import vitals
from adjudge.api.parts import Parts
from adjudge.api.viewer import Viewer
from adjudge.api.vitals import Vital
from adjudge.domain.ids import is_id, named_id
from adjudge.registry.driver import LiveWorker
from adjudge.settings import Entry as Setting
from adjudge.store import Tx, audit, dead_letters, ops, reads, users
from adjudge.store.dead_letters import Attempt, DeadLetter
from adjudge.store.ops import OutboxState, Queue
from adjudge.store.reads import RunChange


@dataclass(frozen=True, slots=True)
class State:
    """System status."""

    vitals: list[Vital]
    queues: list[Queue]
    running: int
    outbox: OutboxState
    dead_letters: int


@dataclass(frozen=True, slots=True)
class JobStory:
    """A job with its attempts and every change of its status."""

    job: dict[str, Any]
    attempts: list[Attempt]
    log: list[RunChange]


async def state(parts: Parts) -> State:
    """Ask every part and count what waits."""

    async def count(tx: Tx) -> tuple[list[Queue], int, OutboxState, int]:
        return (*await ops.queues(tx), await ops.outbox_state(tx), await dead_letters.count_open(tx))

    taken = await vitals.take(parts.checks)
    return State(taken, *await parts.database.read(count))


async def workers(parts: Parts) -> list[LiveWorker]:
    """Online workers."""
    return await parts.registry.list()


async def queues(parts: Parts) -> tuple[list[Queue], int]:
    """What waits, band by band, and how many jobs run."""
    return await parts.database.read(ops.queues)


async def outbox_state(parts: Parts) -> OutboxState:
    """How delivery stands."""
    return await parts.database.read(ops.outbox_state)


async def letters(parts: Parts, *, state: str, after: str, at_most: int) -> list[DeadLetter]:
    """Dead letters in one state, the oldest first."""
    return await parts.database.read(lambda tx: dead_letters.page(tx, state=state, after=after, at_most=at_most))


async def letter(parts: Parts, letter_id: str) -> tuple[DeadLetter, list[Attempt]]:
    """One dead letter with the attempts of its job."""
    known = named_id(letter_id, "dead_letter")
    return await parts.database.read(lambda tx: dead_letters.find(tx, known))


async def replay(parts: Parts, viewer: Viewer, letter_ids: Sequence[str], *, reason: str) -> dict[str, str | None]:
    """Run what dead letters speak of again, all or none; return letter id → new job id, if there is one yet."""
    known = [named_id(letter_id, "dead_letter") for letter_id in letter_ids]
    return await parts.database.transact(
        lambda tx: dead_letters.replay(tx, parts.jobs, known, actor=viewer.id, reason=reason)
    )


async def discard(parts: Parts, viewer: Viewer, letter_ids: Sequence[str], *, reason: str) -> None:
    """Close dead letters for good, all or none."""
    known = [named_id(letter_id, "dead_letter") for letter_id in letter_ids]
    await parts.database.transact(
        lambda tx: dead_letters.discard(tx, parts.jobs, known, actor=viewer.id, reason=reason)
    )


async def audit_page(
    parts: Parts, *, actor: str, of: tuple[str, str] | None, before: int | None, at_most: int
) -> list[audit.Entry]:
    """What was done by hand: by somebody (by id or name), to one object, or all of it."""

    async def read(tx: Tx) -> list[audit.Entry]:
        if of is not None:
            return await audit.page_of_object(tx, *of, before=before, at_most=at_most)
        known = await users.known_by_name(tx, actor) if actor else None
        by = known.user.id if known is not None else actor
        return await audit.page(tx, actor=by, before=before, at_most=at_most)

    return await parts.database.read(read)


async def names_of(parts: Parts, actors: Iterable[str | None]) -> dict[str, str]:
    """What those of the actors are called who are users."""
    wanted = {actor for actor in actors if actor is not None and is_id(actor)}
    return await parts.database.read(lambda tx: users.names(tx, wanted)) if wanted else {}


async def job_story(parts: Parts, job_id: str) -> JobStory:
    """All that is known of a job of any kind."""
    known = named_id(job_id, "job")

    async def read(tx: Tx) -> JobStory:
        row = await ops.job(tx, known)
        return JobStory(row, await dead_letters.attempts(tx, known), await reads.run_log(tx, known))

    return await parts.database.read(read)


def configuration(parts: Parts) -> list[Setting]:
    """Every setting in force and where it came from; secrets are blanked by their type."""
    return list(parts.settings.entries())
