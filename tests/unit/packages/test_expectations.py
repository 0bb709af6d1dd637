"""What the jury's submissions must do, and the time limit that their times suggest."""

from __future__ import annotations

import pytest

from adjudge.domain.problem import Expectation, ProblemLimits, TimeBound
from adjudge.domain.verdict import Verdict
from adjudge.packages.expectations import (
    VerifyCaseResult,
    VerifyResult,
    describe_expectations,
    must_exceed_time_limit,
    suggest_time_limit,
    unmet_expectations,
)
from adjudge.packages.icpc.expectations import DEFAULTS, verdicts

AC, WA, TLE, RE, CE = Verdict.AC, Verdict.WA, Verdict.TLE, Verdict.RE, Verdict.CE


def _outcome(*found: Verdict | None, times: tuple[float, ...] = (), score: float = 0.0) -> VerifyResult:
    padded = (*times, *[10.0] * (len(found) - len(times)))
    cases = [
        VerifyCaseResult(f"secret/{number}", verdict, padded[number], message="see line 5", is_stopped=verdict is TLE)
        for number, verdict in enumerate(found)
    ]
    final = next((verdict for verdict in found if verdict not in (None, AC)), AC)
    return VerifyResult(final or AC, score, tuple(cases), {"secret": score})


@pytest.mark.parametrize(
    ("folder", "found", "is_met"),
    [
        ("accepted", (AC, AC), True),
        ("accepted", (AC, WA), False),
        ("wrong_answer", (AC, WA, None), True),
        ("wrong_answer", (AC, AC), False),
        ("wrong_answer", (WA, TLE), False),
        ("time_limit_exceeded", (AC, TLE), True),
        ("run_time_error", (RE, Verdict.MLE, AC), True),
        ("rejected", (WA, TLE, RE), True),
        ("rejected", (AC,), False),
        ("brute_force", (AC, TLE), True),
        ("brute_force", (WA, TLE), False),
    ],
)
def test_folders(folder: str, found: tuple[Verdict | None, ...], is_met: bool) -> None:
    assert (not unmet_expectations([DEFAULTS[folder]], _outcome(*found))) is is_met


@pytest.mark.parametrize(
    ("item", "is_met"),
    [
        (Expectation(score=(40, 60)), True),
        (Expectation(score=(60, 60)), False),
        (Expectation(cases="secret", score=(50, 50)), True),
        (Expectation(cases="secret/9", score=(0, 100)), False),
        (Expectation(message="line 5"), True),
        (Expectation(message="line 6"), False),
        (Expectation(result=frozenset({WA})), True),
        (Expectation(result=frozenset({TLE})), False),
        (Expectation(cases="secret/0", permitted=frozenset({AC})), True),
        (Expectation(cases="secret/1", permitted=frozenset({AC})), False),
    ],
)
def test_single_expectations(item: Expectation, is_met: bool) -> None:
    assert (not unmet_expectations([item], _outcome(AC, WA, score=50))) is is_met


def test_compile_error_is_unexpected_by_default() -> None:
    outcome = VerifyResult(CE)
    assert unmet_expectations([DEFAULTS["accepted"]], outcome) == ("ended with CE",)
    every = frozenset(Verdict)
    assert not unmet_expectations([Expectation(permitted=every, required=every, result=frozenset({CE}))], outcome)


def test_unmet_expectation_names_test_and_rule() -> None:
    assert unmet_expectations([DEFAULTS["accepted"]], _outcome(AC, WA)) == ("WA on secret/1, permitted: AC/PA",)


def test_describe_expectations() -> None:
    assert describe_expectations([DEFAULTS["accepted"]]) == "AC"
    assert describe_expectations([DEFAULTS["time_limit_exceeded"]]) == "TLE"
    assert describe_expectations([Expectation(cases="secret")]) == "by test"
    assert describe_expectations([]) == "anything"


LIMITS = ProblemLimits(ac_to_time_limit=2.0, time_limit_to_tle=1.5, time_resolution_ms=1000)
ACCEPTED = ("accepted/a", [DEFAULTS["accepted"]])
SLOW = ("time_limit_exceeded/t", [DEFAULTS["time_limit_exceeded"]])


def test_suggested_limit_is_smallest_within_bounds() -> None:
    judged = [
        (*ACCEPTED, _outcome(AC, AC, times=(600, 900))),
        ("wrong_answer/w", [DEFAULTS["wrong_answer"]], _outcome(AC, WA, times=(100, 1000))),
        (*SLOW, VerifyResult(TLE, cases=(VerifyCaseResult("secret/1", TLE, 4500.0),))),
    ]
    found = suggest_time_limit(LIMITS, judged)
    assert found
    assert (found.lower_ms, found.upper_ms, found.time_limit_ms) == (2000, 3000, 2000)
    assert (found.slowest, found.fastest) == ("wrong_answer/w", "time_limit_exceeded/t")


def test_no_limit_within_bounds() -> None:
    judged = [
        (*ACCEPTED, _outcome(AC, times=(900,))),
        (*SLOW, VerifyResult(TLE, cases=(VerifyCaseResult("secret/1", TLE, 2900.0),))),
    ]
    found = suggest_time_limit(LIMITS, judged)
    assert found
    assert found.time_limit_ms is None


def test_stopped_run_gives_no_upper_bound() -> None:
    found = suggest_time_limit(LIMITS, [(*ACCEPTED, _outcome(AC, times=(900,))), (*SLOW, _outcome(TLE, times=(1500,)))])
    assert found
    assert found.upper_ms == float("inf")
    assert found.time_limit_ms == 2000


def test_submissions_that_bound_the_limit() -> None:
    assert must_exceed_time_limit([DEFAULTS["time_limit_exceeded"]])
    assert not must_exceed_time_limit([DEFAULTS["brute_force"]])
    assert must_exceed_time_limit([Expectation(time_bound=TimeBound.UPPER)])
    assert suggest_time_limit(LIMITS, [("brute_force/b", [DEFAULTS["brute_force"]], _outcome(AC, times=(5,)))]) is None
    excluded = Expectation(permitted=verdicts(["AC"]), time_bound=TimeBound.NEITHER)
    assert suggest_time_limit(LIMITS, [("accepted/a", [excluded], _outcome(AC, times=(5,)))]) is None
