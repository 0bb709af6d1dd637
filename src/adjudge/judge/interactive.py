"""Interactive problems: the submission and the jury's interactor, connected by pipes.

The verdict follows the ICPC reference: an interactor that rejects before the submission ends decides; otherwise a
failed submission has failed; otherwise the interactor decides. An interactor that crashes is a jury error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from signal import SIGPIPE
from typing import Final

from adjudge.domain.limits import Limits
from adjudge.domain.problem import Case
from adjudge.domain.programs import Interactor, InteractorProtocol, ScoreUnit
from adjudge.domain.verdict import Verdict
from adjudge.judge.case_results import CheckResult, ResourceUsage
from adjudge.judge.case_runner import CaseRunner, PassResult, failure_message, is_near_limit
from adjudge.judge.checkers import (
    ANSWER,
    FEEDBACK,
    INPUT,
    CheckRequest,
    checker_failure,
    checker_mounts,
    clear_feedback,
    feedback_files,
    parse_testlib,
    read_coci,
    read_dmoj,
    read_icpc,
)
from adjudge.judge.compile import Executable, ended
from adjudge.judge.workspace import Scratch
from adjudge.sandbox import SandboxRunReport, SandboxRunSpec

_TOUT: Final = "tout"
_INTERACTOR_FIRST: Final = 1
_WALL_SLACK_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class InteractiveRunner:
    """Runs a pass of an interactive problem."""

    interactor: Interactor
    program: Executable
    limits: Limits
    """The limits of the problem's validators."""

    async def __call__(self, runner: CaseRunner, case: Case, question: CheckRequest, scratch: Scratch) -> PassResult:
        """Run both programs and evaluate the reports; a run slightly over the limit is repeated exclusively."""
        async with runner.acquire_slot():
            passed, again = await self._once(runner, case, question, scratch)
        if not again:
            return passed
        async with runner.exclusive_gate.exclusive():
            second, _ = await self._once(runner, case, question, scratch)
        return replace(second, first_run=passed.usage)

    async def _once(
        self, runner: CaseRunner, case: Case, question: CheckRequest, scratch: Scratch
    ) -> tuple[PassResult, bool]:
        scratch.clear()
        submission = runner.submission_spec(case, files=runner.case_files(case))
        report, other, first = await runner.sandbox.run_interactive(submission, self._spec(submission, question, case))
        report = runner.ended(report)
        other = ended(other, self.program, "the interactor")
        run = runner.usage(report)
        check = self._read(other, question, report)
        checked = _blame(run, report, check, interactor_first=first == _INTERACTOR_FIRST)
        if checked is check and check.verdict is Verdict.AC and self._checks_tout:
            _lay_out(scratch)
            checked = await runner.check(case, question, scratch)
        return PassResult(run, checked), is_near_limit(run, report) and checked.verdict is Verdict.TLE

    @property
    def _checks_tout(self) -> bool:
        """Whether a checker runs on the file that the interactor wrote."""
        return self.interactor.protocol is InteractorProtocol.TESTLIB

    def _spec(self, submission: SandboxRunSpec, question: CheckRequest, case: Case) -> SandboxRunSpec:
        protocol = self.interactor.protocol
        icpc = protocol is InteractorProtocol.ICPC
        feedback = question.feedback
        collect = (FEEDBACK,) if icpc else (_TOUT,) if self._checks_tout else ()
        if icpc:
            args = [INPUT, ANSWER, f"/work/{FEEDBACK}/", *self.interactor.args, *case.checker_args]
        elif protocol in (InteractorProtocol.DMOJ, InteractorProtocol.COCI):
            args = [INPUT, ANSWER, *self.interactor.args]
        else:
            args = [INPUT, _TOUT if self._checks_tout else "/dev/null", ANSWER, *self.interactor.args]
        wall_ms = submission.limits.wall_ms + self.interactor.extra_cpu_ms + _WALL_SLACK_MS
        return SandboxRunSpec(
            argv=self.program.argv(self.limits.memory_bytes, args),
            limits=replace(self.limits, wall_ms=max(wall_ms, 1)),
            env=self.program.env,
            files=feedback_files(feedback) if icpc and feedback else (),
            mounts=(*self.program.mounts, *checker_mounts(question)[:2]),
            collect=collect,
            collect_to=clear_feedback(feedback) if collect and feedback else None,
        )

    def _read(self, report: SandboxRunReport, question: CheckRequest, submission: SandboxRunReport) -> CheckResult:
        if report.exit_signal == SIGPIPE and not submission.ok:
            # Its partner had exited: the end of that program decides.
            return CheckResult(Verdict.WA, "the interactor's peer exited")
        protocol = self.interactor.protocol
        if protocol is InteractorProtocol.ICPC and question.feedback is not None:
            return read_icpc(report, question.feedback)
        if failure := checker_failure(report, "interactor"):
            return failure
        read = {InteractorProtocol.DMOJ: read_dmoj, InteractorProtocol.COCI: read_coci}.get(protocol, parse_testlib)
        return read(report, ScoreUnit.ABSOLUTE)


def _blame(run: ResourceUsage, report: SandboxRunReport, check: CheckResult, *, interactor_first: bool) -> CheckResult:
    if check.verdict is Verdict.SE:
        # An interactor that waited for a hanging submission is not the cause.
        return CheckResult(run.verdict, failure_message(run, report)) if run.verdict is Verdict.TLE else check
    if interactor_first and check.verdict is Verdict.WA:
        return check
    if run.verdict is not Verdict.AC:
        return CheckResult(run.verdict, failure_message(run, report))
    return check


def _lay_out(scratch: Scratch) -> None:
    """Make the interactor's output file the output that the checker sees."""
    written = scratch.feedback / _TOUT
    scratch.clear()
    if written.is_file() and not written.is_symlink():
        scratch.output.write_bytes(written.read_bytes())
