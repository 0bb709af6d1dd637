"""Runs one test case: run the submission, check its output, make the result.

This is the flow shared by all problem modes (passes, the repeated run near the limit, the choice of the checker);
``interactive`` and ``communication`` connect two programs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from adjudge.domain.limits import Limits
from adjudge.domain.problem import Case, Problem, ProblemMode
from adjudge.domain.programs import Checker, CheckerProtocol, ProblemFiles, ScoreUnit
from adjudge.domain.verdict import Verdict
from adjudge.judge import comparators
from adjudge.judge.case_results import (
    EXCERPT_BYTES,
    CaseResult,
    CheckerScore,
    CheckResult,
    OutputExcerpt,
    ResourceUsage,
    text_excerpt,
    truncate_message,
    usage_from_report,
)
from adjudge.judge.checkers import FEEDBACK, CheckRequest, ProgramChecker, feedback_failure
from adjudge.judge.comparators import Comparator, Comparison, ComparisonStatus
from adjudge.judge.compile import Executable, ended, refuse_lost
from adjudge.judge.exclusive_gate import ExclusiveGate
from adjudge.judge.workspace import Scratch, Workspace
from adjudge.sandbox import InputFile, Sandbox, SandboxRunReport, SandboxRunSpec
from adjudge.sandbox.spec import FILES_MAX

SMALL_BYTES: Final = 1024 * 1024
"""Outputs up to this size are compared inline; larger ones as streams in a thread."""


@dataclass(frozen=True, slots=True)
class CaseLimits:
    """The limits stated in the problem, and those enforced by the sandbox."""

    stated: Limits
    memory_bytes: int
    """The problem's memory limit, passed to runtimes as their heap size."""
    enforced: Limits
    """The limits of the sandbox run."""

    @classmethod
    def with_margin(cls, promised: Limits, memory_bytes: int, margin: float) -> CaseLimits:
        """Enforce a time limit ``margin`` above the stated one; a run that ends in between is repeated exclusively."""
        cpu_ms, wall_ms = (round(limit * (1 + margin)) for limit in (promised.cpu_ms, promised.wall_ms))
        return cls(promised, memory_bytes, replace(promised, cpu_ms=cpu_ms, wall_ms=wall_ms))


@dataclass(frozen=True, slots=True)
class PassResult:
    """The result of one pass."""

    usage: ResourceUsage | None
    check: CheckResult
    first_run: ResourceUsage | None = None


class InteractionRunner(Protocol):
    """Runs one pass of an interactive or communication problem."""

    async def __call__(self, runner: CaseRunner, case: Case, question: CheckRequest, scratch: Scratch) -> PassResult:
        """Run the submission against the interactor or manager."""
        ...


@dataclass(frozen=True, slots=True)
class CaseRunner:
    """Runs test cases; holds everything that is the same for all of them."""

    problem: Problem
    files: ProblemFiles
    sandbox: Sandbox
    workspace: Workspace
    exclusive_gate: ExclusiveGate
    limits: CaseLimits
    program: Executable | None
    slots: asyncio.Semaphore
    """Limits concurrent runs to the parallelism. The next test case waits here, prepared, while this one runs."""
    checkers: dict[int, ProgramChecker] = field(default_factory=dict)
    """Compiled checker programs by ``id`` of their ``Checker``."""
    interaction: InteractionRunner | None = None
    answers: dict[str, bytes] = field(default_factory=dict)
    """Submitted answers by file name (submit-answer)."""
    job_id: str = ""
    attempt_id: int = 0
    _comparators: dict[tuple[int, tuple[str, ...]], Comparator] = field(default_factory=dict)

    async def run(self, case: Case) -> CaseResult:
        """Run and check one test case; a sandbox fault raises, a fault of a jury program is SE."""
        with self.workspace.scratch() as scratch:
            question = CheckRequest(
                input=self.files.locate(case.input),
                answer=self.files.locate(case.answer) if case.answer else self.workspace.empty,
                output=scratch.output,
                args=case.checker_args,
                feedback=scratch.feedback,
            )
            if self.checkers or self.interaction:
                scratch.clear_feedback()
            passes, passed = 1, await self._pass(case, question, scratch)
            worst = passed
            while self.problem.max_passes > 1 and (following := _next_input(scratch, passed)) is not None:
                if passes >= self.problem.max_passes:
                    message = f"the output validator wants more than {self.problem.max_passes} passes"
                    passed = PassResult(passed.usage, CheckResult(Verdict.SE, message))
                    break
                if failure := feedback_failure(scratch.feedback):
                    passed = PassResult(passed.usage, failure)
                    break
                passes += 1
                question = replace(question, input=_keep(following, scratch, passes))
                passed = _after(passed.check, await self._pass(case, question, scratch))
                worst = worst if _slower(worst, passed) else passed
            row = _row(case, passed, passes, worst)
            return replace(row, output_excerpt=_written(question, scratch)) if self._may_show(row) else row

    def _may_show(self, row: CaseResult) -> bool:
        """Whether the author may see output and answer: only for public test cases whose answer can be compared."""
        is_plain = self.interaction is None and self.problem.max_passes == 1
        return row.is_sample and row.verdict is Verdict.WA and is_plain

    async def _pass(self, case: Case, question: CheckRequest, scratch: Scratch) -> PassResult:
        if self.problem.mode is ProblemMode.SUBMIT_ANSWER:
            return await self._submitted(case, question, scratch)
        if self.interaction is not None:
            return await self.interaction(self, case, question, scratch)
        report, run, first = await self._run_repeated(case, question, scratch)
        if run.verdict is not Verdict.AC and not self._checker(case).runs_on_rejected:
            return PassResult(run, CheckResult(run.verdict, failure_message(run, report)), first)
        checked = await self.check(case, question, scratch)
        if run.verdict is not Verdict.AC:
            checked = CheckResult(run.verdict, failure_message(run, report), score=checked.score)
        return PassResult(run, checked, first)

    async def _submitted(self, case: Case, question: CheckRequest, scratch: Scratch) -> PassResult:
        """Check a submitted answer; nothing is run."""
        data = self.answers.get(case.submitted_name)
        if data is None:
            return PassResult(None, CheckResult(Verdict.WA, f"no file {case.submitted_name} was submitted"))
        os.pwrite(scratch.clear(), data, 0)
        return PassResult(None, await self.check(case, question, scratch))

    async def _run_repeated(
        self, case: Case, question: CheckRequest, scratch: Scratch
    ) -> tuple[SandboxRunReport, ResourceUsage, ResourceUsage | None]:
        spec = self._spec(case, question, scratch)
        async with self.acquire_slot():
            report = await self._run_once(spec, scratch)
        run = self.usage(report)
        if not is_near_limit(run, report):
            return report, run, None
        async with self.exclusive_gate.exclusive():
            report = await self._run_once(spec, scratch)
        return report, self.usage(report), run

    @asynccontextmanager
    async def acquire_slot(self) -> AsyncIterator[None]:
        """Run beside others; the slot is released before the output is checked."""
        async with self.slots, self.exclusive_gate.shared():
            yield
        await asyncio.sleep(0)

    async def _run_once(self, spec: SandboxRunSpec, scratch: Scratch) -> SandboxRunReport:
        scratch.clear()
        report = self.ended(await self.sandbox.run(spec))
        refuse_lost(report)
        if self.problem.output_file:
            _take_output(self.problem, scratch, report)
        return report

    def ended(self, report: SandboxRunReport) -> SandboxRunReport:
        """Pass on the report of a submission's run; a sandbox fault raises."""
        return ended(report, self._program, "the submission")

    @property
    def _program(self) -> Executable:
        assert self.program is not None, "only submitted answers have no program"  # noqa: S101  # the pipeline compiled it
        return self.program

    def usage(self, report: SandboxRunReport) -> ResourceUsage:
        """Compare a report with the stated limits."""
        return usage_from_report(
            report, self.limits.stated.cpu_ms, self.program.out_of_memory_messages if self.program else ()
        )

    def _spec(self, case: Case, question: CheckRequest, scratch: Scratch) -> SandboxRunSpec:
        """The run of the submission, with stdin and stdout or named files."""
        named_input, named_output = self.problem.input_file, self.problem.output_file
        files = self.case_files(case)
        if named_input:
            files = (*files, InputFile(named_input, question.input))
        return self.submission_spec(
            case,
            stdin=None if named_input and not self.problem.keeps_stdio else question.input,
            stdout=None if named_output and not self.problem.keeps_stdio else scratch.output_fd,
            files=files,
            collect=(named_output,) if named_output else (),
            collect_to=scratch.feedback if named_output else None,
        )

    def submission_spec(
        self,
        case: Case,
        *,
        stdin: Path | int | None = None,
        stdout: int | None = None,
        files: tuple[InputFile, ...] = (),
        collect: tuple[str, ...] = (),
        collect_to: Path | None = None,
        args: Sequence[str] = (),
    ) -> SandboxRunSpec:
        """The run of the submission, independent of how it is connected."""
        program = self._program
        return SandboxRunSpec(
            argv=program.argv(self.limits.memory_bytes, (*args, *case.args)),
            limits=self.limits.enforced,
            env=program.env,
            stdin=stdin,
            stdout=stdout,
            files=_with_siblings(files, program.files),
            mounts=program.mounts,
            collect=collect,
            collect_to=collect_to,
            job_id=self.job_id,
            attempt_id=self.attempt_id,
        )

    def case_files(self, case: Case) -> tuple[InputFile, ...]:
        """Files of the case that are copied into the work directory."""
        return tuple(InputFile(file.name, self.files.locate(file.path)) for file in case.files)

    def _checker(self, case: Case) -> Checker:
        return case.checker or self.problem.checker

    async def check(self, case: Case, question: CheckRequest, scratch: Scratch) -> CheckResult:
        checker = self._checker(case)
        if checker.protocol is not CheckerProtocol.NATIVE:
            return await self.checkers[id(checker)].check(question)
        comparator = self._comparator(checker, case.checker_args)
        output_bytes = scratch.output_bytes()
        if output_bytes <= SMALL_BYTES and question.answer.stat().st_size <= SMALL_BYTES:
            output = os.pread(scratch.output_fd, output_bytes, 0)
            return check_result_from_comparison(comparator.compare_bytes(question.answer.read_bytes(), output))
        return check_result_from_comparison(
            await asyncio.to_thread(comparator.compare_files, question.answer, scratch.output)
        )

    def _comparator(self, checker: Checker, args: tuple[str, ...]) -> Comparator:
        key = id(checker), args
        if key not in self._comparators:
            self._comparators[key] = comparators.build_comparator(
                checker.native, (*checker.args, *args), checker.options
            )
        return self._comparators[key]


def _with_siblings(files: tuple[InputFile, ...], siblings: tuple[InputFile, ...]) -> tuple[InputFile, ...]:
    """The files of the case and, if there is space, those of a script of several files; the case's have precedence."""
    if not siblings:
        return files
    names = {file.name for file in files}
    beside = tuple(file for file in siblings if file.name not in names)
    return (*files, *beside) if len(files) + len(beside) <= FILES_MAX else files


def check_result_from_comparison(check: Comparison) -> CheckResult:
    score = None if check.score is None else CheckerScore(check.score, ScoreUnit.FRACTION)
    if check.status is ComparisonStatus.JURY_ERROR:
        return CheckResult(Verdict.SE, f"the jury's answer cannot be compared: {check.message}")
    if score is not None and score.value > 0:
        return CheckResult(Verdict.AC, check.message, score=score)
    return CheckResult(Verdict.AC if check.accepted else Verdict.WA, check.message)


def is_near_limit(run: ResourceUsage, report: SandboxRunReport) -> bool:
    """Whether the program ended by itself slightly over the limit; then the run is repeated exclusively."""
    return run.verdict is Verdict.TLE and report.verdict.value in ("OK", "RE")


def failure_message(run: ResourceUsage, report: SandboxRunReport) -> str:
    """How the program ended, and the end of its stderr."""
    check = report.stderr[-2000:].decode("utf-8", "replace").strip()
    return truncate_message(f"{run.reason}\n{check}" if check else run.reason)


def _written(question: CheckRequest, scratch: Scratch) -> OutputExcerpt:
    with question.answer.open("rb") as answer:
        expected = answer.read(EXCERPT_BYTES + 1)
    return OutputExcerpt(text_excerpt(expected), text_excerpt(os.pread(scratch.output_fd, EXCERPT_BYTES + 1, 0)))


def _take_output(problem: Problem, scratch: Scratch, report: SandboxRunReport) -> None:
    """Append the named output file to stdout's output; a missing file is empty."""
    if not problem.keeps_stdio:
        scratch.clear()
    os.lseek(scratch.output_fd, 0, os.SEEK_END)
    written = scratch.feedback / problem.output_file
    if report.collected and not report.collected[0].error and written.is_file() and not written.is_symlink():
        with written.open("rb") as file:
            while chunk := file.read(1024 * 1024):
                os.write(scratch.output_fd, chunk)
        written.unlink()


def _next_input(scratch: Scratch, passed: PassResult) -> Path | None:
    """The input of the next pass, if the validator accepted this one and wrote it."""
    path = scratch.feedback / FEEDBACK / "nextpass.in"
    if not path.is_file() or path.is_symlink():
        return None
    return path if passed.check.verdict is Verdict.AC else None


def _keep(following: Path, scratch: Scratch, number: int) -> Path:
    kept = scratch.feedback / f"input-{number}"
    following.rename(kept)
    return kept


def _after(before: CheckResult, passed: PassResult) -> PassResult:
    """The pass, with the check of the previous pass if it ended before the output validator ran."""
    if passed.usage is None or passed.usage.verdict is Verdict.AC:
        return passed
    now = passed.check
    message = now.message if before.message in now.message else truncate_message(f"{before.message}\n{now.message}")
    kept = replace(now, message=message, author_message=now.author_message or before.author_message)
    return replace(passed, check=kept)


def _slower(one: PassResult, other: PassResult) -> bool:
    if one.usage is None or other.usage is None:
        return one.usage is not None
    return one.usage.time_ms >= other.usage.time_ms


def _row(case: Case, passed: PassResult, passes: int, slowest: PassResult) -> CaseResult:
    """The result of the case. Limits apply to each pass, so the usage of the slowest one is shown."""
    run = passed.usage if passed.check.verdict is not Verdict.AC else slowest.usage
    return CaseResult(
        name=case.name,
        group=case.group,
        verdict=passed.check.verdict,
        is_sample=case.is_sample,
        run=run,
        first_run=passed.first_run,
        passes=passes,
        score=passed.check.score,
        message=passed.check.message,
        author_message=passed.check.author_message,
    )
