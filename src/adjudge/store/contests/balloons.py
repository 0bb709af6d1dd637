"""Balloons for solved problems: a queue for the staff."""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.store.contests.activity_models import BalloonRow
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement

ADD = Statement(
    "balloons.add",
    "Add balloons for solved problems; one that exists is left unchanged.",
    """
    INSERT INTO balloons (participant_id, problem_id, contest_id, number, created_at)
    SELECT given_participant_id, given_problem_id, :contest_id, given_number, {now} FROM {given} WHERE true
    ON CONFLICT (participant_id, problem_id) DO NOTHING
    """,
    input_columns={"given_participant_id": "text", "given_problem_id": "text", "given_number": "bigint"},
)
LIST = Statement(
    "balloons.list",
    "List the balloons of a contest by the number of the accepted submission, keyset-paginated.",
    """
    SELECT {columns} FROM balloons WHERE contest_id = :contest_id AND number > :after
      AND (CAST(:only_open AS bigint) = 0 OR delivered_at IS NULL)
    ORDER BY number LIMIT :limit
    """,
    row=BalloonRow,
)
CLAIM = Statement(
    "balloons.claim",
    "Claim a balloon, or release it.",
    """
    UPDATE balloons SET claimed_by = :claimed_by
    WHERE participant_id = :participant_id AND problem_id = :problem_id AND contest_id = :contest_id
      AND delivered_at IS NULL
    RETURNING {columns}
    """,
    row=BalloonRow,
)
DELIVER = Statement(
    "balloons.deliver",
    "Mark a balloon as delivered.",
    """
    UPDATE balloons SET delivered_at = {now}, delivered_by = :delivered_by
    WHERE participant_id = :participant_id AND problem_id = :problem_id AND contest_id = :contest_id
      AND delivered_at IS NULL
    RETURNING {columns}
    """,
    row=BalloonRow,
)


async def add(tx: Tx, contest_id: str, solved: Sequence[tuple[str, str, int]]) -> None:
    """Add balloons: participant, problem, number of the accepted submission."""
    if solved:
        await tx.execute(ADD, sorted(solved), contest_id=contest_id)


async def page(tx: Tx, contest_id: str, *, after: int = 0, limit: int, only_open: bool = False) -> list[BalloonRow]:
    """List balloons in the order of the submissions."""
    return await tx.fetch(LIST, contest_id=contest_id, after=after, limit=limit, only_open=int(only_open))


async def claim(
    tx: Tx, contest_id: str, participant_id: str, problem_id: str, *, claimed_by: str | None
) -> BalloonRow | None:
    """Claim a balloon, or release it with ``claimed_by=None``; None if it is delivered or missing."""
    return await fetch_one(
        tx, CLAIM, contest_id=contest_id, participant_id=participant_id, problem_id=problem_id, claimed_by=claimed_by
    )


async def deliver(
    tx: Tx, contest_id: str, participant_id: str, problem_id: str, *, delivered_by: str
) -> BalloonRow | None:
    """Mark a balloon as delivered; None if it is already, or missing."""
    return await fetch_one(
        tx,
        DELIVER,
        contest_id=contest_id,
        participant_id=participant_id,
        problem_id=problem_id,
        delivered_by=delivered_by,
    )
