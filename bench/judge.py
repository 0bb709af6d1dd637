"""Judging a 100-test A+B in C++ and in Python, beside the bare programs and beside DMOJ's judge.

Every figure is the testing part alone, in milliseconds a test: compiling and starting up are left out on all sides.
The bare programs are the very files that our judge runs, started one after another with ``posix_spawn``, their output
written to a file and not looked at. DMOJ is pinned to one CPU, which is when it is at its best.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from adjudge.judge.compile_cache import CompileCache
from adjudge.judge.languages import Languages
from adjudge.judge.pipeline import CaseDone, CompileDone, Judge, JudgeOptions, SubmittedProgram
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.packages.load import Package, load_package
from adjudge.sandbox import Sandbox
from bench.harness import Bench, Goal, interleave_here, sized
from bench.peers import PEERS, install, last_line

PEER = PEERS / "dmoj"
TESTS = sized(full=100, smoke=3)
ROUNDS = sized(full=9, quick=3, smoke=1)
SIZES = (sized(full=30, smoke=2), sized(full=100, smoke=4), sized(full=1_000, quick=300, smoke=6))
PROGRAMS = {
    "C++": (
        "ab.cpp",
        b"#include <iostream>\nint main() { long long a, b; std::cin >> a >> b; std::cout << a + b << '\\n'; }\n",
    ),
    "Python": ("ab.py", b"a, b = map(int, input().split())\nprint(a + b)\n"),
}
DMOJ_LANGUAGES = {"C++": "CPP17", "Python": "PY3"}


def write_problem(folder: Path, tests: int) -> Path:
    """An A+B package: numbered inputs and answers."""
    folder.mkdir(parents=True)
    numbers = random.Random(tests)
    for index in range(1, tests + 1):
        a, b = numbers.randrange(10**9), numbers.randrange(10**9)
        (folder / f"{index:04d}.in").write_text(f"{a} {b}\n")
        (folder / f"{index:04d}.out").write_text(f"{a + b}\n")
    return folder


class AdjudgeJudge:
    """Our judge on one problem."""

    def __init__(self, judge: Judge, package: Package) -> None:
        self.judge, self.package = judge, package

    async def per_test_ms(self, program: str, jobs: int = 1) -> float:
        name, text = PROGRAMS[program]
        seen: list[float] = []

        def note(_: CompileDone | CaseDone) -> None:
            seen.append(time.perf_counter())

        submission = SubmittedProgram(ProgramSource((SourceFile(name, text),)))
        options = JudgeOptions(parallelism=jobs, revision="bench")
        result = await self.judge.judge(self.package.problem, self.package.files, submission, options, note)
        assert result.verdict == "AC", result.message
        return (seen[-1] - seen[0]) * 1000 / len(result.cases)

    async def command(self, program: str) -> list[str]:
        """What our judge runs, to be run bare."""
        name, text = PROGRAMS[program]
        language = self.judge.languages.for_file(name)
        assert language is not None
        compiled = await self.judge.compiler.compile(language, ProgramSource((SourceFile(name, text),)))
        assert compiled.executable is not None
        folder = str(compiled.executable.directory)
        return [part.replace("/app", folder) for part in compiled.executable.argv(2**28)]


def run_bare(command: list[str], inputs: Sequence[Path], output: Path) -> float:
    """The same program with no judge around it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    started = time.perf_counter()
    for path in inputs:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, str(path), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(output), flags, 0o644),
        ]
        os.waitpid(os.posix_spawn(command[0], command, {"PATH": "/usr/bin"}, file_actions=actions), 0)
    return (time.perf_counter() - started) * 1000 / len(inputs)


class DmojJudge:
    """DMOJ's judge by its command line, in an environment of its own."""

    def __init__(self, folder: Path, problem: Path, tests: int) -> None:
        self.folder, self.tests = folder, tests
        copied = folder / "problems" / "ab"
        shutil.copytree(problem, copied)
        cases = [f"- {{in: {i:04d}.in, out: {i:04d}.out, points: 1}}" for i in range(1, tests + 1)]
        (copied / "init.yml").write_text("\n".join(["test_cases:", *cases, ""]))
        runtime = "runtime: {g++17: /usr/bin/g++, python3: /usr/bin/python3}"
        (folder / "judge.yml").write_text(f"problem_storage_globs: ['{folder}/problems/*']\n{runtime}\n")
        for name, text in PROGRAMS.values():
            (folder / name).write_bytes(text)

    def per_test_ms(self, program: str) -> float:
        """The time from the first test's line to the last one's."""
        language = DMOJ_LANGUAGES[program]
        argv = [
            PEER / "bin" / "dmoj-cli",
            "-c",
            self.folder / "judge.yml",
            "-e",
            language,
            "--no-ansi",
            "--skip-self-test",
        ]
        argv += ["--", "submit", "ab", language, self.folder / PROGRAMS[program][0], "-tl", "2", "-ml", "262144"]
        env = {"PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": "1", "HOME": str(self.folder)}
        seen: list[float] = []
        said: list[str] = []
        with subprocess.Popen(
            list(map(str, argv)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                said.append(line)
                if line.lstrip().startswith("Test case") and " AC " in line:
                    seen.append(time.perf_counter())
        if len(seen) != self.tests:
            raise RuntimeError(f"{len(seen)} of {self.tests} tests accepted: {last_line(''.join(said))}")
        return (seen[-1] - seen[0]) * 1000 / (len(seen) - 1)


def open_dmoj(folder: Path, problem: Path) -> tuple[DmojJudge | None, str]:
    """Install DMOJ's judge and try it on every program; the reason why it cannot be had otherwise."""
    if why := install("DMOJ", ("dmoj",), needs="libseccomp-dev"):
        return None, f"DMOJ: {why}"
    dmoj = DmojJudge(folder, problem, TESTS)
    try:
        for program in PROGRAMS:
            dmoj.per_test_ms(program)
    except (OSError, RuntimeError) as error:
        return None, f"DMOJ is installed, but does not judge here: {error}"
    return dmoj, ""


async def add_rows(bench: Bench, judge: Judge, folder: Path) -> None:
    """Measure everything in turns."""
    rounds = ROUNDS
    problem = write_problem(folder / "ab", TESTS)
    dmoj, absent = open_dmoj(folder / "dmoj", problem)
    inputs = [problem / f"{index:04d}.in" for index in range(1, TESTS + 1)]
    with load_package(problem) as package:
        ours = AdjudgeJudge(judge, package)
        for program in PROGRAMS:
            await ours.per_test_ms(program)
            figures = await measure(ours, dmoj, program, inputs, rounds)
            goal = Goal(limit=2.0 if program == "C++" else 1.3)
            bench.compare(f"{program}: a test", figures, "ours", "bare", unit="ms", goal=goal)
            if dmoj is None:
                bench.absent(f"{program}: a test", absent)
            else:
                goal = Goal(limit=0.25) if program == "C++" else Goal(limit=1.0)
                bench.compare(f"{program}: a test", figures, "ours", "DMOJ", unit="ms", goal=goal)
        await add_pairs(bench, ours, rounds)


async def measure(
    ours: AdjudgeJudge, dmoj: DmojJudge | None, program: str, inputs: Sequence[Path], rounds: int
) -> dict[str, float]:
    command = await ours.command(program)
    output = inputs[0].parent.parent / "bare-output"

    async def judged() -> float:
        return await ours.per_test_ms(program)

    async def bare() -> float:
        return run_bare(command, inputs, output)

    async def peer() -> float:
        return dmoj.per_test_ms(program) if dmoj else 0.0

    contenders = {"ours": judged, "bare": bare} | ({"DMOJ": peer} if dmoj else {})
    return await interleave_here(contenders, rounds)


async def add_pairs(bench: Bench, ours: AdjudgeJudge, rounds: int) -> None:
    """Two submissions at once, each on a slot of its own, beside one alone."""

    async def one() -> float:
        started = time.perf_counter()
        await ours.per_test_ms("Python")
        return (time.perf_counter() - started) * 1000

    async def two() -> float:
        started = time.perf_counter()
        await asyncio.gather(ours.per_test_ms("Python"), ours.per_test_ms("Python"))
        return (time.perf_counter() - started) * 1000

    figures = await interleave_here({"two at once": two, "one alone": one}, rounds)
    goal = Goal(limit=1.3) if (os.cpu_count() or 1) > 1 else None
    bench.compare("two submissions on two CPUs", figures, "two at once", "one alone", unit="ms", goal=goal)


async def add_growth(bench: Bench, judge: Judge, folder: Path) -> None:
    """The same program against three sizes of problem: a test must not cost more where there are more of them."""
    for tests in SIZES:
        with load_package(write_problem(folder / f"size-{tests}", tests)) as package:
            ours = AdjudgeJudge(judge, package)
            await ours.per_test_ms("C++")
            figures = [await ours.per_test_ms("C++") for _ in range(3)]
            bench.add(f"C++: a test, of {tests}", median(figures), "ms")


async def main() -> None:
    bench = Bench("judge")
    with tempfile.TemporaryDirectory(prefix="bench-judge-") as name:
        folder = Path(name)
        async with Sandbox(unsafe=True, slots=2) as box:
            judge = Judge(box, Languages.load(), CompileCache(folder / "compiled"), worker="bench")
            await add_rows(bench, judge, folder)
            await add_growth(bench, judge, folder)
    bench.finish()


if __name__ == "__main__":
    asyncio.run(main())
