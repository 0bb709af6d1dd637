"""Leaves out submissions of contests whose results are hidden: the condition, and the contests that it is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from adjudge.store.contests.models import ContestRow
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

MAY_HIDE_RESULTS: Final = (
    "end_of_updates_at IS NULL AND (state <> 'finalized' "
    "OR (thaw_at IS NULL AND (freeze_ct_us IS NOT NULL OR frozen_at IS NOT NULL)))"
)
"""Contests that are not certainly thawed: a finalized one has ended for all, and nothing of its times changes."""


def shown(column: str) -> str:
    """The SQL condition that a submission is in no contest of ``:hidden_contests``, which ``join_ids`` made."""
    return f"({column} IS NULL OR CAST(:hidden_contests AS text) NOT LIKE '%' || {column} || '%')"


def join_ids(contest_ids: Iterable[str]) -> str:
    """The value of ``:hidden_contests``."""
    return ",".join(sorted(contest_ids))


OPEN = Statement(
    "contests.open",
    "List the contests whose results may be hidden, of one problem or of all.",
    f"""
    SELECT {{columns}} FROM contests WHERE {MAY_HIDE_RESULTS}
      AND (CAST(:problem_id AS text) IS NULL
           OR id IN (SELECT contest_id FROM contest_problems WHERE problem_id = :problem_id))
    """,
    row=ContestRow,
)
OPEN_OF_USER = Statement(
    "contests.open_of_user",
    "List the contests that a user takes part in and whose results may be hidden.",
    f"""
    SELECT {{columns}} FROM contests WHERE {MAY_HIDE_RESULTS}
      AND id IN (SELECT contest_id FROM participant_members WHERE user_id = :user_id)
    """,
    row=ContestRow,
)
FIND_ALL = Statement(
    "contests.find_all",
    "Read several contests.",
    "SELECT {columns:contests} FROM {given} JOIN contests ON contests.id = given_id",
    input_columns={"given_id": "text"},
    row=ContestRow,
)


async def open_contests(tx: Tx, *, problem_id: str | None = None) -> list[ContestRow]:
    """The contests whose results may be hidden, of one problem or of all; their phase decides."""
    return await tx.fetch(OPEN, problem_id=problem_id)


async def open_contests_of_user(tx: Tx, user_id: str) -> list[ContestRow]:
    """The contests that a user takes part in and whose results may be hidden; their phase decides."""
    return await tx.fetch(OPEN_OF_USER, user_id=user_id)


async def find_contests(tx: Tx, contest_ids: Iterable[str]) -> list[ContestRow]:
    """The contests with these ids."""
    return await tx.fetch(FIND_ALL, [(item,) for item in contest_ids])
