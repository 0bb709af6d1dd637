"""The ICPC format against boards computed with pencil and paper."""

from __future__ import annotations

import pytest

from adjudge.contests.formats import get_format
from adjudge.contests.formats.base import Cell, JudgedSubmission, ProblemScoring, RowKeys
from adjudge.contests.formats.icpc import IcpcConfig
from adjudge.domain.contest import MICRO_POINTS, MINUTE_US
from adjudge.domain.errors import InvalidInput
from tests.unit.contests.formats.histories import submission

ICPC = get_format("icpc")
PROBLEM = ProblemScoring(points_micro=MICRO_POINTS)


def _fold(*submissions: JudgedSubmission, config: IcpcConfig | None = None) -> Cell:
    cell: Cell = ICPC.fold(config or IcpcConfig(), PROBLEM, submissions)
    return cell


def test_penalty_is_minute_of_first_accepted_plus_rejected_before_it() -> None:
    # minute 45.9 counts as 45; two rejected before: 45 + 2 * 20 = 85 minutes; the CE and everything later do not count
    cell = _fold(
        submission(1, 3, "WA"),
        submission(2, 10, "CE"),
        submission(3, 30.5, "TLE"),
        submission(4, 45.9, "AC"),
        submission(5, 50, "WA"),
        submission(6, 51, "AC"),
    )
    assert cell.attempts == 3
    assert cell.penalty_sec == 85 * 60
    assert cell.solved_us == round(45.9 * MINUTE_US)
    assert cell.first_accepted_number == 4
    assert cell.pending == 0


def test_compile_errors_count_if_configured() -> None:
    # 45 + 2 * 10: one WA and one CE before, ten minutes each
    config = IcpcConfig(penalty_minutes=10, compile_error_penalty=True)
    cell = _fold(submission(1, 3, "WA"), submission(2, 10, "CE"), submission(4, 45.9, "AC"), config=config)
    assert (cell.attempts, cell.penalty_sec) == (3, 65 * 60)


def test_seconds_are_not_floored_to_minutes() -> None:
    # 45.9 minutes = 2754 s; one rejected = 1200 s
    cell = _fold(submission(1, 3, "RE"), submission(2, 45.9, "AC"), config=IcpcConfig(seconds=True))
    assert cell.penalty_sec == 2754 + 1200


def test_pending_and_system_errors_do_not_count_but_are_pending() -> None:
    cell = _fold(submission(1, 3, None), submission(2, 4, "SE"), submission(3, 5, "WA"))
    assert (cell.attempts, cell.pending, cell.is_solved, cell.penalty_sec) == (1, 2, False, 0)
    assert cell.earliest_pending_number == 1


def test_frozen_submissions_stay_pending_after_an_accepted_one() -> None:
    """DOMjudge PR #582: in the freeze every submission is pending, also one after an accepted one and a CE."""
    late = [submission(3, 290, "WA").as_pending(), submission(4, 295, "CE").as_pending()]
    cell = _fold(submission(1, 10, "AC"), *late)
    assert (cell.attempts, cell.pending, cell.penalty_sec, cell.earliest_pending_number) == (1, 2, 600, 3)


def test_as_pending_reveals_nothing() -> None:
    judged = submission(1, 10, "PA", 50, {"one": 50})
    assert judged.as_pending() == submission(1, 10, None)


def test_rows_are_ordered_by_solved_then_penalty_then_last_accepted() -> None:
    # A solves two problems: 10 + (30 + 20) = 60 minutes, last at 30
    # B solves two problems: 40 + 20 = 60 minutes, last at 40: behind A
    # C solves one problem at minute 1: behind both
    config = IcpcConfig()
    a = ICPC.combine(config, [_fold(submission(1, 10, "AC")), _fold(submission(2, 20, "WA"), submission(3, 30, "AC"))])
    b = ICPC.combine(config, [_fold(submission(4, 40, "AC")), _fold(submission(5, 20, "AC"))])
    c = ICPC.combine(config, [_fold(submission(6, 1, "AC")), _fold(submission(7, 2, "WA"))])
    assert a == RowKeys(2, -3600, -1800)
    assert b == RowKeys(2, -3600, -2400)
    assert c == RowKeys(1, -60, -60)
    assert sorted([c, b, a], reverse=True) == [a, b, c]


@pytest.mark.parametrize(("adjust_min", "penalty_min"), [(20, 30), (-5, 5)])
def test_judges_can_add_and_subtract_penalty(adjust_min: int, penalty_min: int) -> None:
    cells = [_fold(submission(1, 10, "AC"))]
    assert ICPC.combine(IcpcConfig(), cells, adjust_min * 60).k2 == -penalty_min * 60


def test_config_defaults() -> None:
    assert ICPC.parse_config({}) == IcpcConfig(20, compile_error_penalty=False, seconds=False)


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"penalty_minutes": -1}, "format_cfg.penalty_minutes: must be an integer from 0 to 10000."),
        ({"penalty_minutes": True}, "format_cfg.penalty_minutes: must be an integer"),
        ({"seconds": 1}, "format_cfg.seconds: must be true or false."),
        (
            {"penalty": 20},
            "format_cfg.penalty: unknown field; remove it (fields of this format: compile_error_penalty,",
        ),
        ([], "format_cfg: must be an object."),
    ],
)
def test_config_errors_name_the_field_and_the_fix(document: object, text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ICPC.parse_config(document)  # type: ignore[arg-type]  # what a caller may send
    assert caught.value.message.startswith(text)


def test_unknown_format_is_refused() -> None:
    with pytest.raises(InvalidInput, match="choose one of icpc"):
        get_format("acm")
