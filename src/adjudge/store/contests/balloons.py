"""Balloons for solved problems: a queue for the staff.

A balloon exists while its problem is solved in the jury view; ``contests/scoreboard.py`` keeps it so. One that was
delivered and is no longer deserved stays as withdrawn, until the staff has collected it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from adjudge.store.contests.activity_models import BalloonRow
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement

NEVER_US: Final = 2**62
"""``frozen_from`` without a rule for the freeze."""

_CELL = "participant_id = :participant_id AND problem_id = :problem_id"
_GIVEN: Final = {"given_participant_id": "text", "given_problem_id": "text"}
SET = Statement(
    "balloons.set",
    "Add balloons for solved problems; for one that exists, store the number of the accepted submission.",
    """
    INSERT INTO balloons (participant_id, problem_id, contest_id, number, created_at)
    SELECT given_participant_id, given_problem_id, :contest_id, given_number, {now} FROM {given} WHERE true
    ON CONFLICT (participant_id, problem_id) DO UPDATE SET number = excluded.number, withdrawn_at = NULL
    """,
    input_columns=_GIVEN | {"given_number": "bigint"},
)
DELETE_WAITING = Statement(
    "balloons.delete_waiting",
    "Delete balloons for problems that are no longer solved, unless they are delivered.",
    """
    DELETE FROM balloons WHERE delivered_at IS NULL
      AND (participant_id, problem_id) IN (SELECT given_participant_id, given_problem_id FROM {given})
    """,
    input_columns=_GIVEN,
)
WITHDRAW_DELIVERED = Statement(
    "balloons.withdraw_delivered",
    "Mark delivered balloons for problems that are no longer solved.",
    """
    UPDATE balloons SET withdrawn_at = {now} WHERE delivered_at IS NOT NULL AND withdrawn_at IS NULL
      AND (participant_id, problem_id) IN (SELECT given_participant_id, given_problem_id FROM {given})
    """,
    input_columns=_GIVEN,
)
OF_PARTICIPANTS = Statement(
    "balloons.of_participants",
    "List the balloons of participants that are not withdrawn.",
    """
    SELECT participant_id, problem_id FROM {given} JOIN balloons ON participant_id = given_id
    WHERE withdrawn_at IS NULL
    """,
    input_columns={"given_id": "text"},
)


def _queue(where: str) -> str:
    """The balloons as the staff sees them.

    ``position`` is how many balloons the participant got before. A balloon of the freeze is held back if there are
    ``minimum`` of them already; what is delivered is known, so it is not held back any more.
    """
    return f"""
    WITH numbered AS (
        SELECT balloons.participant_id, balloons.problem_id, balloons.number, balloons.created_at, delivered_at,
               delivered_by, withdrawn_at, received_at,
               row_number() OVER (PARTITION BY balloons.participant_id, CASE WHEN withdrawn_at IS NULL THEN 0 ELSE 1 END
                                  ORDER BY balloons.number) - 1 AS position
        FROM balloons JOIN contest_submissions ON contest_submissions.contest_id = balloons.contest_id
          AND contest_submissions.number = balloons.number
        WHERE balloons.contest_id = :contest_id {where}
    ), marked AS (
        SELECT numbered.*, received_at >= CAST(:frozen_from AS bigint) AS is_of_freeze,
               delivered_at IS NULL AND received_at >= CAST(:frozen_from AS bigint)
                 AND position >= CAST(:minimum AS bigint) AS is_held
        FROM numbered
    ), shown AS (
        SELECT marked.*,
               sum(CASE WHEN withdrawn_at IS NULL THEN 1 ELSE 0 END) OVER (PARTITION BY participant_id) AS total
        FROM marked WHERE CAST(:with_held AS bigint) = 1 OR NOT is_held
    )
    SELECT {{columns}} FROM shown
    JOIN participants ON participants.id = shown.participant_id
    JOIN contest_problems ON contest_problems.contest_id = :contest_id
      AND contest_problems.problem_id = shown.problem_id
    LEFT JOIN users ON users.id = shown.delivered_by
    WHERE NOT participants.hidden
    """


_COLUMNS: Final = {
    "participant_id": "shown.participant_id",
    "participant_code": "participants.code",
    "participant_name": "participants.name",
    "problem_id": "shown.problem_id",
    "label": "contest_problems.label",
    "created_at": "shown.created_at",
    "delivered_by": "users.name",
    "total": "CAST(total AS bigint)",
}
_STATES: Final = """
      AND CASE CAST(:state AS text) WHEN 'waiting' THEN delivered_at IS NULL AND NOT is_held
          WHEN 'delivered' THEN delivered_at IS NOT NULL AND withdrawn_at IS NULL
          WHEN 'collect' THEN withdrawn_at IS NOT NULL ELSE true END
    """
PAGE = Statement(
    "balloons.page",
    "List the balloons of a contest by the number of the accepted submission, oldest first, keyset-paginated.",
    _queue("") + _STATES + " AND number > :after ORDER BY number LIMIT :limit",
    row=BalloonRow,
    columns=_COLUMNS,
)
NEWEST = Statement(
    "balloons.newest",
    "List the balloons of a contest by the number of the accepted submission, newest first.",
    _queue("") + _STATES + " ORDER BY number DESC LIMIT :limit",
    row=BalloonRow,
    columns=_COLUMNS,
)
FIND = Statement(
    "balloons.find",
    "Read one balloon as the staff sees it.",
    _queue("AND balloons.participant_id = :participant_id") + " AND shown.problem_id = :problem_id",
    row=BalloonRow,
    columns=_COLUMNS,
)
DELIVER = Statement(
    "balloons.deliver",
    "Mark a waiting balloon as delivered.",
    f"UPDATE balloons SET delivered_at = {{now}}, delivered_by = :user_id WHERE {_CELL} AND delivered_at IS NULL",
)
UNDELIVER = Statement(
    "balloons.undeliver",
    "Put a delivered balloon back into the queue.",
    f"UPDATE balloons SET delivered_at = NULL, delivered_by = NULL WHERE {_CELL} AND withdrawn_at IS NULL",
)
DELETE = Statement("balloons.delete", "Delete a collected balloon.", f"DELETE FROM balloons WHERE {_CELL}")


async def set_solved(tx: Tx, contest_id: str, solved: Iterable[tuple[str, str, int]]) -> None:
    """Add or renew balloons: participant, problem, number of the accepted submission."""
    if rows := sorted(solved):
        await tx.execute(SET, rows, contest_id=contest_id)


async def withdraw(tx: Tx, cells: Iterable[tuple[str, str]]) -> None:
    """Take back balloons (participant, problem): delete those that wait, mark those that are delivered.

    The caller has locked the participants, so nobody delivers one in between.
    """
    if rows := sorted(cells):
        await tx.execute(DELETE_WAITING, rows)
        await tx.execute(WITHDRAW_DELIVERED, rows)


async def of_participants(tx: Tx, participant_ids: Sequence[str]) -> set[tuple[str, str]]:
    """The balloons of participants: participant and problem."""
    rows = await tx.fetch(OF_PARTICIPANTS, [(item,) for item in participant_ids]) if participant_ids else []
    return {(row["participant_id"], row["problem_id"]) for row in rows}


async def page(
    tx: Tx,
    contest_id: str,
    *,
    frozen_from: int = NEVER_US,
    minimum: int = 0,
    with_held: bool = False,
    state: str = "all",
    after: int = 0,
    limit: int,
    newest_first: bool = False,
) -> list[BalloonRow]:
    """List balloons; those of submissions since ``frozen_from`` are held back from participants with ``minimum``."""
    given = {"frozen_from": frozen_from, "minimum": minimum, "with_held": int(with_held), "state": state}
    if newest_first:
        return await tx.fetch(NEWEST, contest_id=contest_id, limit=limit, **given)
    return await tx.fetch(PAGE, contest_id=contest_id, after=after, limit=limit, **given)


async def find(
    tx: Tx,
    contest_id: str,
    participant_id: str,
    problem_id: str,
    *,
    frozen_from: int = NEVER_US,
    minimum: int = 0,
    with_held: bool = False,
) -> BalloonRow | None:
    """One balloon; None if there is none, or it is hidden."""
    return await fetch_one(
        tx,
        FIND,
        contest_id=contest_id,
        participant_id=participant_id,
        problem_id=problem_id,
        frozen_from=frozen_from,
        minimum=minimum,
        with_held=int(with_held),
    )


async def deliver(tx: Tx, row: BalloonRow, user_id: str) -> None:
    """Mark a balloon as delivered."""
    await tx.execute(DELIVER, participant_id=row.participant_id, problem_id=row.problem_id, user_id=user_id)


async def undeliver(tx: Tx, row: BalloonRow) -> None:
    """Put a balloon back into the queue."""
    await tx.execute(UNDELIVER, participant_id=row.participant_id, problem_id=row.problem_id)


async def delete(tx: Tx, row: BalloonRow) -> None:
    """Delete a balloon that was collected."""
    await tx.execute(DELETE, participant_id=row.participant_id, problem_id=row.problem_id)
