"""The launcher or the worker dies in the middle; the power goes: nothing is left, and the next start works."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adjudge.sandbox import RunVerdict, Sandbox
from tests.sandbox.case import Box, limits, ms
from tests.sandbox.host import LAUNCHER, Host, descendants

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unharmed")]

LONG = limits(cpu_ms=ms(60_000), wall_ms=ms(60_000))


def _launchers(below: int | None = None) -> list[int]:
    return [process.pid for process in descendants(below).values() if process.name == LAUNCHER]


async def _until(condition: object, what: str) -> None:
    assert callable(condition)
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("program", ["nap", "fork_bomb"])
async def test_an_agent_killed_in_a_run_leaves_nothing_and_the_next_run_works(
    program_folder: Path, host: Host, program: str
) -> None:
    before = set(descendants())
    async with Sandbox(slots=1, state_dir=host.state) as sandbox:
        box = Box(sandbox, program_folder, "agent")
        run = asyncio.create_task(sandbox.run(box.spec(program, within=LONG)))
        await _until(lambda: any(p.name == program for p in descendants().values()), "started")
        for pid in set(_launchers()) - before:
            os.kill(pid, signal.SIGKILL)
        report = await asyncio.wait_for(run, 30)
        assert report.verdict is RunVerdict.SE or report.degraded, report
        await _until(lambda: not any(p.name == program for p in descendants().values()), "gone")
        after = await sandbox.run(box.spec("static_noop"))
        assert after.verdict is RunVerdict.OK
        recovered = await _run_until_recovered(box)
        assert recovered
    assert not {pid: p for pid, p in descendants().items() if pid not in before}


async def _run_until_recovered(box: Box) -> bool:
    for _ in range(200):
        report = await box.sandbox.run(box.spec("static_noop"))
        assert report.verdict is RunVerdict.OK
        if not report.degraded:
            return True
        await asyncio.sleep(0.05)
    return False


WORKER = """
import asyncio, sys
from pathlib import Path
from adjudge.sandbox import InputFile, Limits, RunSpec, Sandbox
programs, state, way, program = sys.argv[1:]
async def main():
    async with Sandbox(slots=1, use_agent=way == "agent", state_dir=Path(state)) as box:
        await box.run(RunSpec(argv=("/work/x",), limits=Limits(cpu_ms=60_000, wall_ms=60_000, processes=32),
            files=(InputFile("x", Path(programs) / program, executable=True),)))
asyncio.run(main())
"""


@pytest.mark.parametrize("program", ["nap", "fork_bomb", "stopped"])
async def test_a_worker_killed_in_a_run_leaves_nothing(box: Box, host: Host, program: str) -> None:
    before = set(descendants())
    state = host.state / "worker"
    argv = [sys.executable, "-c", WORKER, str(box.programs), str(state), box.way, program]
    worker = subprocess.Popen(argv)
    await _until(lambda: any(p.name == "x" for p in descendants(worker.pid).values()), "started")
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    await _until(lambda: set(descendants()) <= before, "gone")
