"""One small contest under every format: complete scoreboards, computed on paper.

Problems A and B have 100 points in two subtasks (40 + 60), C is accepted or rejected and worth 50. The freeze is at
minute 60. Numbers are those of the submissions; the subtask scores of a partial score are in brackets.

===  ========================================  ===================================  =============================
who  A                                         B                                    C
===  ========================================  ===================================  =============================
ann  1: 10 min PA [40 0], 4: 30 min PA [0 60]  7: 50 min WA, 9: 70 min AC           10: 80 min AC
bob  2: 20 min AC                              5: 40 min PA [40 0], 8: 65 min CE    11: 90 min WA
cat  12: 100 min PA [0 60]                                                          3: 25 min WA, 6: 45 min AC
===  ========================================  ===================================  =============================
"""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.contests.board import Board, BoardParticipant, BoardRow
from adjudge.contests.formats import get_format
from adjudge.contests.formats.base import JudgedSubmission, ProblemScoring
from adjudge.contests.ranking import first_solves, rank_board
from adjudge.domain.contest import MICRO_POINTS, MINUTE_US
from tests.unit.contests.boards import board
from tests.unit.contests.formats.histories import submission

SCORED = ProblemScoring(100 * MICRO_POINTS, 100 * MICRO_POINTS)
PROBLEMS = (SCORED, SCORED, ProblemScoring(50 * MICRO_POINTS))
FREEZE_US = 60 * MINUTE_US


def _partial(number: int, minute: int, one: int, two: int) -> JudgedSubmission:
    verdict = "AC" if one + two == 100 else "PA"
    return submission(number, minute, verdict, one + two, {"one": one, "two": two})


HISTORIES: dict[str, tuple[list[JudgedSubmission], ...]] = {
    "ann": (
        [_partial(1, 10, 40, 0), _partial(4, 30, 0, 60)],
        [submission(7, 50, "WA", 0, {"one": 0, "two": 0}), _partial(9, 70, 40, 60)],
        [submission(10, 80, "AC")],
    ),
    "bob": (
        [_partial(2, 20, 40, 60)],
        [_partial(5, 40, 40, 0), submission(8, 65, "CE")],
        [submission(11, 90, "WA")],
    ),
    "cat": (
        [_partial(12, 100, 0, 60)],
        [],
        [submission(3, 25, "WA"), submission(6, 45, "AC")],
    ),
}


def _board(name: str, cfg: dict[str, Any], *, public: bool) -> Board:
    scoring = get_format(name)
    config = scoring.parse_config(cfg)
    rows = []
    for participant, problems in HISTORIES.items():
        shown = [[i.as_pending() if public and i.time_us >= FREEZE_US else i for i in items] for items in problems]
        cells = tuple(scoring.fold(config, problem, items) for problem, items in zip(PROBLEMS, shown, strict=True))
        rows.append(BoardRow(BoardParticipant(participant, participant), scoring.combine(config, cells), cells))
    return board(*rows)


def _result_rows(value: Board, unit: int) -> list[tuple[str, int | None, float, int]]:
    """Name, rank, first key in its unit, and second key in minutes."""
    return [
        (item.row.participant.name, item.rank, item.row.keys.k1 / unit, -item.row.keys.k2 // 60)
        for item in rank_board(value)
    ]


def _points(value: Board) -> dict[str, list[float]]:
    return {row.participant.name: [cell.score_micro / MICRO_POINTS for cell in row.cells] for row in value.rows}


def test_icpc_jury() -> None:
    # ann: B 70 + 20 (the WA) = 90, C 80: two solved, 170. bob: A 20. cat: C 45 + 20 = 65.
    value = _board("icpc", {}, public=False)
    assert _result_rows(value, 1) == [("ann", 1, 2, 170), ("bob", 2, 1, 20), ("cat", 3, 1, 65)]
    assert [cell.attempts for row in value.rows for cell in row.cells] == [2, 2, 1, 1, 1, 1, 1, 0, 2]
    assert first_solves(value) == {"problem-a": "bob", "problem-b": "ann", "problem-c": "cat"}


def test_icpc_public() -> None:
    # Everything from minute 60 is pending: ann's B and C, bob's CE and C, cat's A. ann has solved nothing.
    value = _board("icpc", {}, public=True)
    assert _result_rows(value, 1) == [("bob", 1, 1, 20), ("cat", 2, 1, 65), ("ann", 3, 0, 0)]
    assert [cell.pending for row in value.rows for cell in row.cells] == [0, 1, 1, 0, 1, 1, 1, 0, 0]
    # Nobody has solved B; ann's pending submission 10 to C is later than cat's accepted one 6.
    assert first_solves(value) == {"problem-a": "bob", "problem-c": "cat"}


def test_ioi() -> None:
    # ann: A 40 + 60 from two submissions, B 100, C 50. bob: 100 + 40. cat: A 60, C 50.
    value = _board("ioi", {}, public=False)
    assert _points(value) == {"ann": [100, 100, 50], "bob": [100, 40, 0], "cat": [60, 0, 50]}
    assert _result_rows(value, MICRO_POINTS) == [("ann", 1, 250, 0), ("bob", 2, 140, 0), ("cat", 3, 110, 0)]
    frozen = _board("ioi", {}, public=True)
    assert _result_rows(frozen, MICRO_POINTS) == [("bob", 1, 140, 0), ("ann", 2, 100, 0), ("cat", 3, 50, 0)]


def test_best_submission() -> None:
    # ann's A: the better one of 40 and 60.
    value = _board("best", {"tie_break": "time"}, public=False)
    assert _points(value) == {"ann": [60, 100, 50], "bob": [100, 40, 0], "cat": [60, 0, 50]}
    # Last improvements: ann C at 80, bob B at 40, cat A at 100.
    assert _result_rows(value, MICRO_POINTS) == [("ann", 1, 210, 80), ("bob", 2, 140, 40), ("cat", 3, 110, 100)]


def test_last_submission() -> None:
    # bob's last submission to B is the compile error: 0. So cat is before bob.
    value = _board("last", {}, public=False)
    assert _points(value) == {"ann": [60, 100, 50], "bob": [100, 0, 0], "cat": [60, 0, 50]}
    assert _result_rows(value, MICRO_POINTS) == [("ann", 1, 210, 0), ("cat", 2, 110, 0), ("bob", 3, 100, 0)]


def test_atcoder() -> None:
    # ann: last best score at 80, one attempt before the best on A and on B: 80 + 5 + 5 = 90.
    # bob: B at 40, nothing before. cat: A at 100, one WA before C: 100 + 5.
    value = _board("atcoder", {}, public=False)
    assert _result_rows(value, MICRO_POINTS) == [("ann", 1, 210, 90), ("bob", 2, 140, 40), ("cat", 3, 110, 105)]


@pytest.mark.parametrize(("percent", "late"), [(10, 0.9), (25, 0.75)])
def test_homework(percent: int, late: float) -> None:
    # The deadline is minute 60. Late on the first day: ann's B (100) and C (50), cat's A (60).
    cfg = {"deadline_sec": 60 * 60, "late_penalty_percent_per_day": percent}
    value = _board("homework", cfg, public=False)
    assert _points(value) == {"ann": [60, 100 * late, 50 * late], "bob": [100, 40, 0], "cat": [60 * late, 0, 50]}
