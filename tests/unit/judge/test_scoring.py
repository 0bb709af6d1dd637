"""Scoring: aggregates, dependencies, ranges, early stop, exactness."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from adjudge.domain.problem import (
    Aggregate,
    Case,
    Grading,
    Group,
    GroupVerdict,
    OnReject,
    PackageFormat,
    Problem,
)
from adjudge.domain.programs import Checker, CheckerProtocol, ScoreUnit
from adjudge.domain.verdict import Verdict
from adjudge.judge.case_results import CaseResult, CheckerScore
from adjudge.judge.early_stop import EarlyStop, StopPolicy
from adjudge.judge.scoring import SubmissionScore, exact_fraction, score


def problem(groups: list[Group], cases: list[Case], grading: Grading = Grading.SCORING) -> Problem:
    return Problem("p", PackageFormat("plain"), grading=grading, groups=tuple(groups), cases=tuple(cases))


def rows(of: Problem, verdicts: str, scores: dict[str, CheckerScore] | None = None) -> dict[str, CaseResult]:
    """Rows from one letter each: a accepted, w wrong, t too slow, s ours, - skipped."""
    meaning = {"a": Verdict.AC, "w": Verdict.WA, "t": Verdict.TLE, "s": Verdict.SE, "-": None}
    return {
        case.name: CaseResult(case.name, case.group, meaning[letter], score=(scores or {}).get(case.name))
        for case, letter in zip(of.cases, verdicts, strict=True)
    }


def subtasks(*aggregates: Aggregate, on_reject: OnReject = OnReject.CONTINUE, points: float = 50) -> Problem:
    """A group for each aggregate, three cases in each."""
    groups = [Group("", on_reject=OnReject.CONTINUE, accept_if_any=True)]
    cases = []
    for number, aggregate in enumerate(aggregates, 1):
        groups.append(Group(str(number), aggregate, max_points=points, on_reject=on_reject, threshold=0.5))
        each = points / 3 if aggregate is Aggregate.SUM else points
        cases += [Case(f"{number}/{name}", str(number), "in", points=each) for name in "abc"]
    return problem(groups, cases)


def scored(of: Problem, verdicts: str, scores: dict[str, CheckerScore] | None = None) -> SubmissionScore:
    return score(of, rows(of, verdicts, scores))


def test_pass_fail_verdict_is_first_failure() -> None:
    plain = problem([Group("")], [Case(name, "", "in") for name in "abc"], Grading.PASS_FAIL)
    assert scored(plain, "aaa").verdict is Verdict.AC
    assert scored(plain, "atw").verdict is Verdict.TLE
    assert scored(plain, "as-").verdict is Verdict.SE


def test_worst_verdict_of_a_group() -> None:
    worst = problem(
        [Group("", verdict=GroupVerdict.WORST, on_reject=OnReject.CONTINUE)],
        [Case(n, "", "in") for n in "ab"],
        Grading.PASS_FAIL,
    )
    assert scored(worst, "wt").verdict is Verdict.TLE


@pytest.mark.parametrize(
    ("aggregate", "verdicts", "points"),
    [
        (Aggregate.MIN, "aaa", 50),
        (Aggregate.MIN, "awa", 0),
        (Aggregate.MAX, "waw", 50),
        (Aggregate.AVG, "aaw", Fraction(100, 3)),
        (Aggregate.ALL, "aaa", 50),
        (Aggregate.ALL, "aaw", 0),
        (Aggregate.MUL, "aaa", 50),
        (Aggregate.MUL, "waa", 0),
    ],
)
def test_aggregates(aggregate: Aggregate, verdicts: str, points: Fraction) -> None:
    assert scored(subtasks(aggregate), verdicts).points == points


def test_partial_scores_multiply_and_take_the_minimum() -> None:
    half = CheckerScore(Fraction(1, 2), ScoreUnit.FRACTION)
    fifth = CheckerScore(Fraction(20), ScoreUnit.PERCENT)
    both = {"1/a": half, "1/b": fifth}
    assert scored(subtasks(Aggregate.MUL), "aaa", both).points == 5
    assert scored(subtasks(Aggregate.MIN), "aaa", both).points == 10


def test_threshold_takes_costs() -> None:
    third, most = CheckerScore(Fraction(1, 3), ScoreUnit.FRACTION), CheckerScore(Fraction(2, 3), ScoreUnit.FRACTION)
    fine = subtasks(Aggregate.THRESHOLD)
    assert scored(fine, "aaa", dict.fromkeys(("1/a", "1/b", "1/c"), third)).points == 50
    assert scored(fine, "aaa", {"1/a": third, "1/b": third, "1/c": most}).points == 0
    assert scored(fine, "aaw", {"1/a": third, "1/b": third}).points == 0


def test_sums_are_exact() -> None:
    thirds = problem([Group("", on_reject=OnReject.CONTINUE)], [Case(str(i), "", "in", points=0.1) for i in range(10)])
    assert scored(thirds, "a" * 10).points == 1
    assert exact_fraction(33.3) * 3 == Fraction(999, 10)


def test_partial_and_full_verdicts() -> None:
    both = subtasks(Aggregate.ALL, Aggregate.ALL)
    assert scored(both, "aaaaaa").verdict is Verdict.AC
    assert scored(both, "aaaawa").verdict is Verdict.PA
    assert scored(both, "waawaa").verdict is Verdict.WA
    assert scored(both, "aaaaaa").max_points == 100


def test_group_with_failed_dependency_earns_nothing() -> None:
    tree = [
        Group("", on_reject=OnReject.CONTINUE, accept_if_any=True),
        Group("1", Aggregate.ALL, max_points=40),
        Group("2", Aggregate.ALL, max_points=60, depends_on=("1",)),
    ]
    of = problem(tree, [Case("1/a", "1", "in"), Case("2/a", "2", "in")])
    assert scored(of, "wa").points == 0
    assert scored(of, "aa").points == 100


def test_score_out_of_range_is_jury_error() -> None:
    ranged = problem([Group("", score_range=(0, 10))], [Case("a", "", "in", points=None)])
    fine = scored(ranged, "a", {"a": CheckerScore(Fraction(7), ScoreUnit.ABSOLUTE)})
    assert (fine.verdict, fine.points) == (Verdict.AC, Fraction(7))
    wild = scored(ranged, "a", {"a": CheckerScore(Fraction(11), ScoreUnit.ABSOLUTE)})
    assert wild.verdict is Verdict.SE
    assert "not between 0 and 10" in wild.fault
    assert scored(ranged, "a").verdict is Verdict.SE
    over = problem([Group("")], [Case("a", "", "in", points=5)])
    assert scored(over, "a", {"a": CheckerScore(Fraction(6), ScoreUnit.ABSOLUTE)}).verdict is Verdict.SE


def test_unbounded_score_may_be_missing() -> None:
    unbounded = Checker(CheckerProtocol.ICPC, score_unit=ScoreUnit.UNBOUNDED)
    of = replace(
        problem([Group("", on_reject=OnReject.CONTINUE)], [Case(n, "", "in") for n in "ab"]), checker=unbounded
    )
    given = scored(of, "aa", {"a": CheckerScore(Fraction(100), ScoreUnit.ABSOLUTE)})
    assert (given.verdict, given.points, given.max_points) == (Verdict.AC, Fraction(101), None)
    assert scored(of, "ww").max_points is None, "the maximum does not depend on the outcome"


def test_samples_may_be_ignored() -> None:
    tree = [Group("", ignore_sample=True), Group("sample"), Group("secret", max_points=100)]
    of = problem(tree, [Case("sample/1", "sample", "in", is_sample=True), Case("secret/1", "secret", "in", points=100)])
    assert scored(of, "wa").verdict is Verdict.AC


def walk(of: Problem, verdicts: str, stop: StopPolicy = StopPolicy.POLICY) -> str:
    """Which cases would run: their letters, with - for skipped ones."""
    progression, seen = EarlyStop(of, stop), ""
    everything = rows(of, verdicts)
    for case in of.cases:
        reason = progression.skip_reason(case)
        row = CaseResult(case.name, case.group, None) if reason else everything[case.name]
        progression.record_result(case, row)
        seen += "-" if reason else verdicts[len(seen)]
    return seen


def test_stopping() -> None:
    breaking = subtasks(Aggregate.ALL, Aggregate.ALL, on_reject=OnReject.BREAK)
    assert walk(breaking, "awaaaa") == "aw-aaa"
    assert walk(breaking, "awaawa", StopPolicy.FIRST) == "aw----"
    assert walk(breaking, "awaawa", StopPolicy.NEVER) == "awaawa"
    continued = subtasks(Aggregate.SUM, Aggregate.SUM)
    assert walk(continued, "awaawa") == "awaawa"
    assert walk(continued, "awaawa", StopPolicy.GROUP) == "aw-aw-"


def test_failed_group_stops_parent() -> None:
    tree = [Group(""), Group("sample"), Group("secret")]
    of = problem(tree, [Case("sample/1", "sample", "in"), Case("secret/1", "secret", "in")], Grading.PASS_FAIL)
    assert walk(of, "wa") == "w-"
    assert walk(of, "aw") == "aw"


def test_running_all_cases_does_not_change_score() -> None:
    breaking = subtasks(Aggregate.SUM, on_reject=OnReject.BREAK, points=30)
    assert scored(breaking, "awa").points == scored(breaking, "aw-").points == 10
