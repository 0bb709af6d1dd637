"""Submissions of the participants that everybody may know of."""

from __future__ import annotations

from adjudge.store.contests.activity_models import ContestSubmissionRow
from adjudge.store.contests.submissions import COLUMNS, FROM
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

PAGE = Statement(
    "contest_submissions.visible_page",
    "List the submissions of participants that are not hidden, newest first, keyset-paginated.",
    f"""
    SELECT {{columns:contest_submissions}} {FROM}
    JOIN participants ON participants.id = contest_submissions.participant_id
    WHERE contest_submissions.contest_id = :contest_id AND contest_submissions.number < :before
      AND NOT participants.hidden AND participants.kind IN ('official', 'unofficial')
      AND contest_submissions.ignored_at IS NULL AND submissions.status <> 'canceled'
      AND (CAST(:participant_id AS text) IS NULL OR contest_submissions.participant_id = :participant_id)
      AND (CAST(:problem_id AS text) IS NULL OR contest_submissions.problem_id = :problem_id)
    ORDER BY contest_submissions.number DESC LIMIT :limit
    """,
    row=ContestSubmissionRow,
    columns=COLUMNS,
    force_custom_plan=True,
)


async def page(
    tx: Tx, contest_id: str, *, participant_id: str | None, problem_id: str | None, before: int, limit: int
) -> list[ContestSubmissionRow]:
    """List submissions, newest first; ``before`` is the last number of the previous page."""
    return await tx.fetch(
        PAGE,
        contest_id=contest_id,
        participant_id=participant_id,
        problem_id=problem_id,
        before=before,
        limit=limit,
    )
