"""The scoreboard of the Contest API, made from a board."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from adjudge.contests.board import Board, BoardRow
from adjudge.contests.ccs.live import state_object
from adjudge.contests.ccs.times import format_reltime, format_time
from adjudge.contests.ccs.version import CcsVersion, Object
from adjudge.contests.exports import StateTimes, points_number
from adjudge.contests.formats.base import Cell
from adjudge.contests.ranking import RankedRow
from adjudge.domain.contest import MINUTE_US, SECOND_US


def scoreboard_object(
    board: Board,
    rows: Iterable[RankedRow],
    *,
    time_at: int,
    contest_time_us: int,
    state: StateTimes,
    version: CcsVersion,
) -> Object:
    """The scoreboard. Participants without a rank are left out: the format has no row for them."""
    return {
        "time": format_time(time_at),
        "contest_time": format_reltime(contest_time_us),
        "state": state_object(state),
        "rows": [_row(board, item, version) for item in rows if item.rank is not None],
    }


def _row(board: Board, item: RankedRow, version: CcsVersion) -> Object:
    return {
        "rank": item.rank,
        "team_id": item.row.participant.code,
        "score": _score(board, item.row, version),
        "problems": [
            _problem(board, problem.label, cell, version)
            for problem, cell in zip(board.problems, item.row.cells, strict=True)
        ],
    }


def _score(board: Board, row: BoardRow, version: CcsVersion) -> Object:
    keys = row.keys
    if board.is_pass_fail:
        score: dict[str, Any] = {"num_solved": keys.k1, "total_time": _duration(-keys.k2 * SECOND_US, version)}
        return {**score, "time": _duration(-keys.k3 * SECOND_US, version)} if keys.k1 else score
    score = {"score": points_number(keys.k1)}
    scored = [cell.time_us for cell in row.cells if cell.score_micro > 0]
    return {**score, "time": _duration(max(scored), version)} if scored else score


def _problem(board: Board, label: str, cell: Cell, version: CcsVersion) -> Object:
    found: dict[str, Any] = {"problem_id": label, "num_judged": cell.attempts, "num_pending": cell.pending}
    if board.is_pass_fail:
        found["solved"] = cell.is_solved
        return found if cell.solved_us is None else {**found, "time": _duration(cell.solved_us, version)}
    found["score"] = points_number(cell.score_micro)
    return {**found, "time": _duration(cell.time_us, version)} if cell.score_micro > 0 else found


def _duration(us: int, version: CcsVersion) -> int | str:
    """Whole minutes in 2023-06, a relative time in 2026-01."""
    return us // MINUTE_US if version is CcsVersion.V2023_06 else format_reltime(us)
