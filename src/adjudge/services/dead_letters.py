"""Dead letters by filters: lists, counts, replays and discards them, for API, pages and command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adjudge.domain.errors import NotFound
from adjudge.domain.ids import new_id
from adjudge.store import Database, Tx
from adjudge.store.accounts import users
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.dead_letters import DeadLetterFilter, DeadLetterRow
from adjudge.store.problems import queries as problem_queries

_BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class DeadLetterSelection:
    """Dead letters by kind of job, error code, problem (slug or id) and user (name); empty fields match all."""

    kind: str = ""
    error_code: str = ""
    problem: str = ""
    user: str = ""


ANY_DEAD_LETTER: Final = DeadLetterSelection()


async def list_dead_letters(
    database: Database, *, state: str, match: DeadLetterSelection, after: str, limit: int
) -> list[DeadLetterRow]:
    """Dead letters in one state that match, oldest first."""

    async def read(tx: Tx) -> list[DeadLetterRow]:
        wanted = await _find_filter(tx, match)
        return await dead_letters.page(tx, state=state, match=wanted, after=after, limit=limit)

    return await database.read(read)


async def count_dead_letters(database: Database, match: DeadLetterSelection) -> int:
    """The number of open dead letters that match."""

    async def read(tx: Tx) -> int:
        return await dead_letters.count_matching(tx, await _find_filter(tx, match))

    return await database.read(read)


async def replay_matching(
    database: Database, jobs: JobCommands, match: DeadLetterSelection, *, actor: str, reason: str
) -> dict[str, str | None]:
    """Replay all open dead letters that match, in batches; return letter id → new job id."""
    until = new_id()

    async def replay(tx: Tx) -> dict[str, str | None]:
        ids = await _open_ids(tx, match, until)
        return await dead_letters.replay(tx, jobs, ids, actor=actor, reason=reason) if ids else {}

    replayed: dict[str, str | None] = {}
    while batch := await database.transact(replay):
        replayed |= batch
    return replayed


async def discard_matching(
    database: Database, jobs: JobCommands, match: DeadLetterSelection, *, actor: str, reason: str
) -> int:
    """Discard all open dead letters that match, in batches; return how many."""
    until = new_id()

    async def discard(tx: Tx) -> int:
        ids = await _open_ids(tx, match, until)
        if ids:
            await dead_letters.discard(tx, jobs, ids, actor=actor, reason=reason)
        return len(ids)

    discarded = 0
    while batch := await database.transact(discard):
        discarded += batch
    return discarded


async def _find_filter(tx: Tx, match: DeadLetterSelection) -> DeadLetterFilter:
    """Find the problem and the user of a selection, or raise ``NotFound``."""
    problem_id = user_id = ""
    if match.problem:
        found = await problem_queries.find(tx, match.problem)
        if found is None:
            raise NotFound("problem", match.problem)
        problem_id = found.id
    if match.user:
        known = await users.find_with_password_by_name(tx, match.user)
        if known is None:
            raise NotFound("user", match.user)
        user_id = known.user.id
    return DeadLetterFilter(match.kind, match.error_code, problem_id, user_id)


async def _open_ids(tx: Tx, match: DeadLetterSelection, until: str) -> list[str]:
    """The first open letters that match and were created before the id ``until``: replays may create new ones."""
    wanted = await _find_filter(tx, match)
    found = await dead_letters.page(tx, match=wanted, limit=_BATCH)
    return [letter.id for letter in found if letter.id < until]
