"""Print jobs of contests: a queue for the staff and for print servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adjudge.store.contests.activity_models import NewPrint, PrintRow
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.rows import column_values
from adjudge.store.engine.statement import Statement

TAKE_NUMBER = Statement(
    "prints.take_number",
    "Take a number for a print job.",
    """
    UPDATE contest_counters SET next_print = next_print + 1 WHERE contest_id = :contest_id RETURNING next_print
    """,
)
INSERT = Statement(
    "prints.insert",
    "Create a print job.",
    """
    INSERT INTO prints (id, contest_id, number, participant_id, user_id, file_name, body, size_bytes, pages, created_at)
    VALUES (:id, :contest_id, :number, :participant_id, :user_id, :file_name, :body, :size_bytes, :pages, {now})
    """,
)
COUNT_RECENT = Statement(
    "prints.count_recent",
    "Count the print jobs of a participant in a period until now, and the time since the oldest of them.",
    """
    SELECT count(*) AS count, COALESCE({now} - min(created_at), 0) AS oldest_us FROM prints
    WHERE participant_id = :participant_id AND created_at > {now} - :period_us
    """,
)
_ROWS = """
    SELECT {columns} FROM prints
    LEFT JOIN participants ON participants.id = prints.participant_id
    JOIN users ON users.id = prints.user_id
    LEFT JOIN users AS claimants ON claimants.id = prints.claimed_by
    WHERE prints.contest_id = :contest_id
    """
_COLUMNS: Final = {
    "id": "prints.id",
    "contest_id": "prints.contest_id",
    "participant_id": "prints.participant_id",
    "participant_code": "participants.code",
    "participant_name": "participants.name",
    "user_id": "prints.user_id",
    "user_name": "users.name",
    "claimed_by": "claimants.name",
    "created_at": "prints.created_at",
}
_STATES = """
    AND CASE CAST(:state AS text) WHEN 'all' THEN true WHEN 'open' THEN state IN ('pending', 'printing')
        ELSE state = CAST(:state AS text) END
    """
PAGE = Statement(
    "prints.page",
    "List the print jobs of a contest, oldest first, keyset-paginated.",
    _ROWS + _STATES + " AND number > :after ORDER BY number LIMIT :limit",
    row=PrintRow,
    columns=_COLUMNS,
)
NEWEST = Statement(
    "prints.newest",
    "List the print jobs of a contest, newest first.",
    _ROWS + _STATES + " ORDER BY number DESC LIMIT :limit",
    row=PrintRow,
    columns=_COLUMNS,
)
OWN = Statement(
    "prints.own",
    "List the print jobs of participants, newest first, keyset-paginated.",
    _ROWS
    + _STATES
    + " AND participant_id IN (SELECT given_id FROM {given}) AND number < :before ORDER BY number DESC LIMIT :limit",
    input_columns={"given_id": "text"},
    row=PrintRow,
    columns=_COLUMNS,
)
FIND = Statement(
    "prints.find", "Read a print job without its text.", _ROWS + " AND number = :number", row=PrintRow, columns=_COLUMNS
)
BODY = Statement("prints.body", "Read the text of a print job.", "SELECT body FROM prints WHERE id = :id")
CLAIM = Statement(
    "prints.claim",
    "Claim a pending print job.",
    "UPDATE prints SET state = 'printing', claimed_by = :user_id WHERE id = :id AND state = 'pending'",
)
FINISH = Statement(
    "prints.finish",
    "Mark a print job as done.",
    """
    UPDATE prints SET state = 'done', finished_at = {now}, claimed_by = COALESCE(claimed_by, :user_id)
    WHERE id = :id AND state <> 'done'
    """,
)
REQUEUE = Statement(
    "prints.requeue",
    "Put a print job back into the queue.",
    """
    UPDATE prints SET state = 'pending', finished_at = NULL, claimed_by = NULL WHERE id = :id AND state <> 'pending'
    """,
)


async def insert(tx: Tx, new: NewPrint, number: int) -> None:
    """Create a print job."""
    await tx.execute(INSERT, number=number, **column_values(new))


async def take_number(tx: Tx, contest_id: str) -> int:
    """The next number of a contest; its counter stays locked until the commit."""
    (row,) = await tx.fetch(TAKE_NUMBER, contest_id=contest_id)
    return int(row["next_print"]) - 1


async def count_recent(tx: Tx, participant_id: str, *, period_us: int) -> tuple[int, int]:
    """The number of print jobs in the last period, and the age of the oldest of them."""
    (row,) = await tx.fetch(COUNT_RECENT, participant_id=participant_id, period_us=period_us)
    return row["count"], row["oldest_us"]


async def page(
    tx: Tx, contest_id: str, *, state: str = "all", after: int = 0, limit: int, newest_first: bool = False
) -> list[PrintRow]:
    """List print jobs; ``state`` is one of them, ``open`` or ``all``."""
    if newest_first:
        return await tx.fetch(NEWEST, contest_id=contest_id, state=state, limit=limit)
    return await tx.fetch(PAGE, contest_id=contest_id, state=state, after=after, limit=limit)


async def own(
    tx: Tx, contest_id: str, participant_ids: Sequence[str], *, state: str = "all", before: int, limit: int
) -> list[PrintRow]:
    """List the print jobs of participants, newest first."""
    rows = [(item,) for item in participant_ids]
    return await tx.fetch(OWN, rows, contest_id=contest_id, state=state, before=before, limit=limit) if rows else []


async def find(tx: Tx, contest_id: str, number: int) -> PrintRow | None:
    """One print job."""
    return await fetch_one(tx, FIND, contest_id=contest_id, number=number)


async def body(tx: Tx, row: PrintRow) -> str:
    """The text of a print job."""
    (found,) = await tx.fetch(BODY, id=row.id)
    return str(found["body"])


async def claim(tx: Tx, row: PrintRow, user_id: str) -> bool:
    """Claim a print job; False if it is not pending any more."""
    return await tx.execute(CLAIM, id=row.id, user_id=user_id) == 1


async def finish(tx: Tx, row: PrintRow, user_id: str) -> bool:
    """Mark a print job as done; False if it is already."""
    return await tx.execute(FINISH, id=row.id, user_id=user_id) == 1


async def requeue(tx: Tx, row: PrintRow) -> bool:
    """Put a print job back into the queue; False if it is there."""
    return await tx.execute(REQUEUE, id=row.id) == 1
