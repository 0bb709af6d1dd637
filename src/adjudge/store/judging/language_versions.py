"""Which compiler versions the current verdicts were judged with, from the provenance of their judge runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from adjudge.store.engine.driver import Database, Tx
from adjudge.store.engine.statement import Statement

_PAGE_SUBMISSIONS: Final = 5_000


@dataclass(frozen=True, slots=True)
class JudgedWith:
    """Submissions of one problem whose verdict was decided with one version of a language."""

    language: str
    version: str
    problem_slug: str
    submissions: int
    last_created_at: int
    """When the newest of them was submitted, in microseconds."""
    last_id: str


PAGE = Statement(
    "submissions.judged_with",
    "Count judged submissions by language, compiler version and problem, one page of submissions at a time.",
    """
    SELECT {columns}
    FROM (SELECT id, language, problem_id, judged_by_job_id, created_at FROM submissions
          WHERE id > :after AND verdict IS NOT NULL ORDER BY id LIMIT :limit) AS page
    LEFT JOIN jobs ON jobs.id = page.judged_by_job_id JOIN problems ON problems.id = page.problem_id
    GROUP BY page.language, 2, problems.slug
    """,
    row=JudgedWith,
    columns={
        "language": "page.language",
        "version": "COALESCE(jobs.result -> 'provenance' ->> 'language_version', '')",
        "problem_slug": "problems.slug",
        "submissions": "count(*)",
        "last_created_at": "max(page.created_at)",
        "last_id": "max(page.id)",
    },
)


async def _page(tx: Tx, after: str) -> list[JudgedWith]:
    return await tx.fetch(PAGE, after=after, limit=_PAGE_SUBMISSIONS)


async def iter_judged_with(database: Database) -> AsyncIterator[JudgedWith]:
    """All judged submissions, counted page by page; one group may occur on several pages."""
    after = ""
    while rows := await database.read(partial(_page, after=after)):
        for row in rows:
            yield row
        after = max(row.last_id for row in rows)
