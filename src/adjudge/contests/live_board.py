"""A board in memory that the entries of the scoreboard log change row by row.

An entry carries whole states with a version, and is applied only where its version is newer than the known one: entries
may be repeated and, for one participant, out of order. Ranks and first solves are derived incrementally, so that an
entry costs the same for ten rows and for ten thousand.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from adjudge.contests.board import Board, BoardParticipant, BoardRow
from adjudge.contests.formats.base import Cell, RowKeys
from adjudge.contests.load_board import LoadedBoard
from adjudge.contests.ranking import LiveRanking
from adjudge.domain.contest import ParticipantKind
from adjudge.store.contests.scoreboard_log import ScoreboardLogEntry
from adjudge.store.judging.events import EventOffset

_MAX_FILTERS: Final = 64
"""Rankings of filters that a board keeps; the one that was asked for first is dropped."""


@dataclass(frozen=True, slots=True)
class BoardFilter:
    """Selects rows; ranks are computed among them."""

    group_id: str | None = None
    organization_id: str | None = None
    kind: ParticipantKind | None = None

    def matches(self, participant: BoardParticipant) -> bool:
        """Whether the row of a participant is selected."""
        return (
            (self.group_id is None or self.group_id in participant.group_ids)
            and (self.organization_id is None or self.organization_id == participant.organization_id)
            and (self.kind is None or self.kind is participant.kind)
        )


ALL_ROWS: Final = BoardFilter()


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that changed, and its sort keys before: readers derive from them which ranks changed."""

    row: BoardRow
    previous_keys: RowKeys | None
    """None for a reader that resumes: what it knows of the row is not known here."""


class LiveFirstSolves:
    """Who solved each problem first; one change costs a binary search.

    The rule is that of ``ranking.first_solver``: only ranked participants, and nobody while an earlier submission of
    somebody else is pending.
    """

    def __init__(self, rows: Iterable[BoardRow], problems: int) -> None:
        self._accepted: list[list[tuple[int, str]]] = [[] for _ in range(problems)]
        self._pending: list[list[tuple[int, str]]] = [[] for _ in range(problems)]
        for row in rows:
            if row.participant.is_ranked:
                for index, cell in enumerate(row.cells):
                    self._add(index, row.participant.id, cell)
        for numbers in (*self._accepted, *self._pending):
            numbers.sort()

    def _add(self, index: int, participant_id: str, cell: Cell) -> None:
        if cell.first_accepted_number is not None:
            self._accepted[index].append((cell.first_accepted_number, participant_id))
        if cell.earliest_pending_number is not None:
            self._pending[index].append((cell.earliest_pending_number, participant_id))

    def update(self, index: int, participant_id: str, before: Cell, after: Cell) -> None:
        """Replace the cell of a ranked participant."""
        _move(self._accepted[index], participant_id, before.first_accepted_number, after.first_accepted_number)
        _move(self._pending[index], participant_id, before.earliest_pending_number, after.earliest_pending_number)

    def first(self, index: int) -> str | None:
        """Who solved a problem first."""
        if not self._accepted[index]:
            return None
        number, participant_id = self._accepted[index][0]
        for earlier, other in self._pending[index]:
            if earlier >= number:
                break
            if other != participant_id:
                return None
        return participant_id

    def first_of_all(self) -> tuple[str, int] | None:
        """Who solved a problem before anybody solved any, and the index of that problem."""
        solved = [(numbers[0], index) for index, numbers in enumerate(self._accepted) if numbers]
        if not solved:
            return None
        (number, participant_id), index = min(solved)
        for pending in self._pending:
            for earlier, other in pending:
                if earlier >= number:
                    break
                if other != participant_id:
                    return None
        return participant_id, index


def _move(numbers: list[tuple[int, str]], participant_id: str, before: int | None, after: int | None) -> None:
    if before == after:
        return
    if before is not None:
        del numbers[bisect_left(numbers, (before, participant_id))]
    if after is not None:
        insort(numbers, (after, participant_id))


class LiveBoard:
    """One view of a scoreboard in memory. Without what is hidden (``public_part``), unless it is complete."""

    def __init__(self, loaded: LoadedBoard, *, view: str, is_complete: bool, last: EventOffset) -> None:
        source = loaded.board if is_complete else public_part(loaded.board)
        shown = source.rows
        self.view = view
        self.is_complete = is_complete
        self.source: Final = replace(source, rows=())
        """The columns, groups and organizations."""
        self.offset = loaded.offset
        """Entries below it are in the board."""
        self.last = last
        """The last entry that changed it."""
        self._rows = {row.participant.id: row for row in shown}
        self._index = {problem.id: index for index, problem in enumerate(source.problems)}
        self._row_versions = dict(loaded.row_versions)
        self._cell_versions = dict(loaded.cell_versions)
        self._rankings = {ALL_ROWS: LiveRanking(shown)}
        self._firsts = LiveFirstSolves(shown, len(source.problems))

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, participant_id: str) -> bool:
        return participant_id in self._rows

    def row(self, participant_id: str) -> BoardRow | None:
        """The row of a participant; None if it has none here."""
        return self._rows.get(participant_id)

    def rows(self) -> tuple[BoardRow, ...]:
        """All rows, in no order."""
        return tuple(self._rows.values())

    def board(self) -> Board:
        """The board as a value."""
        return replace(self.source, rows=self.rows())

    def is_same(self, other: LiveBoard) -> bool:
        """Whether both show the same rows and columns."""
        return self.source == other.source and self._rows == other._rows

    def first_solver(self, index: int) -> str | None:
        """Who solved a problem first, among all ranked participants."""
        return self._firsts.first(index)

    def first_solver_of_all(self) -> tuple[str, int] | None:
        """Who made the first solve of the contest, and the index of the problem."""
        return self._firsts.first_of_all()

    def ranking(self, which: BoardFilter = ALL_ROWS) -> LiveRanking:
        """The ranking of the rows that a filter selects; it stays up to date."""
        known = self._rankings.get(which)
        if known is None:
            if len(self._rankings) >= _MAX_FILTERS:
                del self._rankings[next(item for item in self._rankings if item != ALL_ROWS)]
            known = self._rankings[which] = LiveRanking(
                row for row in self._rows.values() if which.matches(row.participant)
            )
        return known

    def apply(self, entry: ScoreboardLogEntry) -> list[RowChange]:
        """Apply an entry with cells; return the rows that look different now. Nothing changes if it is old."""
        row = self._rows.get(entry.participant_id or "")
        if entry.view != self.view or entry.payload is None or row is None or entry.offset < self.offset:
            return []
        after = self._new_row(row, entry.version, json.loads(entry.payload))
        if after == row:
            return []
        self.last = entry.offset
        return self.replace_row(after)

    def _new_row(self, row: BoardRow, version: int, document: dict[str, Any]) -> BoardRow:
        participant_id = row.participant.id
        keys, cells = row.keys, list(row.cells)
        if version > self._row_versions.get(participant_id, 0):
            self._row_versions[participant_id] = version
            keys = RowKeys(*document["keys"])
        for problem_id, cell in document["cells"].items():
            index = self._index.get(problem_id)
            if index is not None and version > self._cell_versions.get((participant_id, problem_id), 0):
                self._cell_versions[participant_id, problem_id] = version
                cells[index] = Cell(**cell)
        return replace(row, keys=keys, cells=tuple(cells))

    def replace_row(self, after: BoardRow) -> list[RowChange]:
        """Replace the row of a participant who has one; return the rows that look different now."""
        participant = after.participant
        before = self._rows[participant.id]
        self._rows[participant.id] = after
        for which, ranking in self._rankings.items():
            if which.matches(participant):
                ranking.update(after)
        changes = [RowChange(after, before.keys)]
        if participant.is_ranked:
            others = self._update_firsts(before, after) - {participant.id}
            changes += [RowChange(self._rows[item], self._rows[item].keys) for item in sorted(others)]
        return changes

    def _update_firsts(self, before: BoardRow, after: BoardRow) -> set[str]:
        """Return the participants who became first, or are no longer."""
        changed: set[str | None] = set()
        for index, (old, new) in enumerate(zip(before.cells, after.cells, strict=True)):
            if old is not new:
                was = self._firsts.first(index)
                self._firsts.update(index, after.participant.id, old, new)
                now = self._firsts.first(index)
                if was != now:
                    changed |= {was, now}
        return {item for item in changed if item is not None}


def public_part(board: Board) -> Board:
    """The board without hidden participants, testers and hidden groups, and with organisations of shown rows only."""
    hidden = {item.id for item in board.groups if item.is_hidden}
    rows = tuple(
        replace(row, participant=row.participant.without_groups(hidden))
        for row in board.rows
        if is_shown(row.participant)
    )
    shown = {row.participant.organization_id for row in rows}
    return replace(
        board,
        rows=rows,
        groups=tuple(item for item in board.groups if not item.is_hidden),
        organizations={key: name for key, name in board.organizations.items() if key in shown},
    )


def is_shown(participant: BoardParticipant) -> bool:
    """Whether everybody sees the row: testers and hidden participants are for the jury only."""
    return not participant.is_hidden and participant.kind is not ParticipantKind.TEST
