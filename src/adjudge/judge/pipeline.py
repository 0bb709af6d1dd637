"""Judges one submission: compile, run test cases, aggregate. Used by the command line and by workers.

A sandbox failure raises, because another attempt may help; every verdict, including CE and jury errors, is a result.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import Limits
from adjudge.domain.problem import Case, Problem, ProblemMode
from adjudge.domain.programs import ProblemFiles
from adjudge.domain.verdict import Verdict
from adjudge.judge.case_results import CaseResult, CheckResult
from adjudge.judge.case_runner import CaseLimits, CaseRunner
from adjudge.judge.compile import ARTIFACT_BYTES_MAX, COMPILATIONS_MAX, CompileFailure, Compiler, CompileResult
from adjudge.judge.compile_cache import CompileCache
from adjudge.judge.early_stop import EarlyStop, StopPolicy
from adjudge.judge.exclusive_gate import ExclusiveGate
from adjudge.judge.jury_programs import (
    JuryFault,
    JuryProgramBuilder,
    JuryPrograms,
    compile_limits,
    with_environment,
    with_prelude,
)
from adjudge.judge.languages import Language, Languages
from adjudge.judge.result_document import JudgeResult, Provenance, describe_checker, judging_digest
from adjudge.judge.scoring import SubmissionScore, score
from adjudge.judge.sources import ProgramSource, layout_sources, match_output_name
from adjudge.judge.static_validation import StaticValidationResult
from adjudge.judge.workspace import Workspace
from adjudge.sandbox import Sandbox

_LOOKAHEAD = 4
"""How many test cases per slot may run ahead of the first undecided one."""


@dataclass(frozen=True, slots=True)
class SubmittedProgram:
    """The submitted sources and their language."""

    source: ProgramSource
    language: str = ""
    """An id, alias or package code; empty: by the file names."""


@dataclass(frozen=True, slots=True)
class CompileDone:
    """The submission was compiled, or compilation failed."""

    compiled: CompileResult


@dataclass(frozen=True, slots=True)
class CaseDone:
    """A test case was decided; events are in test order."""

    result: CaseResult
    index: int
    total: int


JudgeProgress = Callable[[CompileDone | CaseDone], None]


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """Options of one judge run."""

    parallelism: int = 1
    stop: StopPolicy = StopPolicy.POLICY
    time_margin: float = 0.1
    """A run that exceeds the time limit by at most this fraction is repeated exclusively."""
    revision: str = ""
    """The revision of the test data, if the caller pinned it; otherwise it is computed."""
    job_id: str = ""
    attempt_id: int = 0


def _silent(_: CompileDone | CaseDone) -> None:
    """Ignore progress events."""


@dataclass(slots=True)
class Judge:
    """Judges submissions in one sandbox. One instance serves a whole process."""

    sandbox: Sandbox
    languages: Languages
    cache: CompileCache
    scratch: Path | None = None
    worker: str = ""
    exclusive_gate: ExclusiveGate = field(default_factory=ExclusiveGate)
    artifact_bytes: int = ARTIFACT_BYTES_MAX
    """Maximum size of a compiled program."""
    compilations: int = COMPILATIONS_MAX
    """Maximum concurrent compilations, independent of the number of runs."""
    _compiler: Compiler | None = None

    @property
    def compiler(self) -> Compiler:
        """The shared compiler, so that the same sources are compiled once."""
        if self._compiler is None:
            self._compiler = Compiler(
                self.sandbox,
                self.languages,
                self.cache,
                artifact_bytes=self.artifact_bytes,
                compilations=self.compilations,
            )
        return self._compiler

    async def judge(
        self,
        problem: Problem,
        files: ProblemFiles,
        submission: SubmittedProgram,
        options: JudgeOptions | None = None,
        progress: JudgeProgress = _silent,
    ) -> JudgeResult:
        judging = _JudgePipeline(self, problem, files, submission, options or JudgeOptions(), progress)
        return await judging.run()


@dataclass(slots=True)
class _JudgePipeline:
    """The state of judging one submission."""

    judge: Judge
    problem: Problem
    files: ProblemFiles
    submission: SubmittedProgram
    options: JudgeOptions
    progress: JudgeProgress
    started_ns: int = field(default_factory=time.monotonic_ns)
    prepared: JuryPrograms = field(default_factory=JuryPrograms)
    limits: Limits = field(default_factory=Limits)
    language: Language | None = None
    compiled: CompileResult | None = None

    async def run(self) -> JudgeResult:
        preparer = JuryProgramBuilder(self.judge.compiler, self.judge.sandbox, self.files)
        try:
            if self.problem.mode is not ProblemMode.SUBMIT_ANSWER:
                await self._compile(preparer)
                if self.compiled is not None and self.compiled.failure is not None:
                    return self._result(Verdict.CE, self.compiled.failure.message)
            self.prepared = await preparer.prepare(self.problem)
        except JuryFault as fault:
            return self._result(Verdict.SE, fault.message)
        return await self._test()

    async def _compile(self, preparer: JuryProgramBuilder) -> None:
        self.language = language = self._choose_language()
        self.limits = submission_limits(self.problem, language)
        source = self.submission.source
        if source.size_bytes > self.problem.limits.code_bytes:
            message = f"the source has {source.size_bytes} bytes; the limit is {self.problem.limits.code_bytes}"
            self.compiled = CompileResult(None, CompileFailure(message, ""))
        else:
            extra, stub = preparer.stub(self.problem, language)
            self.compiled = await self.judge.compiler.compile(
                language,
                with_prelude(source, stub.prelude if stub else "", language),
                limits=compile_limits(self.problem),
                extra=extra,
                flags=stub.compile_flags if stub else (),
                entry_point=stub.entry_point if stub else "",
            )
            self.compiled = with_environment(self.compiled, stub)
        self.progress(CompileDone(self.compiled))

    def _choose_language(self) -> Language:
        languages = self.judge.languages
        language = languages.get(self.submission.language) if self.submission.language else None
        if language is None:
            named = (languages.for_file(file.name) for file in self.submission.source.files)
            language = next((found for found in named if found), None)
        if language is None:
            raise InvalidInput("language: cannot be inferred from the file names; specify one.", field="language")
        allowed = self.problem.languages
        if allowed and language.id not in allowed and language.code not in allowed:
            raise InvalidInput(
                f"language: {language.name} is not allowed for this problem; allowed: {', '.join(allowed)}.",
                field="language",
            )
        return language

    async def _test(self) -> JudgeResult:
        progression = EarlyStop(self.problem, self.options.stop)
        cases = self.problem.cases
        static = await self._static()
        if static.rejection is not None:
            return self._refused(static.rejection)
        with Workspace(self.judge.scratch) as workspace:
            runner = self._runner(workspace)
            async with aclosing(run_cases_in_order(cases, runner, progression, self.options.parallelism)) as rows:
                index = 0
                async for row in rows:
                    self.progress(CaseDone(row, index, len(cases)))
                    index += 1
        scored = score(self.problem, progression.results, static.accepted)
        return self._scored(tuple(progression.results[case.name] for case in cases), scored)

    async def _static(self) -> StaticValidationResult:
        """Run the static validator, if the problem has one."""
        if self.prepared.static is None or self.language is None:
            return StaticValidationResult()
        try:
            layout = layout_sources(self.language, self.submission.source)
        except InvalidInput as error:  # it compiles only together with the jury's files
            return StaticValidationResult(rejection=CheckResult(Verdict.CE, error.message))
        return await self.prepared.static.validate(
            self.problem, ProgramSource(layout.files), self.language, layout.main_class or layout.main
        )

    def _refused(self, check: CheckResult) -> JudgeResult:
        """A source that the static validator rejects fails completely: all test cases are skipped."""
        rows = tuple(_skipped(case, "skipped: the source was rejected") for case in self.problem.cases)
        result = self._result(check.verdict, f"static validation: {check.message}".rstrip(": "))
        return replace(result, cases=rows)

    def _runner(self, workspace: Workspace) -> CaseRunner:
        return CaseRunner(
            problem=self.problem,
            files=self.files,
            sandbox=self.judge.sandbox,
            workspace=workspace,
            exclusive_gate=self.judge.exclusive_gate,
            limits=CaseLimits.with_margin(self.limits, self._memory_bytes(), self.options.time_margin),
            program=self.compiled.executable if self.compiled else None,
            slots=asyncio.Semaphore(self.options.parallelism),
            checkers=self.prepared.checkers,
            interaction=self.prepared.interaction,
            answers=_answers(self.problem, self.submission.source),
            job_id=self.options.job_id,
            attempt_id=self.options.attempt_id,
        )

    def _memory_bytes(self) -> int:
        """The problem's memory limit, without the runtime's extra memory."""
        extra_mib = self.language.extra_memory_mib if self.language else 0
        return max(1, self.limits.memory_bytes - extra_mib * 1024 * 1024)

    def _scored(self, rows: tuple[CaseResult, ...], scored: SubmissionScore) -> JudgeResult:
        """The result from the test case results; a problem without points counts as one with one point."""
        accepted = Fraction(scored.verdict is Verdict.AC)
        is_scored = self.problem.is_scored
        return replace(
            self._result(scored.verdict, _message(rows, scored)),
            score=scored.points if is_scored else accepted,
            max_score=scored.max_points if is_scored else Fraction(1),
            cases=rows,
            scored=scored,
        )

    def _result(self, verdict: Verdict, message: str) -> JudgeResult:
        """A result without test cases."""
        return JudgeResult(
            verdict=verdict,
            score=Fraction(0),
            max_score=None,
            message=message,
            cases=(),
            provenance=self._provenance(),
            problem=self.problem,
            compiled=self.compiled.without_artifact() if self.compiled else None,
            wall_ms=(time.monotonic_ns() - self.started_ns) // 1_000_000,
        )

    def _provenance(self) -> Provenance:
        return Provenance(
            source=self.submission.source,
            language=self.language.id if self.language else "",
            language_version=self.compiled.version if self.compiled else "",
            problem=self.problem.short_name,
            revision=self.options.revision or judging_digest(self.problem, self.files),
            checker=describe_checker(self.problem.checker),
            programs=self.prepared.versions,
            limits=self.limits,
            worker=self.judge.worker,
            job_id=self.options.job_id,
            attempt_id=self.options.attempt_id,
        )


def _message(rows: Sequence[CaseResult], scored: SubmissionScore) -> str:
    """The first message for the jury: the fault, or the test case that decided."""
    if scored.fault:
        return scored.fault
    if scored.verdict is Verdict.AC:
        return ""
    deciding = next((row for row in rows if row.verdict is scored.verdict), None)
    deciding = deciding or next((row for row in rows if row.verdict not in (None, Verdict.AC)), None)
    if deciding is None or deciding.verdict is None:
        return ""
    return f"{deciding.verdict.title} on test {deciding.name}" + (f": {deciding.message}" if deciding.message else "")


def _answers(problem: Problem, source: ProgramSource) -> dict[str, bytes]:
    """Submitted output files by the names in the cases; a single file serves a single case, whatever its name."""
    if problem.mode is not ProblemMode.SUBMIT_ANSWER:
        return {}
    expected = [case.submitted_name for case in problem.cases]
    if len(source.files) == 1 and len(expected) == 1:
        return {expected[0]: source.files[0].data}
    named = {file.name: match_output_name(file.name, expected) for file in source.files}
    return {name: file.data for file in source.files if (name := named[file.name]) is not None}


def submission_limits(problem: Problem, language: Language) -> Limits:
    """The limits for a language: its own if the problem has them, otherwise the problem's limits times a factor."""
    limits = problem.limits
    for name in (language.id, language.code):
        if name in limits.per_language:
            return language.limits(limits.per_language[name], factor=1.0)
    factors = (limits.time_factors.get(name) for name in (language.id, language.code))
    return language.limits(limits.run, factor=next((factor for factor in factors if factor is not None), None))


async def run_cases_in_order(
    cases: Sequence[Case], runner: CaseRunner, progression: EarlyStop, jobs: int
) -> AsyncGenerator[CaseResult, None]:
    """Run the test cases and yield their results in order, each as soon as it and all before it are decided."""
    ahead = _LookaheadRunner(cases, runner, progression, jobs + 1)
    try:
        for index, case in enumerate(cases):
            reason = progression.skip_reason(case)
            result = _skipped(case, reason) if reason else await ahead.result(index)
            yield progression.record_result(case, result)
    finally:
        await ahead.stop()


def _skipped(case: Case, reason: str) -> CaseResult:
    return CaseResult(case.name, case.group, None, case.is_sample, message=reason)


class _LookaheadRunner:
    """Test cases that run ahead, ``most`` at a time: all but one run, one is prepared."""

    def __init__(self, cases: Sequence[Case], runner: CaseRunner, progression: EarlyStop, most: int) -> None:
        self._cases, self._runner, self._progression, self._most = cases, runner, progression, most
        self._tasks: dict[int, asyncio.Task[CaseResult]] = {}
        self._next = 0

    async def result(self, index: int) -> CaseResult:
        """Wait for one test case while later ones run."""
        while True:
            self._start(index)
            task = self._tasks[index]
            if task.done():
                return self._tasks.pop(index).result()
            running = [other for other in self._tasks.values() if not other.done()]
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)

    def _start(self, index: int) -> None:
        self._next = max(self._next, index)
        running = sum(not task.done() for task in self._tasks.values())
        horizon = min(len(self._cases), index + self._most * _LOOKAHEAD)
        while running < self._most and self._next < horizon:
            case = self._cases[self._next]
            if self._next == index or self._progression.may_run(case):
                self._tasks[self._next] = asyncio.create_task(self._runner.run(case))
                running += 1
            self._next += 1
        if index not in self._tasks:
            self._tasks[index] = asyncio.create_task(self._runner.run(self._cases[index]))

    async def stop(self) -> None:
        """Cancel test cases that are no longer needed."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
