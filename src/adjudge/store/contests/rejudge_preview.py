"""The submissions of a rejudge batch that applying it would change, with their new results."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.domain.verdict import Verdict
from adjudge.store.contests.models import ContestRow
from adjudge.store.contests.scoreboard import RESULT_COLUMNS, JudgedTarget
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement
from adjudge.store.judging.rejudge_statements import IS_APPLIED


@dataclass(frozen=True, slots=True)
class PreviewItem:
    """A submission of a contest with the result that a batch would give it."""

    target: JudgedTarget
    verdict: Verdict


ITEMS = Statement(
    "rejudge.preview_items",
    "List the submissions of contests that applying a batch would change, with their new results.",
    f"""
    SELECT {{columns:contest_submissions}} FROM rejudge_items
    JOIN rejudge_batches ON rejudge_batches.id = batch_id
    JOIN submissions ON submissions.id = rejudge_items.submission_id
    JOIN contest_submissions ON contest_submissions.submission_id = submissions.id
    LEFT JOIN jobs ON jobs.id = rejudge_items.job_id
    WHERE batch_id = :batch_id AND {IS_APPLIED.replace("CAST(:policy AS text)", "rejudge_batches.policy")}
    ORDER BY contest_submissions.number
    """,
    row=PreviewItem,
    columns=RESULT_COLUMNS | {"score": "new_score", "verdict": "new_verdict"},
)
CONTESTS = Statement(
    "rejudge.contests",
    "List the contests that the submissions of a batch belong to.",
    """
    SELECT {columns} FROM contests
    WHERE id IN (SELECT submissions.contest_id FROM rejudge_items
                 JOIN submissions ON submissions.id = rejudge_items.submission_id
                 WHERE batch_id = :batch_id AND submissions.contest_id IS NOT NULL)
    """,
    row=ContestRow,
)


async def items(tx: Tx, batch_id: str) -> list[PreviewItem]:
    """The submissions that applying a batch would change, by its policy."""
    return await tx.fetch(ITEMS, batch_id=batch_id)


async def contests(tx: Tx, batch_id: str) -> list[ContestRow]:
    """The contests that the submissions of a batch belong to."""
    return await tx.fetch(CONTESTS, batch_id=batch_id)
