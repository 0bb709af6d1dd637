"""Small problems made in place, for tests that need a checker or an interactor of a certain kind."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from adjudge.domain.limits import MIB, Limits
from adjudge.domain.problem import Case, Group, PackageFormat, Problem, ProblemLimits
from adjudge.domain.programs import Checker, CheckerProtocol, FileRef, Program
from adjudge.judge.pipeline import Judge, JudgeOptions, SubmittedProgram
from adjudge.judge.result_document import JudgeResult
from adjudge.judge.sources import ProgramSource, SourceFile

LIMITS = Limits(cpu_ms=1_000, wall_ms=60_000, memory_bytes=128 * MIB)
"""The wall is one that only a fault can hit: how long a busy machine takes to run a program says nothing of it."""


@dataclass(frozen=True)
class PackageBuilder:
    """A folder as a package's files."""

    root: Path

    def locate(self, path: str) -> Path:
        return self.root / path

    def size_bytes(self, path: str) -> int:
        return self.locate(path).stat().st_size

    def sha256(self, path: str) -> str:
        return sha256(self.locate(path).read_bytes()).hexdigest()

    def program(self, name: str, text: str) -> Program:
        """Write a program of the jury's."""
        (self.root / name).write_text(text)
        return Program(name, (FileRef(name, name),))

    def cases(self, *pairs: tuple[str, str], **more: Any) -> tuple[Case, ...]:
        """Write tests: input and answer each."""
        made = []
        for number, (given, wanted) in enumerate(pairs, 1):
            (self.root / f"{number}.in").write_text(given)
            (self.root / f"{number}.ans").write_text(wanted)
            made.append(Case(str(number), "", f"{number}.in", f"{number}.ans", **more))
        return tuple(made)

    def problem(self, *pairs: tuple[str, str], **more: Any) -> Problem:
        """A problem with these tests."""
        fields: dict[str, Any] = {"cases": self.cases(*pairs), "groups": (Group(""),)} | more
        return Problem("made", PackageFormat("plain"), limits=ProblemLimits(run=LIMITS), **fields)

    def checked(self, protocol: CheckerProtocol, text: str, name: str = "checker.sh", **more: Any) -> Problem:
        """A problem of one test with a checker program."""
        checker = Checker(protocol, programs=(self.program(name, text),))
        return self.problem(("7\n", "right\n"), checker=checker, **more)


async def judged(
    judge: Judge, problem: Problem, files: PackageBuilder, text: str, language: str = "bash", **options: Any
) -> JudgeResult:
    """Judge one source."""
    submission = SubmittedProgram(ProgramSource((SourceFile("program", text.encode()),)), language)
    return await judge.judge(problem, files, submission, JudgeOptions(**options))
