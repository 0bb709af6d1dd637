"""Problems of contests whose judging is paused, and the judge runs that wait for a pause to end."""

from __future__ import annotations

from adjudge.domain.errors import NotFound
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs.models import HELD_AT
from adjudge.store.ops.judging_pauses import MATCHES_SUBMISSION

SET_PAUSED = Statement(
    "contest_problems.set_paused",
    "Pause or resume the judging of a problem in a contest.",
    """
    UPDATE contest_problems SET judging_paused = :is_paused WHERE contest_id = :contest_id AND label = :label
    """,
)
TO_HOLD = Statement(
    "jobs.to_hold",
    "Find unfinished judge runs of paused problems that are not held; those of rejudge batches are not held.",
    f"""
    SELECT jobs.id FROM contest_problems
    JOIN contest_submissions ON contest_submissions.contest_id = contest_problems.contest_id
      AND contest_submissions.problem_id = contest_problems.problem_id
    JOIN submissions ON submissions.id = contest_submissions.submission_id AND submissions.finished_at IS NULL
    JOIN jobs ON jobs.submission_id = submissions.id
    WHERE judging_paused AND jobs.finished_at IS NULL AND jobs.rejudge_batch_id IS NULL
      AND jobs.available_at < {HELD_AT}
    LIMIT :limit
    """,
)
TO_RELEASE = Statement(
    "jobs.to_release",
    "Find held jobs that no pause of a contest or of an operator concerns.",
    f"""
    SELECT id FROM jobs WHERE available_at >= {HELD_AT} AND finished_at IS NULL
      AND NOT EXISTS (
        SELECT 1 FROM submissions JOIN judging_pauses ON {MATCHES_SUBMISSION}
        WHERE submissions.id = jobs.submission_id)
      AND NOT EXISTS (
        SELECT 1 FROM contest_submissions JOIN contest_problems
          ON contest_problems.contest_id = contest_submissions.contest_id
          AND contest_problems.problem_id = contest_submissions.problem_id
        WHERE contest_submissions.submission_id = jobs.submission_id AND judging_paused
          AND jobs.rejudge_batch_id IS NULL)
    ORDER BY id LIMIT :limit
    """,
)


async def set_paused(tx: Tx, contest_id: str, label: str, *, is_paused: bool) -> None:
    """Pause or resume the judging of a problem."""
    if not await tx.execute(SET_PAUSED, contest_id=contest_id, label=label, is_paused=is_paused):
        raise NotFound("contest_problem", label)


async def find_to_hold(tx: Tx, *, limit: int) -> list[str]:
    """Judge runs that have to wait."""
    return [row["id"] for row in await tx.fetch(TO_HOLD, limit=limit)]


async def find_to_release(tx: Tx, *, limit: int) -> list[str]:
    """Judge runs that have waited, oldest first."""
    return [row["id"] for row in await tx.fetch(TO_RELEASE, limit=limit)]
