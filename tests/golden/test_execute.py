"""Executions in the real sandbox."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from adjudge.domain.limits import MIB, Limits
from adjudge.domain.verdict import Verdict
from adjudge.judge.exclusive_gate import ExclusiveGate
from adjudge.judge.execution import execute
from adjudge.judge.pipeline import Judge
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.sandbox import SandboxRunSpec

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIMITS = Limits(cpu_ms=1_000, wall_ms=60_000, memory_bytes=256 * MIB)


def source(text: str) -> ProgramSource:
    return ProgramSource((SourceFile("source", text.encode()),))


async def test_program_runs_on_each_input(judge: Judge) -> None:
    program = source("import sys\nsys.stdout.buffer.write(b'%d\\xff' % (int(input()) * 2))\n")
    seen: list[int] = []
    found = await execute(
        judge, judge.languages.get("python3"), program, [b"21\n", b"x\n"], LIMITS, progress=seen.append
    )
    first, second = found.runs
    assert (first.usage.verdict, first.stdout) == (Verdict.AC, b"42\xff")
    assert (second.usage.verdict, second.usage.exit_code) == (Verdict.RE, 1)
    assert b"ValueError" in second.stderr
    assert (found.verdict, seen) == (Verdict.RE, [1, 2])


async def test_compile_error_runs_nothing(judge: Judge) -> None:
    found = await execute(judge, judge.languages.get("c"), source("int main( {"), [b""], LIMITS)
    assert (found.verdict, found.runs) == (Verdict.CE, ())
    assert "error" in found.compile_message


async def test_execution_waits_for_running_judging(judge: Judge) -> None:
    apart = replace(judge, exclusive_gate=ExclusiveGate(executions_apart=True))
    program, language = source("print(1)\n"), judge.languages.get("python3")
    await execute(apart, language, program, [], LIMITS)  # compiled: what waits below is the run
    async with apart.exclusive_gate.shared():
        waiting = asyncio.create_task(execute(apart, language, program, [b"", b""], LIMITS))
        report = await apart.sandbox.run(SandboxRunSpec(argv=("/bin/true",)))
        await asyncio.wait([waiting], timeout=0.2)
        assert report.ok
        assert not waiting.done()
    found = await waiting
    assert [run.stdout for run in found.runs] == [b"1\n", b"1\n"]


@pytest.mark.slow
async def test_execution_limits_are_enforced(judge: Judge) -> None:
    found = await execute(judge, judge.languages.get("c"), source("int main(){for(;;);}"), [b""], LIMITS)
    assert found.verdict is Verdict.TLE
