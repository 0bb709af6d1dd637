"""Queries of problems, revisions and their files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from adjudge.store.contests.hidden import shown
from adjudge.store.engine.driver import Tx, fetch_one, or_not_found
from adjudge.store.engine.statement import Statement
from adjudge.store.problems.models import (
    ProblemFilter,
    ProblemListRow,
    ProblemRow,
    ProblemSort,
    PublishedProblem,
    RevisionFileRow,
    RevisionRow,
)

_BEYOND: Final = "\U0010ffff"
"""Sorts after every character: a prefix and a prefix with this appended bound the words with that prefix."""

_ITEMS: Final = {
    "postgresql": 'SELECT item COLLATE "C" AS item FROM jsonb_array_elements_text(CAST(:NAME AS jsonb)) AS given(item)',
    "sqlite": "SELECT value AS item FROM json_each(:NAME)",
}
_END: Final = {"postgresql": '((item || :beyond) COLLATE "C")', "sqlite": "(item || :beyond)"}


_OWN: Final = f"""SELECT 1 FROM submissions WHERE submissions.user_id = CAST(:viewer AS text)
                        AND submissions.problem_id = problems.id AND {shown("submissions.contest_id")}"""
_SOLVED: Final = f"EXISTS ({_OWN} AND submissions.verdict = 'AC')"
_TRIED: Final = f"(NOT {_SOLVED} AND EXISTS ({_OWN} AND submissions.verdict IS NOT NULL))"


def _list_text(dialect: str, key: str, key_type: str, way: str) -> str:
    """The SQL of a list in one order. Words and tags are searched by index first; the result is filtered."""
    search_words, search_tags = (_ITEMS[dialect].replace("NAME", name) for name in ("words", "tags"))
    than = ">" if way == "ASC" else "<"
    return f"""
    SELECT {{columns:problems}}
    FROM problems LEFT JOIN problem_revisions ON problem_revisions.id = published_revision_id
    WHERE (CAST(:owner AS text) = owner_id OR CAST(:owner AS text) IS NULL AND published_revision_id IS NOT NULL)
      AND (CAST(:word_count AS bigint) = 0 OR problems.id IN (
            SELECT problem_id FROM ({search_words}) AS searched
            JOIN problem_words ON word >= item AND word < {_END[dialect]}
            GROUP BY problem_id HAVING count(DISTINCT item) = CAST(:word_count AS bigint)))
      AND (CAST(:tag_count AS bigint) = 0 OR problems.id IN (
            SELECT problem_id FROM ({search_tags}) AS searched JOIN problem_tags ON tag = item
            GROUP BY problem_id HAVING count(*) = CAST(:tag_count AS bigint)))
      AND (CAST(:hardest AS double precision) IS NULL OR difficulty <= CAST(:hardest AS double precision))
      AND (CAST(:easiest AS double precision) IS NULL OR difficulty >= CAST(:easiest AS double precision))
      AND (CAST(:solved AS bigint) IS NULL OR CAST(:solved AS bigint) = CASE WHEN {_SOLVED} THEN 1 ELSE 0 END)
      AND (CAST(:tried AS bigint) IS NULL OR CAST(:tried AS bigint) = CASE WHEN {_TRIED} THEN 1 ELSE 0 END)
      AND (CAST(:after_id AS text) IS NULL
           OR ({key}, problems.id) {than} (CAST(:after_key AS {key_type}), CAST(:after_id AS text)))
    ORDER BY {key} {way}, problems.id {way} LIMIT :limit
    """


def _list(name: str, purpose: str, key: str, key_type: str, way: str) -> Statement[ProblemListRow]:
    return Statement(
        f"problems.list_{name}",
        purpose,
        _list_text("postgresql", key, key_type, way),
        sqlite_sql=_list_text("sqlite", key, key_type, way),
        row=ProblemListRow,
        columns={"revision": "number", "is_solved": _SOLVED, "is_tried": _TRIED, "sort_key": key},
    )


LIST_NEWEST = _list("newest", "List problems, the newest first.", "problems.created_at", "bigint", "DESC")
LIST_TITLES = _list("titles", "List problems by title.", "title", "text", "ASC")
LIST_EASIEST = _list(
    "easiest", "List problems, the easiest first.", "COALESCE(difficulty, 1000000)", "double precision", "ASC"
)
LIST_HARDEST = _list(
    "hardest", "List problems, the hardest first.", "COALESCE(difficulty, -1)", "double precision", "DESC"
)

SELECT_PROBLEM = Statement(
    "problems.select_problem",
    "Find a problem by its slug or its id.",
    "SELECT {columns} FROM problems WHERE slug = :name OR id = :name",
    row=ProblemRow,
)

_REVISION: Final = "SELECT {columns} FROM problem_revisions "

SELECT_REVISION = Statement(
    "problems.select_revision", "Read a revision by its id.", _REVISION + "WHERE id = :revision_id", row=RevisionRow
)

SELECT_NUMBERED = Statement(
    "problems.select_numbered",
    "Read a revision by its number.",
    _REVISION + "WHERE problem_id = :problem_id AND number = :number",
    row=RevisionRow,
)

SELECT_LATEST = Statement(
    "problems.select_latest",
    "Read a problem's latest revision.",
    _REVISION + "WHERE problem_id = :problem_id ORDER BY number DESC LIMIT 1",
    row=RevisionRow,
)

SELECT_BY_DIGEST = Statement(
    "problems.select_by_digest",
    "Read a problem's latest revision with given test data.",
    _REVISION + "WHERE problem_id = :problem_id AND manifest_digest = :digest ORDER BY number DESC LIMIT 1",
    row=RevisionRow,
)

SELECT_PREVIOUS_PUBLISHED = Statement(
    "problems.select_previous_published",
    "Find the previously published revision.",
    _REVISION
    + """
    WHERE problem_id = :problem_id AND published_at IS NOT NULL
      AND id <> (SELECT COALESCE(published_revision_id, '') FROM problems WHERE problems.id = :problem_id)
    ORDER BY published_at DESC, number DESC LIMIT 1
    """,
    row=RevisionRow,
)

SELECT_GIVEN_REVISIONS = Statement(
    "problems.select_given_revisions",
    "Read revisions.",
    _REVISION + "JOIN {given} ON given_id = id",
    row=RevisionRow,
    input_columns={"given_id": "text"},
)

SELECT_REVISIONS = Statement(
    "problems.select_revisions",
    "List a problem's revisions, the latest first.",
    _REVISION
    + """
    WHERE problem_id = :problem_id AND number < :before_number
    ORDER BY number DESC LIMIT :limit
    """,
    row=RevisionRow,
    columns={"definition": "'{}'"},
)

SELECT_ALL_FILES = Statement(
    "problems.select_all_files",
    "List every file of a revision.",
    "SELECT {columns} FROM manifest_files WHERE revision_id = :revision_id ORDER BY path",
    row=RevisionFileRow,
)

SELECT_FILE = Statement(
    "problems.select_file",
    "Find one file of a revision.",
    "SELECT {columns} FROM manifest_files WHERE revision_id = :revision_id AND path = :path",
    row=RevisionFileRow,
)


_BY_SORT: Final = {
    ProblemSort.NEWEST: LIST_NEWEST,
    ProblemSort.TITLE: LIST_TITLES,
    ProblemSort.EASIEST: LIST_EASIEST,
    ProblemSort.HARDEST: LIST_HARDEST,
}


async def list_problems(
    tx: Tx,
    wanted: ProblemFilter,
    *,
    viewer_id: str | None,
    after: tuple[object, str] | None,
    limit: int,
    hidden_contests: str = "",
) -> list[ProblemListRow]:
    """List problems; ``after`` is the sort key and the id of the last row of the previous page.

    Submissions in ``hidden_contests`` do not count as solved or attempted.
    """
    key, row_id = after or (None, None)
    return await tx.fetch(
        _BY_SORT[wanted.sort],
        words=json.dumps(wanted.words, ensure_ascii=False),
        word_count=len(wanted.words),
        beyond=_BEYOND,
        tags=json.dumps(wanted.tags, ensure_ascii=False),
        tag_count=len(wanted.tags),
        easiest=wanted.min_difficulty,
        hardest=wanted.max_difficulty,
        solved=None if wanted.is_solved is None else int(wanted.is_solved),
        tried=None if wanted.is_tried is None else int(wanted.is_tried),
        owner=wanted.owner_id,
        viewer=viewer_id,
        hidden_contests=hidden_contests,
        after_key=key,
        after_id=row_id,
        limit=limit,
    )


async def find(tx: Tx, name: str) -> ProblemRow | None:
    return await fetch_one(tx, SELECT_PROBLEM, name=name)


async def find_revision(tx: Tx, revision_id: str) -> RevisionRow:
    return or_not_found(await fetch_one(tx, SELECT_REVISION, revision_id=revision_id), "revision", revision_id)


async def find_revisions(tx: Tx, revision_ids: Sequence[str]) -> dict[str, RevisionRow]:
    """The revisions by id."""
    rows = await tx.fetch(SELECT_GIVEN_REVISIONS, [(item,) for item in revision_ids]) if revision_ids else []
    return {row.id: row for row in rows}


async def find_revision_by_number(tx: Tx, problem_id: str, number: int) -> RevisionRow:
    return or_not_found(
        await fetch_one(tx, SELECT_NUMBERED, problem_id=problem_id, number=number), "revision", str(number)
    )


async def find_revision_by_digest(tx: Tx, problem_id: str, digest: str) -> RevisionRow | None:
    """The latest revision whose test data, and everything that decides how it is used, has this digest."""
    return await fetch_one(tx, SELECT_BY_DIGEST, problem_id=problem_id, digest=digest)


async def find_latest_revision(tx: Tx, problem_id: str) -> RevisionRow | None:
    return await fetch_one(tx, SELECT_LATEST, problem_id=problem_id)


async def find_previous_published_revision(tx: Tx, problem_id: str) -> RevisionRow | None:
    """The revision that was published before the current one."""
    return await fetch_one(tx, SELECT_PREVIOUS_PUBLISHED, problem_id=problem_id)


async def list_revisions(tx: Tx, problem_id: str, *, before_number: int | None, limit: int) -> list[RevisionRow]:
    """List a problem's revisions, latest first, without their definitions."""
    before = before_number if before_number is not None else 2**62
    return await tx.fetch(SELECT_REVISIONS, problem_id=problem_id, before_number=before, limit=limit)


async def list_files(tx: Tx, revision_id: str) -> list[RevisionFileRow]:
    """List the files of a revision by path."""
    return await tx.fetch(SELECT_ALL_FILES, revision_id=revision_id)


async def find_file(tx: Tx, revision_id: str, path: str) -> RevisionFileRow:
    return or_not_found(await fetch_one(tx, SELECT_FILE, revision_id=revision_id, path=path), "file", path)


LIST_PUBLISHED = Statement(
    "problems.list_published",
    "List published problems by slug.",
    """
    SELECT {columns} FROM problems
    WHERE published_revision_id IS NOT NULL AND slug > :after ORDER BY slug LIMIT :limit
    """,
    row=PublishedProblem,
    columns={"revision_id": "published_revision_id"},
)


async def list_published(tx: Tx, *, limit: int = 10_000) -> list[PublishedProblem]:
    """List published problems by slug."""
    return await tx.fetch(LIST_PUBLISHED, after="", limit=limit)
