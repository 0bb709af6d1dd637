"""Queries of contests and their submissions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from adjudge.domain.errors import NotFound
from adjudge.store.engine.driver import Database, Tx, fetch_one
from adjudge.store.engine.statement import Statement

_PAGE: Final = 1_000


@dataclass(frozen=True, slots=True)
class ContestRow:
    """A contest and its times."""

    id: str
    slug: str
    title: str
    starts_at: int
    freezes_at: int | None
    ends_at: int
    has_ended: bool


@dataclass(frozen=True, slots=True)
class ContestSubmissionRow:
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


FIND = Statement(
    "contests.find",
    "Find a contest by slug or id.",
    "SELECT {columns} FROM contests WHERE id = :name OR slug = :name",
    row=ContestRow,
    columns={"has_ended": "ends_at <= {now}"},
)

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
    row=ContestSubmissionRow,
    columns={"user_name": "users.name", "label": "contest_problems.label", "problem_slug": "problems.slug"},
)

UNFREEZE = Statement(
    "contests.unfreeze",
    "Unfreeze an ended contest.",
    """
    UPDATE contests SET freezes_at = NULL, version = version + 1, updated_at = {now}
    WHERE id = :contest_id AND ends_at <= {now} AND freezes_at IS NOT NULL
    """,
)


async def find_contest(tx: Tx, name: str) -> ContestRow:
    contest = await fetch_one(tx, FIND, name=name)
    if contest is None:
        raise NotFound("contest", name)
    return contest


async def unfreeze(tx: Tx, contest_id: str) -> bool:
    """Unfreeze the scoreboard of an ended contest; return whether it was frozen."""
    return bool(await tx.execute(UNFREEZE, contest_id=contest_id))


async def iter_contest_submissions(database: Database, contest_id: str) -> AsyncIterator[list[ContestSubmissionRow]]:
    """The submissions of a contest in pages, each read in its own transaction."""
    page = await _page_submissions(database, contest_id, "")
    while page:
        yield page
        page = await _page_submissions(database, contest_id, page[-1].id) if len(page) == _PAGE else []


async def _page_submissions(database: Database, contest_id: str, after: str) -> list[ContestSubmissionRow]:
    return await database.read(lambda tx: tx.fetch(PAGE_SUBMISSIONS, contest_id=contest_id, after=after, limit=_PAGE))
