"""Verifies a package: input validators on every test, every jury submission against its expectations.

Runs the programs through the judge, in the sandbox, and collects the results; ``expectations`` compares them.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from adjudge.domain.errors import InvalidInput
from adjudge.domain.problem import JurySubmission, Problem
from adjudge.domain.verdict import Verdict
from adjudge.judge.compile import LanguageMissing
from adjudge.judge.early_stop import StopPolicy
from adjudge.judge.jury_programs import program_source
from adjudge.judge.pipeline import CaseDone, CompileDone, Judge, JudgeOptions, SubmittedProgram
from adjudge.judge.result_document import JudgeResult
from adjudge.packages.expectations import (
    TimeLimitSuggestion,
    VerifyCaseResult,
    VerifyResult,
    describe_expectations,
    must_exceed_time_limit,
    suggest_time_limit,
    unmet_expectations,
)
from adjudge.packages.jury_runner import JuryRunner, VerifyIssue
from adjudge.packages.load import Package
from adjudge.packages.manifest import revision_digest
from adjudge.sandbox import gather_or_cancel

Item = TypeVar("Item")
Made = TypeVar("Made")
VerifyProgress = Callable[[str, int, int], None]
"""Called with the current step, the number of finished items and the total."""


def _silent(_what: str, _done: int, _total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True)
class VerifiedSubmission:
    """One jury submission with its result."""

    submission: JurySubmission
    outcome: VerifyResult
    language: str
    mem_kb: int
    message: str
    reasons: tuple[str, ...]


@dataclass(slots=True)
class VerificationReport:
    """The result of verifying a package."""

    issues: list[VerifyIssue] = field(default_factory=list)
    judged: list[VerifiedSubmission] = field(default_factory=list)
    suggestion: TimeLimitSuggestion | None = None

    @property
    def ok(self) -> bool:
        """Whether everything is as the package declares."""
        return not self.issues and not any(item.reasons for item in self.judged)


class Verifier:
    """Verifies one package with an open judge."""

    def __init__(self, judge: Judge, package: Package, jobs: int, progress: VerifyProgress = _silent) -> None:
        self._judge, self._package, self._progress = judge, package, progress
        self._problem = package.problem
        self._jury = JuryRunner(judge, package.problem, package.files)
        self._turns = asyncio.Semaphore(jobs)
        self._revision = revision_digest(package.problem, package.files)
        self._tests_done = 0

    async def run(self) -> VerificationReport:
        """Validate the inputs, then judge the submissions; each concurrently on all slots."""
        result = VerificationReport()
        problem = self._problem
        result.issues += await self._jury.check_validators()
        cases = problem.cases if problem.input_validators else ()
        for issues in await self._all("validating", cases, self._jury.validate_case):
            result.issues += issues
        for issues in await self._all("running self-tests", problem.self_tests, self._jury.self_test):
            result.issues += [item for item in issues if item not in result.issues]
        result.judged = await self._judged_all()
        triples = [(item.submission.path, item.submission.expectations, item.outcome) for item in result.judged]
        result.suggestion = suggest_time_limit(problem.limits, triples)
        return result

    async def _all(self, what: str, items: Sequence[Item], work: Callable[[Item], Awaitable[Made]]) -> list[Made]:
        done = 0
        self._progress(what, done, len(items))

        async def one(item: Item) -> Made:
            nonlocal done
            async with self._turns:
                made = await work(item)
            done += 1
            self._progress(what, done, len(items))
            return made

        return await gather_or_cancel(*(one(item) for item in items))

    async def _judged_all(self) -> list[VerifiedSubmission]:
        """Judge every submission; progress counts their tests."""
        submissions, tests = self._problem.submissions, len(self._problem.cases)

        async def one(item: JurySubmission) -> VerifiedSubmission:
            seen = 0

            def watch(event: CompileDone | CaseDone) -> None:
                nonlocal seen
                if isinstance(event, CaseDone):
                    seen += 1
                    self._tested(1)

            async with self._turns:
                judged = await self._judged(item, watch)
            self._tested(tests - seen)  # skipped because of a compile error or a fault
            return judged

        self._tested(0)
        return await gather_or_cancel(*(one(item) for item in submissions))

    def _tested(self, count: int) -> None:
        self._tests_done += count
        self._progress("judging", self._tests_done, len(self._problem.cases) * len(self._problem.submissions))

    async def _judged(
        self, item: JurySubmission, watch: Callable[[CompileDone | CaseDone], None]
    ) -> VerifiedSubmission:
        """Judge one submission on every test; one that must be too slow gets more time, to measure by how much."""
        problem = self._problem
        stretch = problem.limits.time_limit_to_tle if must_exceed_time_limit(item.expectations) else 1.0
        stretched = replace(problem, limits=replace(problem.limits, run=problem.limits.run.scaled(stretch)))
        submission = SubmittedProgram(program_source(item.program, self._package.files), item.program.language)
        options = JudgeOptions(stop=StopPolicy.NEVER, revision=self._revision)
        try:
            result = await self._judge.judge(stretched, self._package.files, submission, options, watch)
        except (LanguageMissing, InvalidInput) as error:
            reason = f"could not be judged: {error.message}"
            return VerifiedSubmission(item, VerifyResult(Verdict.SE), item.program.language, 0, "", (reason,))
        outcome = _outcome(result, problem, stretch)
        reasons = unmet_expectations(item.expectations, outcome)
        origin = result.provenance
        return VerifiedSubmission(item, outcome, origin.language, result.mem_kb, result.message, reasons)


def _outcome(result: JudgeResult, problem: Problem, stretch: float) -> VerifyResult:
    """Interpret a result by the problem's own time limit, whatever time the submission had."""
    promised_ms = result.provenance.limits.cpu_ms / stretch
    factor = problem.limits.run.cpu_ms / promised_ms
    cases = []
    late = False
    for row in result.cases:
        verdict = row.verdict
        time_ms = row.run.time_ms if row.run else 0
        is_late = row.run is not None and verdict is not None and time_ms > promised_ms
        stopped = verdict is Verdict.TLE
        if is_late and verdict not in (Verdict.SE, Verdict.TLE):
            verdict, late = Verdict.TLE, True
        cases.append(VerifyCaseResult(row.name, verdict, time_ms * factor, row.message, stopped))
    groups = {row.path: float(row.earned.points) for row in result.scored.groups} if result.scored else {}
    final = result.verdict
    if late and final is not Verdict.SE:
        final = next((case.verdict for case in cases if case.verdict not in (None, Verdict.AC)), final)
    return VerifyResult(final, float(result.score), tuple(cases), groups)


def verification_to_json(problem: Problem, result: VerificationReport) -> dict[str, Any]:
    suggestion = result.suggestion
    return {
        "ok": result.ok,
        "problem": problem.short_name,
        "complaints": [{"where": item.where, "message": item.message} for item in result.issues],
        "submissions": [
            {
                "path": item.submission.path,
                "language": item.language,
                "expected": describe_expectations(item.submission.expectations),
                "verdict": item.outcome.verdict.value,
                "score": item.outcome.score,
                "time_ms": round(item.outcome.slowest_ms),
                "mem_kb": item.mem_kb,
                "ok": not item.reasons,
                "reasons": list(item.reasons),
                "message": item.message,
            }
            for item in result.judged
        ],
        "time_limit": {
            "stated_ms": problem.limits.run.cpu_ms if problem.limits.has_explicit_time_limit else None,
            "suggested_ms": suggestion.time_limit_ms if suggestion else None,
            "lower_ms": round(suggestion.lower_ms) if suggestion else None,
            "upper_ms": round(suggestion.upper_ms) if suggestion and math.isfinite(suggestion.upper_ms) else None,
        },
    }
