"""Ranks, the order of equal ranks, and first solves, derived from the keys and cells of a board.

Nothing here is stored: one changed row changes many ranks, so readers derive them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from adjudge.contests.board import Board, BoardParticipant, BoardRow, collation_key


class EqualRankOrder(StrEnum):
    """How rows of equal rank are listed; it does not change ranks."""

    ORGANIZATION = "organization"
    """By the name of the organization, then by the name of the participant."""
    NAME = "name"


@dataclass(frozen=True, slots=True)
class RankedRow:
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


def sort_key(row: BoardRow, positions: Mapping[str, int]) -> tuple[bool, int, int, int, int]:
    """Return the key that lists the rows of a board in ascending order."""
    k1, k2, k3 = row.keys
    return row.participant.is_disqualified, -k1, -k2, -k3, positions[row.participant.id]


def rank_rows(rows: Iterable[BoardRow], positions: Mapping[str, int]) -> list[RankedRow]:
    """Sort rows and assign ranks (1, 2, 2, 4).

    Participants who are not ranked are listed among the others by their keys, without a rank; disqualified ones are
    listed last. Rows that are sorted already, except for a few, are sorted in linear time.
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


def first_solves(board: Board) -> dict[str, str]:
    """Return the participant who solved each problem first, by problem id; problems without one are left out.

    Only ranked participants count. While an earlier submission of somebody else is pending, nobody is first: it could
    still be accepted. An earlier pending submission of the same participant changes nothing.
    """
    rows = [row for row in board.rows if row.participant.is_ranked]
    found = {}
    for index, problem in enumerate(board.problems):
        if (row := _first_solver(rows, index)) is not None:
            found[problem.id] = row.participant.id
    return found


def _first_solver(rows: Sequence[BoardRow], index: int) -> BoardRow | None:
    solved = [(number, row) for row in rows if (number := row.cells[index].first_accepted_number) is not None]
    if not solved:
        return None
    number, first = min(solved, key=lambda item: item[0])
    is_open = any(
        (pending := row.cells[index].earliest_pending_number) is not None and pending < number and row is not first
        for row in rows
    )
    return None if is_open else first
