"""Up to where users have read the clarifications and the verdicts of a contest, and the verdicts after it."""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.store.contests.activity_models import ReadMarkRow, UnreadVerdict, UnreadVerdicts
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement

READ_MARK = Statement(
    "contest_read_marks.find",
    "Read up to where a user has read in a contest.",
    "SELECT {columns} FROM contest_read_marks WHERE contest_id = :contest_id AND user_id = :user_id",
    row=ReadMarkRow,
)
SET_READ_MARK = Statement(
    "contest_read_marks.advance",
    "Advance up to where a user has read in a contest; it never goes back.",
    """
    INSERT INTO contest_read_marks (contest_id, user_id, clarification_number, verdicts_until)
    VALUES (:contest_id, :user_id, :clarification_number, :verdicts_until)
    ON CONFLICT (contest_id, user_id) DO UPDATE SET
        clarification_number = CASE WHEN excluded.clarification_number > contest_read_marks.clarification_number
                               THEN excluded.clarification_number ELSE contest_read_marks.clarification_number END,
        verdicts_until = CASE WHEN excluded.verdicts_until > contest_read_marks.verdicts_until
                         THEN excluded.verdicts_until ELSE contest_read_marks.verdicts_until END
    """,
)
_VERDICTS = """
    SELECT contest_submissions.submission_id, contest_submissions.number, contest_submissions.contest_id,
           contest_submissions.problem_id, COALESCE(override_verdict, submissions.verdict) AS verdict,
           CASE WHEN override_verdict IS NOT NULL THEN overridden_at
                WHEN submissions.verdict IS NULL THEN NULL
                WHEN NOT verify_required THEN submissions.finished_at
                WHEN verified_at > submissions.finished_at THEN verified_at
                WHEN verified_at IS NOT NULL THEN submissions.finished_at END AS verdict_at
    FROM {given} JOIN contest_submissions ON contest_submissions.participant_id = given_id
    JOIN submissions ON submissions.id = contest_submissions.submission_id
    JOIN contests ON contests.id = contest_submissions.contest_id
"""
"""A verdict is known from its judge run, its verification if the contest requires one, or the decision of the jury."""
COUNT_VERDICTS = Statement(
    "contest_read_marks.count_verdicts",
    "Count the verdicts of participants since a time, and find the last one.",
    f"SELECT {{columns}} FROM ({_VERDICTS}) AS judged WHERE verdict_at > :after",
    input_columns={"given_id": "text"},
    row=UnreadVerdicts,
    columns={"count": "count(*)", "until": "max(verdict_at)"},
)
LIST_VERDICTS = Statement(
    "contest_read_marks.list_verdicts",
    "List the newest verdicts of participants since a time.",
    f"""
    SELECT {{columns}} FROM ({_VERDICTS}) AS judged WHERE verdict_at > :after
    ORDER BY verdict_at DESC, number DESC LIMIT :limit
    """,
    input_columns={"given_id": "text"},
    row=UnreadVerdict,
    columns={
        "label": "(SELECT label FROM contest_problems WHERE contest_problems.contest_id = judged.contest_id"
        " AND contest_problems.problem_id = judged.problem_id)"
    },
)


async def read_mark(tx: Tx, contest_id: str, user_id: str) -> ReadMarkRow:
    """Up to where a user has read."""
    return await fetch_one(tx, READ_MARK, contest_id=contest_id, user_id=user_id) or ReadMarkRow(
        contest_id, user_id, 0, 0
    )


async def advance_read_mark(
    tx: Tx, contest_id: str, user_id: str, *, clarification_number: int = 0, verdicts_until: int = 0
) -> None:
    """Advance up to where a user has read."""
    await tx.execute(
        SET_READ_MARK,
        contest_id=contest_id,
        user_id=user_id,
        clarification_number=clarification_number,
        verdicts_until=verdicts_until,
    )


async def count_verdicts(tx: Tx, participant_ids: Sequence[str], *, after: int) -> UnreadVerdicts:
    """The verdicts of participants that became known after a time."""
    (found,) = await tx.fetch(COUNT_VERDICTS, [(item,) for item in participant_ids], after=after)
    return found


async def list_verdicts(tx: Tx, participant_ids: Sequence[str], *, after: int, limit: int) -> list[UnreadVerdict]:
    """The newest of what ``count_verdicts`` counts."""
    return await tx.fetch(LIST_VERDICTS, [(item,) for item in participant_ids], after=after, limit=limit)
