"""The documents of a board."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from adjudge.contests.awards import Award, AwardRules, compute_awards, final_ranks
from adjudge.contests.board import Board, BoardGroup
from adjudge.contests.exports import results_tsv, scoreboard_csv
from adjudge.contests.formats.base import Cell
from adjudge.contests.ranking import rank_board
from adjudge.domain.contest import MICRO_POINTS, MINUTE_US, ParticipantKind
from tests.unit.contests.boards import board, row, solved, tried


def _icpc() -> Board:
    return board(
        row("t1", (2, -5100, -2700), [solved(45, 4, attempts=3), solved(0, 1)], icpc_id="1001", group_ids=("g",)),
        row("t2", (0, 0, 0), [tried(2, pending=9), tried(0)], icpc_id="1002"),
        row("guest", (2, -60, -60), [solved(1, 2), solved(0, 3)], kind=ParticipantKind.UNOFFICIAL),
        groups=[BoardGroup("g", "North\tGroup")],
    )


def _scores() -> Board:
    cell = Cell(attempts=2, score_micro=33_333_333, time_us=7 * MINUTE_US)
    full = Cell(attempts=1, score_micro=100 * MICRO_POINTS, time_us=5 * MINUTE_US)
    return replace(board(row("t1", (133_333_333,), [cell, full])), is_pass_fail=False)


def test_results_lists_ranked_teams_then_the_others_by_name() -> None:
    value = _icpc()
    rules = AwardRules(gold=1, silver=1, bronze=1)
    text = results_tsv(value, final_ranks(value, rules), compute_awards(value, rules))
    assert text == ("results\t1\n1001\t1\tGold Medal\t2\t85\t45\tNorth Group\n1002\t\tHonorable\t0\t0\t0\t\n")


@pytest.mark.parametrize(
    ("award_id", "name"),
    [
        ("silver-medal", "Silver Medal"),
        ("bronze-medal", "Bronze Medal"),
        ("highest-honors", "Highest Honors"),
        ("high-honors", "High Honors"),
        ("honors", "Honors"),
        ("rank-1", "Ranked"),
    ],
)
def test_results_names_of_awards(award_id: str, name: str) -> None:
    value = board(row("t1", (1, 0, 0), [solved(0, 1)]))
    text = results_tsv(value, rank_board(value), [Award(award_id, "", ("t1",))])
    assert text.splitlines()[1].split("\t")[:3] == ["code-t1", "1", name]


def test_csv_of_a_pass_fail_contest() -> None:
    value = _icpc()
    lines = list(csv.reader(io.StringIO(scoreboard_csv(value, rank_board(value)))))
    assert lines[0][:6] == ["rank", "id", "name", "organization", "solved", "penalty_min"]
    assert lines[0][6:] == ["A_attempts", "A_pending", "A_solved_min", "B_attempts", "B_pending", "B_solved_min"]
    assert lines[1] == ["", "guest", "guest", "", "2", "1", "1", "0", "1", "1", "0", "0"]
    assert lines[2] == ["1", "t1", "t1", "", "2", "85", "3", "0", "45", "1", "0", "0"]
    assert lines[3] == ["2", "t2", "t2", "", "0", "0", "2", "1", "", "0", "0", ""]


def test_csv_of_a_score_contest() -> None:
    value = _scores()
    lines = list(csv.reader(io.StringIO(scoreboard_csv(value, rank_board(value)))))
    assert lines[1] == ["1", "t1", "t1", "", "133.333333", "33.333333", "2", "0", "100", "1", "0"]


def test_csv_names_are_not_formulas() -> None:
    value = board(row('=HYPERLINK("x")', (0, 0, 0), []))
    lines = list(csv.reader(io.StringIO(scoreboard_csv(value, rank_board(value)))))
    assert lines[1][2] == '\'=HYPERLINK("x")'
