"""Boards for tests of ranking, awards, resolver and exports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.contests.board import Board, BoardGroup, BoardParticipant, BoardProblem, BoardRow
from adjudge.contests.formats.base import Cell, RowKeys
from adjudge.domain.contest import MINUTE_US


def row(name: str, keys: tuple[int, ...] = (0,), cells: Sequence[Cell] = (), **participant: Any) -> BoardRow:
    """A row whose participant's id is its name, and its code ``code-`` and the name."""
    fields = {"code": f"code-{name}"} | participant
    return BoardRow(BoardParticipant(id=name, name=name, **fields), RowKeys(*keys), tuple(cells))


def icpc_row(name: str, solved: int, penalty_min: int = 0, last_min: int = 0, **participant: Any) -> BoardRow:
    """A row of an ICPC contest without cells."""
    return row(name, (solved, -penalty_min * 60, -last_min * 60), **participant)


def board(*rows: BoardRow, groups: Sequence[BoardGroup] = (), organizations: dict[str, str] | None = None) -> Board:
    """A board with as many problems as the rows have cells: A, B, C …"""
    labels = "ABCDEFGH"[: len(rows[0].cells) if rows else 0]
    problems = tuple(BoardProblem(f"problem-{label.lower()}", label) for label in labels)
    return Board(problems, rows, tuple(groups), organizations or {})


def solved(minute: int, number: int, attempts: int = 1, pending: int | None = None) -> Cell:
    """A solved cell of an ICPC contest; ``pending`` is the number of its first pending submission."""
    return Cell(
        attempts=attempts,
        pending=0 if pending is None else 1,
        solved_us=minute * MINUTE_US,
        time_us=minute * MINUTE_US,
        penalty_sec=(minute + 20 * (attempts - 1)) * 60,
        first_accepted_number=number,
        earliest_pending_number=pending,
    )


def tried(attempts: int = 1, pending: int | None = None) -> Cell:
    """An unsolved cell."""
    return Cell(attempts=attempts, pending=0 if pending is None else 1, earliest_pending_number=pending)
