"""The log of scoreboard changes, in an order from which readers can resume, and snapshots to start from.

The order and the safe offset are those of ``store/judging/events.py``. Entries of one participant may be in another
order than their transactions, so each carries the version of the row; a reader applies only newer ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.store.contests.scoreboard import ScoreboardRow
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.notify import CHANNEL_SCOREBOARD
from adjudge.store.engine.statement import Statement
from adjudge.store.judging.events import START, EventOffset


@dataclass(frozen=True, slots=True)
class ViewCell:
    """A stored cell in one view."""

    participant_id: str
    problem_id: str
    cell: str
    version: int


@dataclass(frozen=True, slots=True)
class ScoreboardLogEntry:
    """A change of the scoreboard: cells and keys of a participant, of the participant itself, or everything.

    A decision of the jury about a submission is an entry of its own, because it need not change a cell.
    """

    offset: EventOffset
    contest_id: str
    kind: str
    """``cells``, ``participant``, ``submission`` or ``reset``."""
    view: str | None
    participant_id: str | None
    version: int
    """Of the row; an entry with a version that is not above the known one is old."""
    payload: str | None
    """Of ``cells``, JSON: ``keys`` (k1, k2, k3) and ``cells`` (problem id → cell); of ``submission``, its id."""


@dataclass(frozen=True, slots=True)
class NewLogEntry:
    """An entry to be appended."""

    contest_id: str
    kind: str
    view: str | None = None
    participant_id: str | None = None
    version: int = 0
    payload: str | None = None


APPEND_LOG = Statement(
    "scoreboard_log.append",
    "Append entries to the log of the scoreboard.",
    """
    INSERT INTO scoreboard_log (contest_id, kind, view, participant_id, version, payload, at)
    SELECT given_contest_id, given_kind, given_view, given_participant_id, given_version, given_payload, {now}
    FROM {given}
    """,
    input_columns={
        "given_contest_id": "text",
        "given_kind": "text",
        "given_view": "text",
        "given_participant_id": "text",
        "given_version": "bigint",
        "given_payload": "text",
    },
)
SAFE_OFFSET = Statement(
    "scoreboard_log.safe_offset",
    "Find the offset below which no change of a scoreboard can still appear.",
    "SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint) AS xid, CAST(0 AS bigint) AS id",
    sqlite_sql="SELECT 0 AS xid, COALESCE(max(id), 0) + 1 AS id FROM scoreboard_log",
)
BETWEEN = Statement(
    "scoreboard_log.between",
    "List changes of scoreboards between two offsets.",
    """
    SELECT {columns} FROM scoreboard_log
    WHERE (xid, id) >= (:from_xid, :from_id) AND (xid, id) < (:to_xid, :to_id) ORDER BY xid, id LIMIT :limit
    """,
    row=ScoreboardLogEntry,
)
BETWEEN_OF_CONTEST = Statement(
    "scoreboard_log.between_of_contest",
    "List changes of one scoreboard in one view between two offsets.",
    """
    SELECT {columns} FROM scoreboard_log
    WHERE contest_id = :contest_id AND (view IS NULL OR view = :view)
      AND (xid, id) >= (:from_xid, :from_id) AND (xid, id) < (:to_xid, :to_id)
    ORDER BY xid, id LIMIT :limit
    """,
    row=ScoreboardLogEntry,
)
LAST_OFFSET = Statement(
    "scoreboard_log.last_offset",
    "Find the last change of a scoreboard in one view, by participants that are shown in it.",
    """
    SELECT log.xid, log.id FROM scoreboard_log AS log LEFT JOIN participants ON participants.id = log.participant_id
    WHERE log.contest_id = :contest_id AND (log.xid, log.id) < (:to_xid, :to_id)
      AND (log.kind = 'reset' OR (log.kind = 'cells' AND log.view = :view))
      AND (CAST(:is_complete AS bigint) = 1 OR log.kind = 'reset'
           OR (NOT participants.hidden AND participants.kind <> 'test'))
    ORDER BY log.xid DESC, log.id DESC LIMIT 1
    """,
)
HAS_OFFSET = Statement(
    "scoreboard_log.has_offset",
    "Find whether an entry of one view still exists in the scoreboard log.",
    """
    SELECT id FROM scoreboard_log
    WHERE contest_id = :contest_id AND (view IS NULL OR view = :view) AND xid = :xid AND id = :id
    """,
)
DELETE_OLD = Statement(
    "scoreboard_log.delete_old",
    "Delete entries of the scoreboard log that are older than its retention.",
    """
    DELETE FROM scoreboard_log WHERE id IN (SELECT id FROM scoreboard_log WHERE id > 0 ORDER BY id LIMIT :limit)
      AND at < {now} - CAST(:older_than_us AS bigint)
    """,
)
SNAPSHOT_CELLS = Statement(
    "scoreboard.snapshot_cells",
    "Read all cells of a contest in one view.",
    "SELECT {columns} FROM scoreboard_cells WHERE contest_id = :contest_id",
    row=ViewCell,
    columns={
        "cell": "CASE WHEN CAST(:view AS text) = 'jury' THEN jury ELSE public END",
        "version": "CASE WHEN CAST(:view AS text) = 'jury' THEN jury_version ELSE public_version END",
    },
)
SNAPSHOT_ROWS = Statement(
    "scoreboard.snapshot_rows",
    "Read all sort keys of a contest in one view.",
    "SELECT {columns} FROM scoreboard_rows WHERE contest_id = :contest_id AND view = :view",
    row=ScoreboardRow,
)


@dataclass(frozen=True, slots=True)
class ScoreboardSnapshot:
    """One view of a scoreboard. Entries of the log from ``offset`` on may repeat what is already in it."""

    offset: EventOffset
    rows: list[ScoreboardRow]
    cells: list[ViewCell]


async def append_log(tx: Tx, entries: Sequence[NewLogEntry]) -> None:
    """Append entries and notify the readers."""
    if not entries:
        return
    values = [
        (item.contest_id, item.kind, item.view, item.participant_id, item.version, item.payload) for item in entries
    ]
    await tx.execute(APPEND_LOG, values)
    tx.notify(CHANNEL_SCOREBOARD)


async def safe_offset(tx: Tx) -> EventOffset:
    """The offset up to which the log may be read in this snapshot."""
    (row,) = await tx.fetch(SAFE_OFFSET)
    return EventOffset(row["xid"], row["id"])


async def read_between(tx: Tx, start: EventOffset, end: EventOffset, *, limit: int) -> list[ScoreboardLogEntry]:
    """The entries of all contests from ``start`` to before ``end``, in order."""
    return await tx.fetch(BETWEEN, from_xid=start.xid, from_id=start.id, to_xid=end.xid, to_id=end.id, limit=limit)


async def read_contest(
    tx: Tx, contest_id: str, start: EventOffset, end: EventOffset, *, view: str, limit: int
) -> list[ScoreboardLogEntry]:
    """The entries of one contest and view from ``start`` to before ``end``, in order; resets belong to both views."""
    return await tx.fetch(
        BETWEEN_OF_CONTEST,
        contest_id=contest_id,
        view=view,
        from_xid=start.xid,
        from_id=start.id,
        to_xid=end.xid,
        to_id=end.id,
        limit=limit,
    )


async def last_offset(tx: Tx, contest_id: str, end: EventOffset, *, view: str, is_complete: bool) -> EventOffset:
    """The last entry before ``end`` that changed a view; ``is_complete`` counts hidden participants and testers."""
    row = await fetch_one(
        tx,
        LAST_OFFSET,
        contest_id=contest_id,
        view=view,
        is_complete=int(is_complete),
        to_xid=end.xid,
        to_id=end.id,
    )
    return START if row is None else EventOffset(row["xid"], row["id"])


async def has_offset(tx: Tx, contest_id: str, offset: EventOffset, *, view: str) -> bool:
    """Whether the log still has an entry of a view, and thus all later ones."""
    found = await fetch_one(tx, HAS_OFFSET, contest_id=contest_id, view=view, xid=offset.xid, id=offset.id)
    return found is not None


async def snapshot(tx: Tx, contest_id: str, view: str) -> ScoreboardSnapshot:
    """Read one view of a scoreboard and the offset of the log to continue from."""
    offset = await safe_offset(tx)
    board = await tx.fetch(SNAPSHOT_ROWS, contest_id=contest_id, view=view)
    return ScoreboardSnapshot(offset, board, await tx.fetch(SNAPSHOT_CELLS, contest_id=contest_id, view=view))


async def delete_old_log(tx: Tx, *, older_than_ms: int, limit: int = 1_000) -> int:
    """Delete old entries; readers that were away longer read a snapshot."""
    return await tx.execute(DELETE_OLD, older_than_us=older_than_ms * 1_000, limit=limit)
