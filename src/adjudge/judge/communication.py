"""Communication problems (CMS): one or more processes of the submission talk to a manager through fifos.

We keep both ends of every fifo open ourselves, so that nobody hangs in ``open``. A process that ends has its ends
closed, which is how the manager learns of it; but not before the manager has opened its own: until then a fifo that
nobody else holds would lose what is in it, and keep the manager waiting for somebody to open it again.
"""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from adjudge.domain.limits import Limits
from adjudge.domain.problem import Case
from adjudge.domain.programs import Interactor, ScoreUnit, UserIO
from adjudge.domain.verdict import Verdict
from adjudge.judge.cases import Checked, Figures
from adjudge.judge.checkers import Question, checker_failure, judge_mounts, read_cms
from adjudge.judge.compile import Executable, refuse_fault
from adjudge.judge.run import CaseRunner, Passed, failure_message
from adjudge.judge.workspace import Desk
from adjudge.sandbox import InputFile, Mount, RunReport, RunSpec, Seat, all_together

_FIFOS: Final = "/fifos"
_LOOK_SEC: Final = 0.005
"""How often to look whether the manager has opened a fifo: nothing tells of it."""


@dataclass(slots=True)
class _Line:
    """The two fifos between the manager and one process."""

    number: int
    directory: Path
    held: list[int]

    @property
    def from_user(self) -> str:
        return f"{_FIFOS}/from{self.number}"

    @property
    def to_user(self) -> str:
        return f"{_FIFOS}/to{self.number}"

    def open(self, name: str, flags: int) -> int:
        return os.open(self.directory / f"{name}{self.number}", flags | os.O_CLOEXEC)

    def hang_up(self) -> None:
        """Let go of our ends: the other side reads the end of the stream."""
        while self.held:
            asyncio.get_running_loop().remove_reader(self.held[-1])
            os.close(self.held.pop())

    async def part(self) -> None:
        """The process has ended: the manager reads what is left, then the end, and writes to nobody without hanging."""
        if not self.held:
            return  # the manager ended first
        writer, drain = self.open("from", os.O_WRONLY), self.open("to", os.O_RDWR | os.O_NONBLOCK)
        self.hang_up()
        self.held = [drain, writer]
        asyncio.get_running_loop().add_reader(drain, os.read, drain, select.PIPE_BUF)
        while self.held and not _is_read(writer):  # noqa: ASYNC110 — there is no event to wait for
            await asyncio.sleep(_LOOK_SEC)
        if self.held:
            os.close(self.held.pop())


def _is_read(writer: int) -> bool:
    """Whether anybody has the other end of a fifo open."""
    poll = select.poll()
    poll.register(writer, 0)
    return not poll.poll(0)


@contextmanager
def _lines(count: int, parent: Path) -> Iterator[tuple[Path, list[_Line]]]:
    directory = Path(tempfile.mkdtemp(prefix="fifos-", dir=parent))
    lines = []
    try:
        directory.chmod(0o755)
        for number in range(count):
            for name in ("from", "to"):
                path = directory / f"{name}{number}"
                os.mkfifo(path)
                path.chmod(0o666)
            line = _Line(number, directory, [])
            lines.append(line)
            line.held = [line.open("from", os.O_RDWR), line.open("to", os.O_RDWR)]
        yield directory, lines
    finally:
        for line in lines:
            line.hang_up()
        shutil.rmtree(directory, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Managed:
    """Runs a case of a communication problem."""

    interactor: Interactor
    program: Executable
    limits: Limits

    async def __call__(self, runner: CaseRunner, case: Case, question: Question, desk: Desk) -> Passed:
        """Start everybody at once; whoever ends hangs up."""
        count = self.interactor.processes
        desk.clear()
        async with runner.running(), runner.box.seats(count + 1) as (first, *others):
            with _lines(count, runner.workspace.root) as (directory, lines):
                manager, *users = await all_together(
                    self._manage(first, runner, directory, lines, question),
                    *(self._use(seat, runner, directory, line, case) for seat, line in zip(others, lines, strict=True)),
                )
        for report in users:
            refuse_fault(report, "the submission")
        refuse_fault(manager, "the manager")
        run = _together([runner.figures(report) for report in users], runner.limits.promised.cpu_ms)
        if run.verdict is not Verdict.AC:
            failed = next((report for report in users if not report.ok), users[0])
            return Passed(run, Checked(run.verdict, failure_message(run, failed)))
        return Passed(run, checker_failure(manager, "manager") or read_cms(manager, ScoreUnit.FRACTION))

    async def _manage(
        self, seat: Seat, runner: CaseRunner, directory: Path, lines: list[_Line], question: Question
    ) -> RunReport:
        count = self.interactor.processes
        limits = runner.limits.stopped_at
        args = [name for line in lines for name in (line.from_user, line.to_user)]
        spec = RunSpec(
            argv=self.program.argv(self.limits.memory_bytes, [*args, *self.interactor.args]),
            limits=replace(
                self.limits,
                cpu_ms=max(count * (limits.cpu_ms + 1000), 10_000),
                wall_ms=max(limits.wall_ms + 5_000, 15_000),
            ),
            env=self.program.env,
            stdin=question.input,
            files=(InputFile("input.txt", question.input),),
            mounts=(*self.program.mounts, *judge_mounts(question)[:2], Mount(directory, _FIFOS)),
        )
        try:
            return await seat.run(spec)
        finally:
            for line in lines:
                line.hang_up()

    async def _use(self, seat: Seat, runner: CaseRunner, directory: Path, line: _Line, case: Case) -> RunReport:
        number = [str(line.number)] if self.interactor.processes > 1 else []
        if self.interactor.user_io is UserIO.FIFO:
            spec = runner.submission_spec(case, args=(line.to_user, line.from_user, *number))
            spec = replace(spec, mounts=(*spec.mounts, Mount(directory, _FIFOS)))
            report = await seat.run(spec)
            await line.part()
            return report
        ends = [line.open("to", os.O_RDONLY), line.open("from", os.O_WRONLY)]
        try:
            report = await seat.run(runner.submission_spec(case, stdin=ends[0], stdout=ends[1], args=number))
        finally:
            for end in ends:
                os.close(end)
        await line.part()
        return report


def _together(runs: list[Figures], cpu_limit_ms: int) -> Figures:
    """All processes as one: CPU time adds up, and the first that failed decides."""
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
