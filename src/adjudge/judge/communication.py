"""Communication problems (CMS): processes of the submission exchange data with a manager through FIFOs.

The manager gets as arguments, for each process, the FIFO from it and the FIFO to it. A process gets the FIFO from the
manager and the FIFO to it as arguments, or as stdin and stdout, and its number if there are several processes.
``fifos`` creates the FIFOs and keeps them open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from adjudge.domain.limits import Limits
from adjudge.domain.problem import Case
from adjudge.domain.programs import Interactor, ScoreUnit, UserIO
from adjudge.domain.verdict import Verdict
from adjudge.judge.case_results import CheckResult, ResourceUsage
from adjudge.judge.case_runner import CaseRunner, PassResult, failure_message
from adjudge.judge.checkers import CheckRequest, checker_failure, checker_mounts, read_cms
from adjudge.judge.compile import Executable, ended
from adjudge.judge.fifos import FifoMisuse, Fifos, Line, open_fifos
from adjudge.judge.workspace import Scratch
from adjudge.sandbox import InputFile, ReservedSlot, SandboxRunReport, SandboxRunSpec, gather_or_cancel


@dataclass(frozen=True, slots=True)
class CommunicationRunner:
    """Runs a case of a communication problem."""

    interactor: Interactor
    program: Executable
    limits: Limits

    async def __call__(self, runner: CaseRunner, case: Case, question: CheckRequest, scratch: Scratch) -> PassResult:
        """Run the manager and all processes; a process that was stopped for misuse of its FIFOs is a runtime error."""
        try:
            return await self._run(runner, case, question, scratch)
        except FifoMisuse as misuse:
            return PassResult(None, CheckResult(Verdict.RE, str(misuse)))

    async def _run(self, runner: CaseRunner, case: Case, question: CheckRequest, scratch: Scratch) -> PassResult:
        """Start the manager and all processes concurrently and evaluate their reports."""
        count = self.interactor.processes
        scratch.clear()
        async with runner.acquire_slot(), runner.sandbox.reserve_slots(count + 1) as (first, *others):
            with open_fifos(count, runner.workspace.root) as fifos:
                manager, *users = await gather_or_cancel(
                    self._manage(first, runner, fifos, question),
                    *(
                        self._use(slot, runner, fifos, line, case)
                        for slot, line in zip(others, fifos.lines, strict=True)
                    ),
                )
        users = [runner.ended(report) for report in users]
        manager = ended(manager, self.program, "the manager")
        run = _together([runner.usage(report) for report in users], runner.limits.stated.cpu_ms)
        check = checker_failure(manager, "manager") or read_cms(manager, ScoreUnit.FRACTION)
        if run.verdict is Verdict.AC:
            return PassResult(run, check)
        failed = next((report for report in users if not report.ok), users[0])
        if check.verdict is Verdict.WA and manager.ended_ns < failed.ended_ns:
            # The manager had rejected before; how a process ends after that does not count.
            return PassResult(run, check)
        return PassResult(run, CheckResult(run.verdict, failure_message(run, failed)))

    async def _manage(
        self, slot: ReservedSlot, runner: CaseRunner, fifos: Fifos, question: CheckRequest
    ) -> SandboxRunReport:
        count = self.interactor.processes
        limits = runner.limits.enforced
        args = [path for line in fifos.lines for path in line.paths]
        spec = SandboxRunSpec(
            argv=self.program.argv(self.limits.memory_bytes, [*args, *self.interactor.args]),
            limits=replace(
                self.limits,
                cpu_ms=max(count * (limits.cpu_ms + 1000), 10_000),
                wall_ms=max(limits.wall_ms + 5_000, 15_000),
            ),
            env=self.program.env,
            stdin=question.input,
            files=(InputFile("input.txt", question.input),),
            mounts=(*self.program.mounts, *checker_mounts(question)[:2], fifos.manager_mount),
        )
        report = await slot.run(spec)
        fifos.manager_ended()
        return report

    async def _use(
        self, slot: ReservedSlot, runner: CaseRunner, fifos: Fifos, line: Line, case: Case
    ) -> SandboxRunReport:
        number = [str(line.number)] if self.interactor.processes > 1 else []
        if self.interactor.user_io is UserIO.FIFO:
            from_process, to_process = line.paths
            spec = runner.submission_spec(case, args=(to_process, from_process, *number))
            run = slot.run(replace(spec, mounts=(*spec.mounts, line.mount)))
        else:
            spec = runner.submission_spec(case, args=number)
            stdin, stdout = line.open_as_stdio()
            run = slot.run(replace(spec, stdin=stdin, stdout=stdout), [stdin, stdout])
        return await fifos.run_process(line, run)


def _together(runs: list[ResourceUsage], cpu_limit_ms: int) -> ResourceUsage:
    """Combine the processes: CPU times are added, and the first failed process decides."""
    total = sum(run.time_ms for run in runs)
    decisive = next((run for run in runs if run.verdict is not Verdict.AC), runs[0])
    verdict = decisive.verdict
    if verdict is Verdict.AC and total > cpu_limit_ms:
        verdict = Verdict.TLE
    return replace(
        decisive,
        verdict=verdict,
        time_ms=total,
        wall_ms=max(run.wall_ms for run in runs),
        mem_kb=max(run.mem_kb for run in runs),
    )
