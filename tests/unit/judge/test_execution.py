"""Compilations and runs of executions alternate with judging."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from adjudge.domain.limits import Limits
from adjudge.domain.verdict import Verdict
from adjudge.judge.compile_cache import CompileCache
from adjudge.judge.exclusive_gate import ExclusiveGate
from adjudge.judge.execution import ExecutionResult, execute
from adjudge.judge.languages import Language, Languages
from adjudge.judge.pipeline import Judge
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.sandbox import Sandbox, SandboxRunReport, SandboxRunSpec, SandboxVerdict
from adjudge.sandbox.report import CollectedFile

pytestmark = pytest.mark.asyncio

LANGUAGE = Language(
    "made", "Made", "made", ("made",), "main.made", ("sh",), ("{dir}/main",), "", (), ("sh",), keep=("main",)
)
PROGRAM = ProgramSource((SourceFile("main.made", b"1"),))
OTHER_PROGRAM = ProgramSource((SourceFile("main.made", b"2"),))


class FakeBox:
    """A sandbox that notes what it starts; compilations end when ``may_compile`` is set."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.may_compile = asyncio.Event()

    async def run(self, spec: SandboxRunSpec) -> SandboxRunReport:
        if spec.collect_to is None:
            self.started.append("run")
            return SandboxRunReport(SandboxVerdict.OK, 1, 1, 1, 0, 0)
        self.started.append("compile")
        await self.may_compile.wait()
        (spec.collect_to / "main").write_bytes(b"program")
        return SandboxRunReport(SandboxVerdict.OK, 1, 1, 1, 0, 0, collected=(CollectedFile("main", 1, 7, ""),))


def judge_of(box: FakeBox, root: Path, *, apart: bool = True) -> Judge:
    quiet = ExclusiveGate(executions_apart=apart)
    return Judge(cast("Sandbox", box), Languages([LANGUAGE]), CompileCache(root), exclusive_gate=quiet, compilations=1)


def begin(judge: Judge, runs: int = 1) -> asyncio.Task[ExecutionResult]:
    return asyncio.create_task(execute(judge, LANGUAGE, PROGRAM, [b""] * runs, Limits()))


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def until_started(box: FakeBox, count: int) -> None:
    async with asyncio.timeout(60):
        while len(box.started) < count:
            await asyncio.sleep(0)


async def test_execution_compile_waits_for_judging(tmp_path: Path) -> None:
    box = FakeBox()
    box.may_compile.set()
    judge = judge_of(box, tmp_path)
    async with judge.exclusive_gate.shared():
        execution = begin(judge)
        await settle()
        assert box.started == []
    assert (await execution).verdict is Verdict.AC
    assert box.started == ["compile", "run"]


async def test_judging_waits_for_execution_compile(tmp_path: Path) -> None:
    box, judged = FakeBox(), asyncio.Event()
    judge = judge_of(box, tmp_path)

    async def judging() -> None:
        async with judge.exclusive_gate.shared():
            judged.set()

    execution = begin(judge)
    await until_started(box, 1)
    test_run = asyncio.create_task(judging())
    await settle()
    assert not judged.is_set()
    box.may_compile.set()
    await asyncio.gather(execution, test_run)
    assert judged.is_set()


async def test_execution_compile_does_not_wait_if_allowed_beside_judging(tmp_path: Path) -> None:
    box = FakeBox()
    judge = judge_of(box, tmp_path, apart=False)
    async with judge.exclusive_gate.shared():
        execution = begin(judge)
        await until_started(box, 1)
        box.may_compile.set()
        await execution


async def test_waiting_execution_does_not_block_submission_compile(tmp_path: Path) -> None:
    box = FakeBox()
    box.may_compile.set()
    judge = judge_of(box, tmp_path)
    async with judge.exclusive_gate.shared(), asyncio.timeout(60):
        execution = begin(judge)
        await settle()
        assert (await judge.compiler.compile(LANGUAGE, OTHER_PROGRAM)).executable
    await execution


async def test_execution_gets_compiler_slot_after_submission(tmp_path: Path) -> None:
    """The submission's compilation never waits for a turn, so that the two cannot wait for each other."""
    box = FakeBox()
    judge = judge_of(box, tmp_path)
    submission = asyncio.create_task(judge.compiler.compile(LANGUAGE, OTHER_PROGRAM))
    await until_started(box, 1)
    execution = begin(judge)
    await settle()
    assert box.started == ["compile"]
    box.may_compile.set()
    async with asyncio.timeout(60):
        await asyncio.gather(submission, execution)
    assert box.started == ["compile", "compile", "run"]


async def test_execution_does_not_reuse_program_compiled_beside_judging(tmp_path: Path) -> None:
    box = FakeBox()
    box.may_compile.set()
    judge = judge_of(box, tmp_path)
    await judge.compiler.compile(LANGUAGE, PROGRAM)
    await begin(judge)
    assert box.started == ["compile", "compile", "run"]
    await begin(judge)
    assert box.started == ["compile", "compile", "run", "run"], "its own program is reused"


async def test_cached_execution_does_not_wait_to_compile(tmp_path: Path) -> None:
    box = FakeBox()
    box.may_compile.set()
    judge = judge_of(box, tmp_path)
    await begin(judge)
    async with judge.exclusive_gate.shared(), asyncio.timeout(60):
        assert (await begin(judge, runs=0)).runs == ()
