"""The formats that add up points, against boards computed with pencil and paper."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from adjudge.contests.formats import FORMATS, get_format
from adjudge.contests.formats.base import Cell, JudgedSubmission, ProblemScoring, RowKeys
from adjudge.domain.contest import DAY_US, MICRO_POINTS, MINUTE_US, ContestFormat, to_micro_points
from adjudge.domain.errors import InvalidInput
from tests.unit.contests.formats.histories import submission

HUNDRED = ProblemScoring(100 * MICRO_POINTS, 100 * MICRO_POINTS)
PASS_FAIL = ProblemScoring(30 * MICRO_POINTS)
DAY_MIN = 24 * 60


def _fold(
    name: str, *submissions: JudgedSubmission, problem: ProblemScoring = HUNDRED, cfg: dict[str, Any] | None = None
) -> Cell:
    scoring = get_format(name)
    cell: Cell = scoring.fold(scoring.parse_config(cfg or {}), problem, submissions)
    return cell


def _combine(name: str, *cells: Cell, cfg: dict[str, Any] | None = None, adjust_sec: int = 0) -> RowKeys:
    scoring = get_format(name)
    return scoring.combine(scoring.parse_config(cfg or {}), cells, adjust_sec)


def _points(cell: Cell) -> float:
    return cell.score_micro / MICRO_POINTS


def test_every_format_of_the_domain_has_a_module() -> None:
    assert set(FORMATS) == set(ContestFormat)
    assert [item.name for item in FORMATS.values() if item.is_pass_fail] == ["icpc"]


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_field_is_documented(name: str) -> None:
    """The section of a format names exactly the fields that it accepts."""
    page = (Path(__file__).parents[4] / "docs" / "reference" / "scoring-rules.md").read_text()
    section = page.partition(f"(`{name}`)")[2].partition("\n## ")[0]
    with pytest.raises(InvalidInput) as caught:
        get_format(name).parse_config({"no_such_field": 1})
    fields = caught.value.message.partition("fields of this format: ")[2].rstrip(").").split(", ")
    assert [field for field in fields if f"`{field}`" not in section] == []
    assert [field for field in re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) if field not in fields] == []


# IOI


def test_ioi_takes_the_best_of_each_subtask() -> None:
    # a: max(20, 0, 20) = 20, b: max(0, 30, 10) = 30, c: max(0, 0, 25) = 25; 20 + 30 + 25 = 75
    cell = _fold(
        "ioi",
        submission(1, 10, "PA", 20, {"a": 20, "b": 0, "c": 0}),
        submission(2, 20, "PA", 30, {"a": 0, "b": 30, "c": 0}),
        submission(3, 30, "PA", 55, {"a": 20, "b": 10, "c": 25}),
        submission(4, 40, "CE"),
    )
    assert _points(cell) == 75
    assert cell.subtasks == {"a": 20 * MICRO_POINTS, "b": 30 * MICRO_POINTS, "c": 25 * MICRO_POINTS}
    assert (cell.attempts, cell.time_us, cell.is_solved) == (3, 30 * MINUTE_US, False)


def test_ioi_is_solved_when_the_subtasks_add_up_to_everything() -> None:
    cell = _fold("ioi", submission(1, 10, "PA", 40, {"a": 40, "b": 0}), submission(2, 20, "PA", 60, {"a": 0, "b": 60}))
    assert (_points(cell), cell.solved_us, cell.first_accepted_number) == (100, 20 * MINUTE_US, 2)


def test_ioi_without_subtasks_takes_the_best_submission() -> None:
    # max(10, 70.5, 60) = 70.5, reached at minute 20
    cell = _fold("ioi", submission(1, 10, "PA", 10), submission(2, 20, "PA", 70.5), submission(3, 30, "PA", 60))
    assert (_points(cell), cell.time_us) == (70.5, 20 * MINUTE_US)


def test_ioi_scales_the_sum_once() -> None:
    # 1/3 + 1/3 of 100 points of a problem worth 50: (33.333333 + 33.333333) * 50 / 100 = 33.333333
    third = 33_333_333
    items = [
        JudgedSubmission(1, 0, 0, submission(1, 0, "PA").verdict, third, {"a": third, "b": 0}),
        JudgedSubmission(2, 0, 0, submission(1, 0, "PA").verdict, third, {"a": 0, "b": third}),
    ]
    assert _fold("ioi", *items, problem=ProblemScoring(50 * MICRO_POINTS, 100 * MICRO_POINTS)).score_micro == third


def test_ioi_rows_have_equal_ranks_unless_time_breaks_ties() -> None:
    a = [_fold("ioi", submission(1, 10, "PA", 40)), _fold("ioi", submission(2, 50, "PA", 20))]
    b = [_fold("ioi", submission(3, 30, "PA", 60)), _fold("ioi", submission(4, 90, "WA", 0))]
    assert _combine("ioi", *a) == _combine("ioi", *b) == RowKeys(60 * MICRO_POINTS, 0, 0)
    # a improved last at minute 50 (3000 s), b at minute 30 (1800 s): the WA of minute 90 is no improvement
    by_time = {"tie_break": "time"}
    assert _combine("ioi", *a, cfg=by_time) == RowKeys(60 * MICRO_POINTS, -3000, 0)
    assert _combine("ioi", *b, cfg=by_time) == RowKeys(60 * MICRO_POINTS, -1800, 0)
    assert _combine("ioi", *b, cfg=by_time, adjust_sec=60).k2 == -1860


# Best and last submission


def test_best_ignores_subtasks_and_takes_the_first_with_the_highest_score() -> None:
    cell = _fold(
        "best",
        submission(1, 10, "PA", 40, {"a": 40, "b": 0}),
        submission(2, 20, "PA", 60, {"a": 0, "b": 60}),
        submission(3, 30, "PA", 60, {"a": 0, "b": 60}),
        submission(4, 40, None),
    )
    assert (_points(cell), cell.time_us, cell.pending, cell.earliest_pending_number) == (60, 20 * MINUTE_US, 1, 4)
    assert not cell.is_solved


def test_problem_without_scores_gives_all_or_nothing() -> None:
    cell = _fold("best", submission(1, 10, "WA"), submission(2, 20, "AC"), problem=PASS_FAIL)
    assert (_points(cell), cell.solved_us, cell.attempts) == (30, 20 * MINUTE_US, 2)
    assert _points(_fold("best", submission(1, 10, "WA"), problem=PASS_FAIL)) == 0


def test_last_takes_the_last_judged_one_even_if_it_is_worse() -> None:
    cell = _fold("last", submission(1, 10, "AC", 100), submission(2, 20, "PA", 35), submission(3, 30, None))
    assert (_points(cell), cell.time_us, cell.pending, cell.is_solved) == (35, 20 * MINUTE_US, 1, False)


def test_last_compile_error_scores_zero_unless_ignored() -> None:
    history = [submission(1, 10, "AC", 100), submission(2, 20, "CE")]
    assert _points(_fold("last", *history)) == 0
    ignored = _fold("last", *history, cfg={"ignore_compile_errors": True})
    assert (_points(ignored), ignored.solved_us) == (100, 10 * MINUTE_US)


# AtCoder-like


def test_atcoder_row_is_last_best_score_plus_penalties_of_scored_problems() -> None:
    # A: 100 points at 30:30 after two wrong ones (a CE is free): 2 * 5 = 10 minutes
    # B: 50 points at 20:00, later worse: no penalty. C: no points: its three wrong ones are free
    # total 150, time 1830 s + 600 s = 2430 s
    a = _fold(
        "atcoder",
        submission(1, 5, "WA"),
        submission(2, 6, "CE"),
        submission(3, 7, "PA", 40),
        submission(7, 30.5, "AC", 100),
        submission(9, 80, "WA"),
    )
    b = _fold("atcoder", submission(4, 20, "PA", 50), submission(8, 40, "PA", 40))
    c = _fold("atcoder", submission(5, 21, "WA"), submission(6, 22, "WA"), submission(10, 23, "TLE"))
    assert (a.penalty_sec, b.penalty_sec, c.penalty_sec, c.attempts) == (600, 0, 0, 3)
    assert _combine("atcoder", a, b, c) == RowKeys(150 * MICRO_POINTS, -2430)
    assert _combine("atcoder", a, b, c, adjust_sec=-30) == RowKeys(150 * MICRO_POINTS, -2400)


def test_atcoder_penalty_is_configurable() -> None:
    cell = _fold("atcoder", submission(1, 5, "WA"), submission(2, 6, "AC", 100), cfg={"penalty_minutes": 10})
    assert cell.penalty_sec == 600


# Homework


HOMEWORK = {
    "deadline_sec": 7 * 86_400,
    "late_penalty_percent_per_day": 20,
    "late_penalty_cap_percent": 50,
}


@pytest.mark.parametrize(
    ("minute", "extra_min", "expected"),
    [
        (7 * DAY_MIN - 1, 0, 80),  # in time
        (7 * DAY_MIN, 0, 64),  # at the deadline: the first day has begun, 80 * 80 %
        (8 * DAY_MIN - 1, 0, 64),
        (8 * DAY_MIN, 0, 48),  # second day: 80 * 60 %
        (9 * DAY_MIN, 0, 40),  # third day would be 60 %, the cap is 50 %: 80 * 50 %
        (30 * DAY_MIN, 0, 40),
        (8 * DAY_MIN, 2 * DAY_MIN, 80),  # two days of extension
        (9 * DAY_MIN, 2 * DAY_MIN, 64),
    ],
)
def test_homework_costs_a_percentage_per_day_begun(minute: int, extra_min: int, expected: int) -> None:
    assert _points(_fold("homework", submission(1, minute, "PA", 80, extra_min=extra_min), cfg=HOMEWORK)) == expected


def test_homework_takes_the_best_after_the_penalty() -> None:
    # 70 in time; later 85 * 80 % = 68: the first one counts
    history = [submission(1, 10, "PA", 70), submission(2, 7 * DAY_MIN, "PA", 85)]
    assert _points(_fold("homework", *history, cfg=HOMEWORK)) == 70
    assert _points(_fold("homework", *history, cfg={**HOMEWORK, "counts": "last"})) == 68


def test_homework_late_penalty_rounds_down() -> None:
    # 1 micro-point * 80 % = 0.8: rounded down to 0
    item = JudgedSubmission(1, 0, 7 * DAY_US, submission(1, 0, "PA").verdict, 1)
    assert _fold("homework", item, cfg=HOMEWORK).score_micro == 0


def test_homework_without_deadline_is_never_late() -> None:
    assert _points(_fold("homework", submission(1, 100 * DAY_MIN, "AC", 100))) == 100


@pytest.mark.parametrize(
    ("name", "document", "text"),
    [
        ("ioi", {"tie_break": "luck"}, "format_cfg.tie_break: must be one of none, time."),
        ("last", {"ignore_compile_errors": "no"}, "format_cfg.ignore_compile_errors: must be true or false."),
        ("atcoder", {"penalty_minutes": 1.5}, "format_cfg.penalty_minutes: must be an integer from 0 to 10000."),
        ("homework", {"late_penalty_cap_percent": 101}, "format_cfg.late_penalty_cap_percent: must be an integer from"),
        ("homework", {"deadline_sec": "friday"}, "format_cfg.deadline_sec: must be an integer from 0"),
        ("homework", {"counts": "median"}, "format_cfg.counts: must be one of best, last."),
        ("best", {"penalty_minutes": 5}, "format_cfg.penalty_minutes: unknown field; remove it"),
    ],
)
def test_config_errors_name_the_field(name: str, document: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        get_format(name).parse_config(document)
    assert caught.value.message.startswith(text)


def test_micro_points_are_rounded_half_up_from_the_decimal_number() -> None:
    assert [to_micro_points(points) for points in (0.1, 33.3333335, 2.0000004, -0.0000005)] == [
        100_000,
        33_333_334,
        2_000_000,
        0,
    ]
