"""Queries of contests: settings, roles, problems, intervals; and their submissions for exports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from adjudge.domain.contest import ContestRole
from adjudge.domain.states import ContestState
from adjudge.store.contests import statements as sql
from adjudge.store.contests.models import (
    ContestAnnouncement,
    ContestInvitationRow,
    ContestProblemRow,
    ContestRoleRow,
    ContestRow,
    ContestStateChange,
    RemovedIntervalRow,
)
from adjudge.store.engine.driver import Database, Tx, fetch_one, or_not_found
from adjudge.store.engine.statement import Statement

_PAGE: Final = 1_000


@dataclass(frozen=True, slots=True)
class ExportedSubmission:
    """A submission of a contest, for exports."""

    id: str
    user_name: str
    label: str | None
    problem_slug: str
    language: str
    status: str
    verdict: str | None
    score: float | None
    time_ms: int | None
    mem_kb: int | None
    created_at: int


PAGE_SUBMISSIONS = Statement(
    "contests.page_submissions",
    "List the submissions of a contest by id, keyset-paginated.",
    """
    SELECT {columns:submissions} FROM submissions JOIN users ON users.id = submissions.user_id
    JOIN problems ON problems.id = submissions.problem_id
    LEFT JOIN contest_problems ON contest_problems.contest_id = submissions.contest_id
          AND contest_problems.problem_id = submissions.problem_id
    WHERE submissions.contest_id = :contest_id AND submissions.id > :after
    ORDER BY submissions.id LIMIT :limit
    """,
    row=ExportedSubmission,
    columns={"user_name": "users.name", "label": "contest_problems.label", "problem_slug": "problems.slug"},
)


async def find_contest(tx: Tx, name: str) -> ContestRow:
    """Find a contest by its slug or its id."""
    return or_not_found(await fetch_one(tx, sql.FIND, name=name), "contest", name)


async def find_contests(tx: Tx, contest_ids: Sequence[str]) -> list[ContestRow]:
    """The contests with these ids."""
    return await tx.fetch(sql.FIND_MANY, [(item,) for item in contest_ids]) if contest_ids else []


async def page(tx: Tx, *, before: str, limit: int, state: ContestState | None = None) -> list[ContestRow]:
    """List contests, newest first; ``before`` is the last id of the previous page."""
    return await tx.fetch(sql.PAGE, before=before, limit=limit, state=state and str(state))


async def clocks(tx: Tx, contest_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """By contest: the clock of the database, and the longest delay and extra time of an official participant."""
    rows = await tx.fetch(sql.CLOCKS, [(contest_id,) for contest_id in contest_ids])
    return {row["contest_id"]: (int(row["now_us"]), int(row["longest_us"] or 0)) for row in rows}


async def problems(tx: Tx, contest_id: str) -> list[ContestProblemRow]:
    """The problems of a contest, in order."""
    return await tx.fetch(sql.PROBLEMS, contest_id=contest_id)


async def published_problems(tx: Tx, contest_ids: Sequence[str]) -> dict[str, frozenset[str]]:
    """By contest, the ids of its problems that are public outside of it."""
    found: dict[str, set[str]] = {contest_id: set() for contest_id in contest_ids}
    for row in await tx.fetch(sql.PUBLISHED_PROBLEMS, [(item,) for item in contest_ids]) if contest_ids else ():
        found[row["contest_id"]].add(row["problem_id"])
    return {contest_id: frozenset(problems) for contest_id, problems in found.items()}


async def roles(tx: Tx, contest_id: str) -> list[ContestRoleRow]:
    """All roles in a contest."""
    return await tx.fetch(sql.ROLES, contest_id=contest_id)


async def roles_of_user(tx: Tx, contest_ids: Sequence[str], user_id: str) -> dict[str, frozenset[ContestRole]]:
    """The roles of one user, by contest."""
    found: dict[str, set[ContestRole]] = {contest_id: set() for contest_id in contest_ids}
    for row in await tx.fetch(sql.ROLES_OF_USER, [(contest_id,) for contest_id in contest_ids], user_id=user_id):
        found[row["contest_id"]].add(ContestRole(row["role"]))
    return {contest_id: frozenset(roles) for contest_id, roles in found.items()}


async def intervals(tx: Tx, contest_ids: Sequence[str]) -> list[RemovedIntervalRow]:
    """The removed intervals of contests, undone ones included."""
    return await tx.fetch(sql.INTERVALS, [(contest_id,) for contest_id in contest_ids])


async def invitations(tx: Tx, contest_id: str) -> list[ContestInvitationRow]:
    """The invitations to a contest."""
    return await tx.fetch(sql.INVITATIONS, contest_id=contest_id)


async def state_log(tx: Tx, contest_id: str) -> list[ContestStateChange]:
    """The changes of a contest's state, oldest first."""
    return await tx.fetch(sql.STATE_LOG, contest_id=contest_id)


async def announced(tx: Tx, contest_ids: Sequence[str]) -> list[ContestAnnouncement]:
    """The announced transitions of contests: start, freeze, end, thaw, finalize, end of updates."""
    return await tx.fetch(sql.ANNOUNCED, [(contest_id,) for contest_id in contest_ids])


async def announceable(tx: Tx, *, back_us: int) -> list[ContestRow]:
    """The published and finalized contests that have not ended, or ended or changed within ``back_us``."""
    return await tx.fetch(sql.ANNOUNCEABLE, back_us=back_us)


async def iter_contest_submissions(database: Database, contest_id: str) -> AsyncIterator[list[ExportedSubmission]]:
    """The submissions of a contest in pages, each read in its own transaction."""
    page = await _page_submissions(database, contest_id, "")
    while page:
        yield page
        page = await _page_submissions(database, contest_id, page[-1].id) if len(page) == _PAGE else []


async def _page_submissions(database: Database, contest_id: str, after: str) -> list[ExportedSubmission]:
    return await database.read(lambda tx: tx.fetch(PAGE_SUBMISSIONS, contest_id=contest_id, after=after, limit=_PAGE))
