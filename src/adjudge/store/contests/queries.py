"""Queries of contests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from adjudge.domain.errors import NotFound
from adjudge.store.engine.driver import Database, Tx, fetch_one
from adjudge.store.engine.statement import Row, Statement

_PAGE: Final = 1_000


@dataclass(frozen=True, slots=True)
class ContestRow:
    """A contest's times, in microseconds."""

    id: str
    slug: str
    title: str
    starts_at: int
    freezes_at: int | None
    ends_at: int
    has_ended: bool


FIND = Statement(
    "contests.find",
    "Find a contest by slug or id.",
    """
    SELECT id, slug, title, starts_at, freezes_at, ends_at, ends_at <= {now} AS has_ended FROM contests
    WHERE id = :name OR slug = :name
    """,
)

PAGE_SUBMISSIONS = Statement(
    "contests.page_submissions",
    "List the submissions of a contest by id, keyset-paginated.",
    """
    SELECT submissions.id AS id, users.name AS user_name, contest_problems.label AS label, problems.slug AS problem,
           language, status, verdict, score, time_ms, mem_kb, submissions.created_at AS created_at
    FROM submissions JOIN users ON users.id = submissions.user_id
    JOIN problems ON problems.id = submissions.problem_id
    LEFT JOIN contest_problems ON contest_problems.contest_id = submissions.contest_id
          AND contest_problems.problem_id = submissions.problem_id
    WHERE submissions.contest_id = :contest_id AND submissions.id > :after
    ORDER BY submissions.id LIMIT :limit
    """,
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
    """Find a contest by its slug or its id."""
    row = await fetch_one(tx, FIND, name=name)
    if row is None:
        raise NotFound("contest", name)
    return ContestRow(
        row["id"],
        row["slug"],
        row["title"],
        row["starts_at"],
        row["freezes_at"],
        row["ends_at"],
        bool(row["has_ended"]),
    )


async def unfreeze(tx: Tx, contest_id: str) -> bool:
    """Lift the freeze of a contest that has ended; False where it has none."""
    return bool(await tx.execute(UNFREEZE, contest_id=contest_id))


async def iter_contest_submissions(database: Database, contest_id: str) -> AsyncIterator[list[Row]]:
    """The submissions of a contest, a page at a time: a large contest holds no long transaction."""
    page = await _results(database, contest_id, "")
    while page:
        yield page
        page = await _results(database, contest_id, page[-1]["id"]) if len(page) == _PAGE else []


async def _results(database: Database, contest_id: str, after: str) -> list[Row]:
    return await database.read(lambda tx: tx.fetch(PAGE_SUBMISSIONS, contest_id=contest_id, after=after, limit=_PAGE))
