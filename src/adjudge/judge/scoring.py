"""Computes points and verdict from the test case results: pure, exact, independent of the running order.

The tree of groups is evaluated from the leaves: a case earns by its verdict and its checker's score, a group by its
aggregate. A score outside a group's range is a jury error, which has precedence over everything else. Scores are
fractions, so three times a third of 100 is 100.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import prod

from adjudge.domain.problem import Aggregate, Case, Group, GroupVerdict, OnReject, Problem
from adjudge.domain.programs import ScoreUnit
from adjudge.domain.verdict import Verdict
from adjudge.judge.case_results import CaseResult, CheckerScore


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a case or a group."""

    verdict: Verdict | None
    """None: skipped completely."""
    points: Fraction
    max_points: Fraction | None
    """The maximum, if there is one."""
    fault: str = ""

    @property
    def is_rejected(self) -> bool:
        """Whether it counts as a failure for its group."""
        return self.verdict not in (None, Verdict.AC, Verdict.PA)


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The result of a group."""

    path: str
    earned: Score


@dataclass(frozen=True, slots=True)
class SubmissionScore:
    """The score of the submission."""

    verdict: Verdict
    points: Fraction
    max_points: Fraction | None
    groups: tuple[GroupScore, ...]
    fault: str = ""


@lru_cache(maxsize=4096)
def exact_fraction(number: float) -> Fraction:
    """The decimal number that the setter wrote, not the nearest binary fraction."""
    return Fraction(repr(number))


def score_case(problem: Problem, case: Case, result: CaseResult | None) -> Score:
    base = None if case.points is None else exact_fraction(case.points)
    most = base if problem.has_maximum(case) else None
    if result is None or result.is_skipped:
        return Score(None, Fraction(0), most)
    if result.is_rejected:
        return Score(result.verdict, exact_fraction(case.reject_points), most)
    if result.score is None:
        missing = base is None and problem.is_scored
        fault = f"{case.name}: its checker gave no score, and it has no maximum" if missing else ""
        return Score(Verdict.SE if fault else result.verdict, base or Fraction(0), most, fault)
    return _given(case, result.score, base, most)


def _given(case: Case, score: CheckerScore, base: Fraction | None, most: Fraction | None) -> Score:
    """The score if the checker gave one; 0 of a known maximum is a rejection."""
    points = _points(score.value, score.unit, base)
    if points is None:
        return Score(
            Verdict.SE,
            Fraction(0),
            None,
            f"{case.name}: the checker gave a fraction, but the case has no maximum score",
        )
    if most and points > most:
        return Score(Verdict.SE, Fraction(0), most, f"{case.name}: its checker gave {float(points):g}, over {most}")
    if most and points < most:
        return Score(Verdict.PA if points > 0 else Verdict.WA, points, most)
    if most == 0 and not case.is_sample and (part := _part(score)) < 1:
        # 0 points, but still a partial score: later test cases may depend on it.
        return Score(Verdict.PA if part > 0 else Verdict.WA, points, most)
    return Score(Verdict.AC, points, most)


def _part(score: CheckerScore) -> Fraction:
    """The fraction of the maximum that a score is, if it says so."""
    return {ScoreUnit.FRACTION: score.value, ScoreUnit.PERCENT: score.value / 100}.get(score.unit, Fraction(1))


def _points(value: Fraction, unit: ScoreUnit, base: Fraction | None) -> Fraction | None:
    if unit in (ScoreUnit.ABSOLUTE, ScoreUnit.UNBOUNDED):
        return value
    if base is None:
        return None
    return base * (value / 100 if unit is ScoreUnit.PERCENT else value)


class ScoreTree:
    """The groups of a problem with the results so far."""

    def __init__(self, problem: Problem, results: Mapping[str, CaseResult], static: Mapping[str, bool] | None = None):
        self._problem, self._results, self._static = problem, results, static or {}
        self._earned: dict[str, Score] = {}

    def group(self, path: str) -> Score:
        """The score of a group, from the cases that ran."""
        if path not in self._earned:
            self._earned[path] = self._score(self._problem.group(path))
        return self._earned[path]

    def passed(self, path: str) -> bool:
        """Whether a group was fully accepted."""
        earned = self.group(path)
        return earned.verdict is Verdict.AC and (earned.max_points is None or earned.points >= earned.max_points)

    def _score(self, group: Group) -> Score:
        children = self._children(group)
        points, most = self._aggregate(group, children)
        verdict = _group_verdict(group, [child.verdict for child in children])
        fault = next((child.fault for child in children if child.fault), "") or _range_fault(group, points)
        if self._static.get(group.path):
            points += exact_fraction(group.static_points)
        return Score(Verdict.SE if fault else verdict, points, most, fault)

    def _children(self, group: Group) -> list[Score]:
        """The children that count: none after the first failure of a group that stops there, even if they ran."""
        found: list[Score] = []
        broken = False
        for child in self._problem.children(group.path):
            if group.ignore_sample and not group.path and _is_sample(child):
                continue
            earned = self._child(child)
            found.append(Score(None, Fraction(0), earned.max_points) if broken else earned)
            broken = broken or (earned.is_rejected and group.on_reject is OnReject.BREAK)
        return found

    def _child(self, child: Group | Case) -> Score:
        if isinstance(child, Case):
            return score_case(self._problem, child, self._results.get(child.name))
        if not all(self.passed(path) for path in child.depends_on):
            return Score(None, Fraction(0), self.group(child.path).max_points)
        return self.group(child.path)

    def _aggregate(self, group: Group, children: Sequence[Score]) -> tuple[Fraction, Fraction | None]:
        limit = None if group.max_points is None else exact_fraction(group.max_points)
        points = [child.points for child in children] or [Fraction(0)]
        mosts = [child.max_points for child in children]
        known = [most for most in mosts if most is not None]
        whole = len(known) == len(mosts)
        match group.aggregate:
            case Aggregate.SUM:
                return sum(points, Fraction(0)), limit if limit is not None else (
                    sum(known, Fraction(0)) if whole else None
                )
            case Aggregate.MIN:
                return min(points), limit if limit is not None else (min(known, default=None) if whole else None)
            case Aggregate.MAX:
                return max(points), limit if limit is not None else (max(known, default=None) if whole else None)
            case Aggregate.AVG:
                return sum(points, Fraction(0)) / len(points), limit
        return self._all_or_product(group, children, limit or Fraction(0))

    @staticmethod
    def _all_or_product(group: Group, children: Sequence[Score], limit: Fraction) -> tuple[Fraction, Fraction]:
        if group.aggregate is Aggregate.MUL:
            return limit * prod((_fraction(child) for child in children), start=Fraction(1)), limit
        if group.aggregate is Aggregate.THRESHOLD:
            threshold = exact_fraction(group.threshold)
            return (limit if all(0 < _fraction(child) <= threshold for child in children) else Fraction(0)), limit
        return (limit if all(child.verdict is Verdict.AC for child in children) else Fraction(0)), limit


def _fraction(child: Score) -> Fraction:
    if child.verdict is None or child.is_rejected:
        return Fraction(0)
    return child.points / child.max_points if child.max_points else child.points


def _is_sample(child: Group | Case) -> bool:
    return child.is_sample if isinstance(child, Case) else child.path == "sample"


def _range_fault(group: Group, points: Fraction) -> str:
    if group.score_range is not None:
        low, high = group.score_range
        if not low <= points <= high:
            return f"group {group.path or 'root'}: its score {float(points):g} is not between {low:g} and {high:g}"
    return ""


def _group_verdict(group: Group, verdicts: Sequence[Verdict | None]) -> Verdict | None:
    """Aggregate the children's verdicts; skipped children do not count, unless all were skipped."""
    seen = [verdict for verdict in verdicts if verdict is not None]
    if Verdict.SE in seen:
        return Verdict.SE
    if not seen:
        return None if verdicts else Verdict.AC
    passed = [verdict for verdict in seen if verdict in (Verdict.AC, Verdict.PA)]
    if group.verdict is GroupVerdict.ALWAYS_ACCEPT or (group.accept_if_any and passed):
        return Verdict.AC
    failed = [verdict for verdict in seen if verdict not in (Verdict.AC, Verdict.PA)]
    if not failed:
        return Verdict.PA if Verdict.PA in seen else Verdict.AC
    return failed[0] if group.verdict is GroupVerdict.FIRST else max(failed, key=lambda verdict: verdict.severity)


def score(
    problem: Problem, results: Mapping[str, CaseResult], static: Mapping[str, bool] | None = None
) -> SubmissionScore:
    """Score a submission. With points, a failure that earned some, or less than all points, is PA."""
    tree = ScoreTree(problem, results, static)
    groups = tuple(GroupScore(group.path, tree.group(group.path)) for group in problem.groups)
    root = tree.group("")
    verdict = root.verdict or Verdict.SE
    if not problem.cases:
        return SubmissionScore(Verdict.SE, Fraction(0), root.max_points, groups, "the problem has no tests")
    if problem.is_scored and verdict is not Verdict.SE:
        verdict = _scored_verdict(verdict, root)
    return SubmissionScore(verdict, root.points, root.max_points, groups, root.fault)


def _scored_verdict(verdict: Verdict, root: Score) -> Verdict:
    accepted = verdict in (Verdict.AC, Verdict.PA)
    if root.max_points is not None and root.max_points > 0:
        if accepted and root.points >= root.max_points:
            return Verdict.AC
        return Verdict.PA if root.points > 0 else (Verdict.WA if accepted else verdict)
    if accepted:
        return verdict
    return Verdict.PA if root.points > 0 else verdict
