"""Checks whether a jury submission met its expectations, and suggests a time limit from the jury's times.

Works on plain values; nothing is run here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from adjudge.domain.problem import Expectation, ProblemLimits, TimeBound
from adjudge.domain.verdict import Verdict
from adjudge.packages.globs import matches


@dataclass(frozen=True, slots=True)
class VerifyCaseResult:
    """The result of one test case; ``time_ms`` is scaled to the problem's limit if its language has a larger one."""

    name: str
    verdict: Verdict | None
    time_ms: float = 0.0
    message: str = ""
    is_stopped: bool = False
    """It was stopped, so it would have taken longer than ``time_ms``."""


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """The result of a jury submission."""

    verdict: Verdict
    score: float = 0.0
    cases: tuple[VerifyCaseResult, ...] = ()
    group_scores: Mapping[str, float] = field(default_factory=dict)

    @property
    def slowest_ms(self) -> float:
        return max((case.time_ms for case in self.cases), default=0.0)


def cases_covered_by(expectation: Expectation, outcome: VerifyResult) -> list[VerifyCaseResult]:
    """The test cases that an expectation applies to and that ran."""
    return [case for case in outcome.cases if case.verdict is not None and matches(expectation.cases, case.name)]


def unmet_expectations(expectations: Iterable[Expectation], outcome: VerifyResult) -> tuple[str, ...]:
    """The expectations that the submission did not meet, as messages."""
    return tuple(reason for item in expectations for reason in _unmet(item, outcome))


def _unmet(item: Expectation, outcome: VerifyResult) -> list[str]:
    where = f" in {item.cases}" if item.cases else ""
    cases = cases_covered_by(item, outcome)
    reasons = []
    if item.result and outcome.verdict not in item.result:
        reasons.append(f"ended with {outcome.verdict}, expected {_words(item.result)}")
    if outcome.verdict in (Verdict.CE, Verdict.SE) and not cases:
        return reasons or ([] if outcome.verdict in item.result else [f"ended with {outcome.verdict}"])
    wrong = next((case for case in cases if case.verdict not in item.permitted), None)
    if wrong is not None:
        reasons.append(f"{wrong.verdict} on {wrong.name}, permitted{where}: {_words(item.permitted)}")
    if not any(case.verdict in item.required for case in cases):
        reasons.append(f"no {_words(item.required)} on any test{where}")
    if item.score is not None:
        score = outcome.group_scores.get(item.cases, math.nan) if item.cases else outcome.score
        if not item.score[0] - 1e-9 <= score <= item.score[1] + 1e-9:
            reasons.append(f"scored {score:g}{where}, expected {item.score[0]:g} to {item.score[1]:g}")
    if item.message and not any(item.message in case.message for case in cases):
        reasons.append(f"no message contains {item.message!r}{where}")
    return reasons


def _words(verdicts: frozenset[Verdict]) -> str:
    return "/".join(verdict for verdict in Verdict if verdict in verdicts)


def describe_expectations(expectations: Sequence[Expectation]) -> str:
    """A short description of the expected result of a submission."""
    for item in expectations:
        if item.cases:
            continue
        if item.result:
            return _words(item.result)
        if Verdict.AC not in item.required:
            return _words(item.required)
        if item.permitted <= {Verdict.AC, Verdict.PA}:
            return _words(item.permitted & {Verdict.AC})
        return _words(item.permitted)
    return "by test" if expectations else "anything"


# ---- the time limit


@dataclass(frozen=True, slots=True)
class TimeLimitSuggestion:
    """The bounds on the time limit given by the jury's times, and the smallest limit within them."""

    lower_ms: float
    """Time of the slowest submission that must not exceed the limit, times its margin."""
    upper_ms: float
    """Time of the fastest submission that must exceed it, divided by its margin; infinite if there is none."""
    slowest: str
    fastest: str
    time_limit_ms: int | None
    """None: no multiple of the resolution lies between the bounds."""


def must_exceed_time_limit(expectations: Iterable[Expectation]) -> bool:
    return any(_is_upper(item) for item in expectations)


def _is_upper(item: Expectation) -> bool:
    if item.time_bound is TimeBound.AUTO:
        return item.required == {Verdict.TLE} or item.result == {Verdict.TLE}
    return item.time_bound in (TimeBound.UPPER, TimeBound.BOTH)


def _is_lower(item: Expectation) -> bool:
    if item.time_bound is TimeBound.AUTO:
        return Verdict.TLE not in item.permitted
    return item.time_bound in (TimeBound.LOWER, TimeBound.BOTH)


def suggest_time_limit(
    limits: ProblemLimits, judged: Iterable[tuple[str, Sequence[Expectation], VerifyResult]]
) -> TimeLimitSuggestion | None:
    """Suggest a time limit by the rule of 2025-09; None if no submission gives a lower bound."""
    lower, upper = (0.0, ""), (math.inf, "")
    for name, expectations, outcome in judged:
        for item in expectations:
            times = [math.inf if case.is_stopped else case.time_ms for case in cases_covered_by(item, outcome)]
            if not times:
                continue
            if _is_lower(item) and math.isfinite(max(times)):
                lower = max(lower, (max(times) * limits.ac_to_time_limit, name))
            if _is_upper(item):
                upper = min(upper, (max(times) / limits.time_limit_to_tle, name))
    if not lower[1]:
        return None
    resolution = limits.time_resolution_ms
    smallest = max(1, math.ceil(lower[0] / resolution - 1e-9)) * resolution
    return TimeLimitSuggestion(lower[0], upper[0], lower[1], upper[1], smallest if smallest <= upper[0] else None)
