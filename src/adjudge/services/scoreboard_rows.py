"""Rows of boards as response models: what a row, a cell and a change look like on the wire."""

from __future__ import annotations

import json
from dataclasses import asdict

from adjudge.contests.board import BoardRow
from adjudge.contests.exports import points_number
from adjudge.contests.formats.base import Cell
from adjudge.contests.live_board import LiveBoard, RowChange
from adjudge.domain.contest import SECOND_US
from adjudge.schema.scoreboard import ScoreboardCellRead, ScoreboardRowEvent, ScoreboardRowRead
from adjudge.services.scoreboard_feed import BoardTopic


def read_row(board: LiveBoard, row: BoardRow, rank: int | None, *, is_own: bool = False) -> ScoreboardRowRead:
    """A row; the own row, read from the complete board, has no rank, no first marks and no hidden groups."""
    participant, keys = row.participant, row.keys
    if is_own:
        participant = participant.without_groups({item.id for item in board.source.groups if item.is_hidden})
    is_pass_fail = board.source.is_pass_fail
    return ScoreboardRowRead(
        participant_id=participant.id,
        name=participant.name,
        organization_id=participant.organization_id,
        organization=participant.organization_name,
        group_ids=list(participant.group_ids),
        kind=participant.kind,
        is_ranked=participant.is_ranked,
        is_disqualified=participant.is_disqualified,
        rank=rank,
        keys=list(keys),
        solved=keys.k1 if is_pass_fail else None,
        score=None if is_pass_fail else points_number(keys.k1),
        penalty_sec=-keys.k2,
        cells=[
            _read_cell(cell, is_pass_fail=is_pass_fail, is_first=not is_own and _is_first(board, row, index))
            for index, cell in enumerate(row.cells)
        ],
    )


def _is_first(board: LiveBoard, row: BoardRow, index: int) -> bool:
    return row.cells[index].is_solved and board.first_solver(index) == row.participant.id


def _read_cell(cell: Cell, *, is_pass_fail: bool, is_first: bool) -> ScoreboardCellRead:
    has_time = cell.is_solved if is_pass_fail else cell.score_micro > 0
    return ScoreboardCellRead(
        attempts=cell.attempts,
        pending=cell.pending,
        is_solved=cell.is_solved,
        is_first=is_first,
        time_sec=(cell.solved_us or cell.time_us) // SECOND_US if has_time else None,
        score=None if is_pass_fail else points_number(cell.score_micro),
    )


def encode_change(board: LiveBoard, topic: BoardTopic, change: RowChange) -> str:
    """The data of an event about one row; a topic of one participant gets it without rank and position."""
    row = change.row
    if topic.participant_id is not None:
        return _dump(asdict(read_row(board, row, None, is_own=True)))
    ranking = board.ranking(topic.which)
    event = ScoreboardRowEvent(
        row=read_row(board, row, ranking.rank_of(row.participant.id)),
        position=ranking.position_of(row.participant.id),
        previous_keys=None if change.previous_keys is None else list(change.previous_keys),
    )
    return _dump(asdict(event))


def _dump(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
