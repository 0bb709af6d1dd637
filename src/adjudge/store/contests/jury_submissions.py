"""Lists and counts of a contest's submissions for its jury."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.domain.verdict import Verdict
from adjudge.store.contests.activity_models import ContestSubmissionRow
from adjudge.store.contests.submissions import COLUMNS, FROM
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement

_WAITS = "submissions.verdict IS NULL AND submissions.status <> 'canceled'"
_IS_UNVERIFIED = """contest_submissions.verified_at IS NULL AND submissions.verdict IS NOT NULL
    AND contest_submissions.override_verdict IS NULL AND contest_submissions.ignored_at IS NULL"""

PAGE = Statement(
    "contest_submissions.jury_page",
    "List the submissions of a contest that match a filter of the jury, newest first, keyset-paginated.",
    f"""
    SELECT {{columns:contest_submissions}} {FROM}
    WHERE contest_submissions.contest_id = :contest_id AND contest_submissions.number < :before
      AND contest_submissions.received_at >= :received_from
      AND (CAST(:participant_id AS text) IS NULL OR contest_submissions.participant_id = :participant_id)
      AND (CAST(:problem_id AS text) IS NULL OR contest_submissions.problem_id = :problem_id)
      AND (CAST(:language AS text) IS NULL OR submissions.language = :language)
      AND (CAST(:verdict AS text) IS NULL
           OR COALESCE(contest_submissions.override_verdict, submissions.verdict) = :verdict)
      AND (CAST(:is_unverified AS bigint) = 0 OR ({_IS_UNVERIFIED}))
      AND (CAST(:is_waiting AS bigint) = 0 OR ({_WAITS}))
      AND (CAST(:is_ignored AS bigint) = 0 OR contest_submissions.ignored_at IS NOT NULL)
    ORDER BY contest_submissions.number DESC LIMIT :limit
    """,
    row=ContestSubmissionRow,
    columns=COLUMNS,
    force_custom_plan=True,
)
PREVIOUS = Statement(
    "contest_submissions.previous",
    "Read the last submission of a participant to a problem before a number.",
    f"""
    SELECT {{columns:contest_submissions}} {FROM}
    WHERE contest_submissions.participant_id = :participant_id AND contest_submissions.problem_id = :problem_id
      AND contest_submissions.number < :number
    ORDER BY contest_submissions.number DESC LIMIT 1
    """,
    row=ContestSubmissionRow,
    columns=COLUMNS,
)


@dataclass(frozen=True, slots=True)
class JurySubmissionFilter:
    """Which submissions the jury wants to see; all conditions must be met."""

    participant_id: str | None = None
    problem_id: str | None = None
    language: str | None = None
    verdict: Verdict | None = None
    """The one that counts: an override replaces that of the judge."""
    is_unverified: bool = False
    """Judged, and neither verified nor overridden nor ignored."""
    is_waiting: bool = False
    """Without a verdict."""
    is_ignored: bool = False
    received_from: int = 0


async def page(
    tx: Tx, contest_id: str, wanted: JurySubmissionFilter, *, before: int, limit: int
) -> list[ContestSubmissionRow]:
    """List submissions, newest first; ``before`` is the last number of the previous page."""
    return await tx.fetch(
        PAGE,
        contest_id=contest_id,
        before=before,
        limit=limit,
        participant_id=wanted.participant_id,
        problem_id=wanted.problem_id,
        language=wanted.language,
        verdict=None if wanted.verdict is None else str(wanted.verdict),
        is_unverified=int(wanted.is_unverified),
        is_waiting=int(wanted.is_waiting),
        is_ignored=int(wanted.is_ignored),
        received_from=wanted.received_from,
    )


async def find_previous(tx: Tx, row: ContestSubmissionRow) -> ContestSubmissionRow | None:
    """The submission that the participant made to the problem before this one."""
    return await fetch_one(
        tx, PREVIOUS, participant_id=row.participant_id, problem_id=row.problem_id, number=row.number
    )
