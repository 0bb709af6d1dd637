"""The scoreboard and the awards of the Contest API."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adjudge.contests.awards import Award
from adjudge.contests.board import Board
from adjudge.contests.ccs.live import award_objects
from adjudge.contests.ccs.scoreboard import scoreboard_object
from adjudge.contests.ccs.version import CcsVersion
from adjudge.contests.exports import StateTimes
from adjudge.contests.formats.base import Cell
from adjudge.contests.ranking import rank_board
from adjudge.domain.contest import MICRO_POINTS, MINUTE_US, ParticipantKind
from tests.unit.contests.boards import board, row, solved, tried

OLD, NEW = CcsVersion.V2023_06, CcsVersion.V2026_01


def _icpc() -> Board:
    return board(
        row("t1", (2, -5100, -2700), [solved(45, 4, attempts=3), solved(0, 1)]),
        row("t2", (0, 0, 0), [tried(2, pending=9), tried(0)]),
        row("guest", (2, -60, -60), [solved(1, 2), solved(0, 3)], kind=ParticipantKind.UNOFFICIAL),
    )


def _document(value: Board, version: CcsVersion) -> dict[str, Any]:
    return scoreboard_object(
        value,
        rank_board(value),
        time_at=1_500_000,
        contest_time_us=90_500_000,
        state=StateTimes(started=0),
        version=version,
    )


def test_pass_fail_contest() -> None:
    assert _document(_icpc(), OLD) == {
        "time": "1970-01-01T00:00:01.500+00:00",
        "contest_time": "0:01:30.500",
        "state": {
            "started": "1970-01-01T00:00:00.000+00:00",
            "frozen": None,
            "ended": None,
            "thawed": None,
            "finalized": None,
            "end_of_updates": None,
        },
        "rows": [
            {
                "rank": 1,
                "team_id": "code-t1",
                "score": {"num_solved": 2, "total_time": 85, "time": 45},
                "problems": [
                    {"problem_id": "A", "num_judged": 3, "num_pending": 0, "solved": True, "time": 45},
                    {"problem_id": "B", "num_judged": 1, "num_pending": 0, "solved": True, "time": 0},
                ],
            },
            {
                "rank": 2,
                "team_id": "code-t2",
                "score": {"num_solved": 0, "total_time": 0},
                "problems": [
                    {"problem_id": "A", "num_judged": 2, "num_pending": 1, "solved": False},
                    {"problem_id": "B", "num_judged": 0, "num_pending": 0, "solved": False},
                ],
            },
        ],
    }


def test_durations_of_the_later_version_are_relative_times() -> None:
    first = _document(_icpc(), NEW)["rows"][0]
    assert first["score"] == {"num_solved": 2, "total_time": "1:25:00.000", "time": "0:45:00.000"}
    assert first["problems"][0]["time"] == "0:45:00.000"


@pytest.mark.parametrize(("version", "seven", "five"), [(OLD, 7, 5), (NEW, "0:07:00.000", "0:05:00.000")])
def test_score_contest(version: CcsVersion, seven: object, five: object) -> None:
    cell = Cell(attempts=2, score_micro=33_333_333, time_us=7 * MINUTE_US)
    full = Cell(attempts=1, score_micro=100 * MICRO_POINTS, time_us=5 * MINUTE_US)
    value = replace(board(row("t1", (133_333_333,), [cell, full])), is_pass_fail=False)
    (first,) = _document(value, version)["rows"]
    assert first["score"] == {"score": 133.333333, "time": seven}
    assert first["problems"] == [
        {"problem_id": "A", "num_judged": 2, "num_pending": 0, "score": 33.333333, "time": seven},
        {"problem_id": "B", "num_judged": 1, "num_pending": 0, "score": 100, "time": five},
    ]


def test_awards_have_the_ids_of_the_contest_api() -> None:
    known = {"uuid-a": "A", "uuid-g": "north", "uuid-1": "team1"}
    given = [
        Award("winner", "Contest winner", ("uuid-1", "uuid-hidden")),
        Award("first-to-solve-uuid-a", "First to solve problem A", ("uuid-1",)),
        Award("group-winner-uuid-g", "Winner of North", ()),
        Award("best-question", "Best question", ("uuid-1",)),
    ]
    assert [(item["id"], item["team_ids"]) for item in award_objects(given, known)] == [
        ("winner", ["team1"]),
        ("first-to-solve-A", ["team1"]),
        ("group-winner-north", []),
        ("best-question", ["team1"]),
    ]
