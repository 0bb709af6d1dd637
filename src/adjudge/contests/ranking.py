"""Ranks, the order of equal ranks, and first solves, derived from the keys and cells of a board.

Nothing here is stored: one changed row changes many ranks, so readers derive them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from adjudge.contests.board import Board, BoardParticipant, BoardRow, collation_key

SortKey: TypeAlias = tuple[bool, int, int, int, int]
"""Lists rows in ascending order: disqualified last, then the negated keys, then the listing position."""


class EqualRankOrder(StrEnum):
    """How rows of equal rank are listed; it does not change ranks."""

    ORGANIZATION = "organization"
    """By the name of the organization, then by the name of the participant."""
    NAME = "name"


class RankedRow(NamedTuple):
    """A row with its rank; None for participants who are not ranked."""

    row: BoardRow
    rank: int | None


def listing_positions(
    participants: Iterable[BoardParticipant], order: EqualRankOrder = EqualRankOrder.NAME
) -> dict[str, int]:
    """Number the participants in the order in which equal ranks are listed.

    It depends on names alone, so that a caller computes it once and not with every verdict.
    """

    def key(item: BoardParticipant) -> tuple[str, str, str]:
        organization = collation_key(item.organization_name) if order is EqualRankOrder.ORGANIZATION else ""
        return organization, collation_key(item.name), item.id

    return {item.id: position for position, item in enumerate(sorted(participants, key=key))}


def sort_key(row: BoardRow, positions: Mapping[str, int]) -> SortKey:
    """Return the key that lists the rows of a board in ascending order."""
    k1, k2, k3 = row.keys
    return row.participant.is_disqualified, -k1, -k2, -k3, positions[row.participant.id]


def rank_rows(rows: Iterable[BoardRow], positions: Mapping[str, int]) -> list[RankedRow]:
    """Sort rows and assign ranks (1, 2, 2, 4).

    Participants who are not ranked are listed among the others by their keys, without a rank; disqualified ones are
    listed last. ``LiveRanking`` is for boards that change row by row.
    """
    ranked: list[RankedRow] = []
    count, rank, previous = 0, 0, None
    for row in sorted(rows, key=lambda row: sort_key(row, positions)):
        if not row.participant.is_ranked:
            ranked.append(RankedRow(row, None))
            continue
        count += 1
        if row.keys != previous:
            rank, previous = count, row.keys
        ranked.append(RankedRow(row, rank))
    return ranked


def rank_board(board: Board, order: EqualRankOrder = EqualRankOrder.NAME) -> list[RankedRow]:
    """Rank a whole board."""
    return rank_rows(board.rows, listing_positions((row.participant for row in board.rows), order))


class LiveRanking:
    """A sorted board that is changed row by row; one change costs two binary searches.

    Ranks are derived for the rows that are read, so that the first page of 10,000 rows does not rank them all.
    """

    def __init__(self, rows: Iterable[BoardRow], order: EqualRankOrder = EqualRankOrder.NAME) -> None:
        self._rows = {row.participant.id: row for row in rows}
        self._positions = listing_positions((row.participant for row in self._rows.values()), order)
        self._ids = {position: participant_id for participant_id, position in self._positions.items()}
        self._listed = sorted(sort_key(row, self._positions) for row in self._rows.values())
        self._ranked = sorted(_rank_key(row) for row in self._rows.values() if row.participant.is_ranked)

    def __len__(self) -> int:
        return len(self._rows)

    def update(self, row: BoardRow) -> None:
        """Replace the row of a participant whose name and status did not change."""
        old = self._rows[row.participant.id]
        del self._listed[bisect_left(self._listed, sort_key(old, self._positions))]
        insort(self._listed, sort_key(row, self._positions))
        if row.participant.is_ranked:
            del self._ranked[bisect_left(self._ranked, _rank_key(old))]
            insort(self._ranked, _rank_key(row))
        self._rows[row.participant.id] = row

    def position_of(self, participant_id: str) -> int:
        """Return where a row is listed, from 0."""
        return bisect_left(self._listed, sort_key(self._rows[participant_id], self._positions))

    def rank_of(self, participant_id: str) -> int | None:
        return self._rank(self._rows[participant_id])

    def rank_among(self, row: BoardRow) -> int:
        """Return the rank that a row would have among the ranked rows."""
        return bisect_left(self._ranked, _rank_key(row)) + 1

    def page(self, start: int, limit: int) -> list[RankedRow]:
        """Return rows in listing order with their ranks."""
        rows = (self._rows[self._ids[key[-1]]] for key in self._listed[start : start + limit])
        return [RankedRow(row, self._rank(row)) for row in rows]

    def _rank(self, row: BoardRow) -> int | None:
        return self.rank_among(row) if row.participant.is_ranked else None


def _rank_key(row: BoardRow) -> tuple[int, int, int]:
    k1, k2, k3 = row.keys
    return -k1, -k2, -k3


def first_solves(board: Board) -> dict[str, str]:
    """Return the participant who solved each problem first, by problem id; problems without one are left out.

    Only ranked participants count. While an earlier submission of somebody else is pending, nobody is first: it could
    still be accepted. An earlier pending submission of the same participant changes nothing.
    """
    firsts = ((problem.id, first_solver(board.rows, index)) for index, problem in enumerate(board.problems))
    return {problem_id: participant_id for problem_id, participant_id in firsts if participant_id is not None}


def first_solver(rows: Sequence[BoardRow], problem_index: int) -> str | None:
    """Return who solved one problem first; after a verdict only that problem can change."""
    solved: tuple[int, str] | None = None
    pending: list[tuple[int, str]] = []
    for row in rows:
        cell = row.cells[problem_index]
        accepted, waiting = cell.first_accepted_number, cell.earliest_pending_number
        if (accepted is None and waiting is None) or not row.participant.is_ranked:
            continue
        if accepted is not None and (solved is None or accepted < solved[0]):
            solved = (accepted, row.participant.id)
        if waiting is not None:
            pending.append((waiting, row.participant.id))
    if solved is None or any(number < solved[0] and other != solved[1] for number, other in pending):
        return None
    return solved[1]
