"""Replays a contest for virtual runs: the rows of the scoreboard at any participant time.

A history has one event per submission that counts: the row of its participant after it. The rows at a time are those of
the last events before it, so they equal a fold of the submissions received before that time. Verdicts are those of
today, from the time of the submission on, without a freeze: the results are public before a virtual run can start.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from adjudge.contests.board import Board, BoardRow
from adjudge.contests.folding import Rules, Submissions, list_counted, problem_scoring
from adjudge.contests.formats.base import Cell
from adjudge.contests.live_board import LiveBoard
from adjudge.contests.load_board import LoadedBoard
from adjudge.domain.contest import ParticipantKind
from adjudge.store.contests.models import ParticipantRow
from adjudge.store.contests.scoreboard import PUBLIC
from adjudge.store.judging.events import EventOffset

REPLAYED_KINDS: Final = (ParticipantKind.OFFICIAL, ParticipantKind.UNOFFICIAL)
"""Whose rows are replayed: other virtual runs have clocks of their own."""
_REPLAY_XID: Final = 10**18 - 1
"""In the ids of events; no transaction has this number, so such an id is no position in the scoreboard log."""


@dataclass(frozen=True, slots=True)
class ReplayEvent:
    """The row of a participant after one of their submissions."""

    time_us: int
    """Participant time of the submission."""
    number: int
    row: BoardRow


class ReplayHistory:
    """All events of the rows of a contest, by time."""

    def __init__(self, first: Iterable[BoardRow], events: Iterable[ReplayEvent]) -> None:
        self._first = {row.participant.id: row for row in first}
        """The rows at the start."""
        self._events = sorted(events, key=lambda item: (item.time_us, item.number))
        self._times = [item.time_us for item in self._events]
        self._own: dict[str, list[ReplayEvent]] = {item: [] for item in self._first}
        for event in self._events:
            self._own[event.row.participant.id].append(event)

    def __len__(self) -> int:
        return len(self._events)

    @property
    def row_count(self) -> int:
        """The number of participants."""
        return len(self._first)

    def rows_at(self, time_us: int) -> list[BoardRow]:
        """The rows with the submissions received before a time."""
        return [self._row_at(item, time_us) for item in self._first]

    def _row_at(self, participant_id: str, time_us: int) -> BoardRow:
        own = self._own[participant_id]
        count = bisect_left(own, time_us, key=lambda item: item.time_us)
        return own[count - 1].row if count else self._first[participant_id]

    def between(self, start_us: int, end_us: int) -> Sequence[ReplayEvent]:
        """The events that rows at ``end_us`` have and rows at ``start_us`` have not."""
        return self._events[bisect_left(self._times, start_us) : bisect_left(self._times, end_us)]

    def next_time(self, time_us: int) -> int | None:
        """The time of the first event that the rows at a time do not have."""
        index = bisect_left(self._times, time_us)
        return self._times[index] if index < len(self._times) else None


def make_history(
    rules: Rules, board: Board, participants: Mapping[str, ParticipantRow], submissions: Submissions
) -> ReplayHistory:
    """Fold the submissions of the rows of a board; participants without a row are left out."""
    first, events = list[BoardRow](), list[ReplayEvent]()
    for row in board.rows:
        participant = participants.get(row.participant.id)
        if participant is None:
            continue  # another virtual run, or removed since the board was read
        empty = tuple(Cell() for _ in board.problems)
        keys = rules.format.combine(rules.config, (), participant.penalty_adjust_sec)
        first.append(BoardRow(row.participant, keys, empty))
        events += _events(rules, board, participant, first[-1], submissions)
    return ReplayHistory(first, events)


def _events(
    rules: Rules, board: Board, participant: ParticipantRow, row: BoardRow, submissions: Submissions
) -> Iterable[ReplayEvent]:
    if participant.disqualified_at is not None:
        return
    folded = list[tuple[int, int, int, Cell]]()
    for index, problem in enumerate(board.problems):
        rows = submissions.get((participant.id, problem.id), ())
        if problem.id in rules.problems and rows:
            counted = list_counted(rules, participant, rows)
            scoring = problem_scoring(rules.problems[problem.id], rows)
            for count, item in enumerate(counted, 1):
                cell = rules.format.fold(rules.config, scoring, counted[:count])
                folded.append((item.time_us, item.number, index, cell))
    for time_us, number, index, cell in sorted(folded, key=lambda item: item[:2]):
        cells = (*row.cells[:index], cell, *row.cells[index + 1 :])
        row = replace(row, cells=cells, keys=rules.format.combine(rules.config, cells, participant.penalty_adjust_sec))
        yield ReplayEvent(time_us, number, row)


def own_replay_row(row: BoardRow) -> BoardRow:
    """The row of the viewer's virtual run on its replay: ranked, but never the first to solve a problem."""
    cells = (replace(cell, first_accepted_number=None, earliest_pending_number=None) for cell in row.cells)
    return replace(row, participant=replace(row.participant, is_own_replay=True), cells=tuple(cells))


def replay_board(final: LiveBoard, history: ReplayHistory, own: BoardRow | None, time_us: int) -> LiveBoard:
    """The board at a time, with the columns and groups of the final one, and the row of ``own_replay_row``."""
    rows = history.rows_at(time_us) + ([] if own is None else [own])
    loaded = LoadedBoard(replace(final.source, rows=tuple(rows)), final.offset, {}, {})
    return LiveBoard(loaded, view=PUBLIC, is_complete=True, last=replay_offset(time_us))


def replay_offset(time_us: int) -> EventOffset:
    """The id of the events before a time."""
    return EventOffset(_REPLAY_XID, time_us)


def parse_replay_offset(offset: EventOffset) -> int | None:
    """The time of an id; None for an id of the scoreboard log."""
    return offset.id if offset.xid == _REPLAY_XID else None
