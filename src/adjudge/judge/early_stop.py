"""Decides which test cases run, in test order: early failures may make later ones unnecessary.

Concurrent test cases are decided in the same order as sequential ones, so the verdict is the same: a test case that ran
ahead and would have been skipped counts as skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

from adjudge.domain.problem import Case, Group, OnReject, Problem
from adjudge.judge.case_results import CaseResult
from adjudge.judge.scoring import ScoreTree, score_case


class StopPolicy(StrEnum):
    """When to stop running test cases."""

    POLICY = "policy"
    """As the groups of the problem define."""
    FIRST = "first"
    """At the first failure."""
    GROUP = "group"
    """Each group at its first failure."""
    NEVER = "never"


class EarlyStop:
    """The results so far, in order, and their effect on later test cases."""

    def __init__(self, problem: Problem, stop: StopPolicy = StopPolicy.POLICY) -> None:
        self._problem, self._stop = problem, stop
        self._groups = {group.path: group for group in problem.groups}
        self._broken: dict[str, str] = {}
        """Group → the test case that stopped it."""
        self._unmet: dict[str, str] = {}
        self._current: str | None = None
        self.results: dict[str, CaseResult] = {}

    def skip_reason(self, case: Case) -> str:
        """Why the next test case in order is not needed; empty if it is."""
        if case.group != self._current:
            self._leave(case)
        if self._stop is StopPolicy.NEVER:
            return ""
        for path in _ancestors(case.group):
            if path in self._broken:
                return f"skipped: {self._broken[path]} failed"
            if dependency := self._unmet_dependency(self._groups[path]):
                return f"skipped: required group {dependency} did not pass"
        return ""

    def may_run(self, case: Case) -> bool:
        """Whether the test case is needed as far as known; for test cases that run ahead."""
        return self._stop is StopPolicy.NEVER or not any(path in self._broken for path in _ancestors(case.group))

    def record_result(self, case: Case, result: CaseResult) -> CaseResult:
        """Record the next result in order; its verdict is adjusted (a partial score is PA)."""
        if not result.is_skipped:
            earned = score_case(self._problem, case, result)
            message = f"{earned.fault}\n{result.message}".strip() if earned.fault else result.message
            result = replace(result, verdict=earned.verdict, message=message)
        self.results[case.name] = result
        if result.is_rejected:
            self._break(case)
        return result

    def _break(self, case: Case) -> None:
        if self._stop is StopPolicy.FIRST:
            self._broken.setdefault("", case.name)
        group = self._groups[case.group]
        if self._stop is StopPolicy.GROUP or (group.on_reject is OnReject.BREAK and not self._is_ignored(case.group)):
            self._broken.setdefault(case.group, case.name)

    def _leave(self, case: Case) -> None:
        """Close groups that do not contain the next test case: their failure may stop their parents."""
        entered = set(_ancestors(case.group))
        for path in reversed(list(_ancestors(self._current))) if self._current is not None else ():
            group = self._groups[path]
            if path in entered or group.parent is None or self._is_ignored(path):
                continue
            parent = self._groups[group.parent]
            if parent.on_reject is OnReject.BREAK and ScoreTree(self._problem, self.results).group(path).is_rejected:
                self._broken.setdefault(parent.path, f"group {path}")
        self._current = case.group

    def _is_ignored(self, path: str) -> bool:
        return self._groups[""].ignore_sample and path.partition("/")[0] == "sample"

    def _unmet_dependency(self, group: Group) -> str:
        if group.path not in self._unmet:
            tree = ScoreTree(self._problem, self.results)
            self._unmet[group.path] = next((path for path in group.depends_on if not tree.passed(path)), "")
        return self._unmet[group.path]


def _ancestors(path: str) -> Iterator[str]:
    """The root and every group on the path to ``path``."""
    yield ""
    parts = path.split("/") if path else []
    for end in range(1, len(parts) + 1):
        yield "/".join(parts[:end])
