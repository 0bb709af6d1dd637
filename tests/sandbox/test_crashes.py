"""The launcher or the worker is killed during a run: nothing is left, and the next start works."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from adjudge.sandbox import MemorySource, NullSandboxMetrics, Sandbox, SandboxRunSpec, SandboxVerdict
from tests.sandbox.host_state import LAUNCHERS, PREPARED_CHILD, HostState, cgroups_of, descendants
from tests.sandbox.sandbox_case import SandboxCase, limits, ms

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unchanged_host")]

LONG = limits(cpu_ms=ms(60_000), wall_ms=ms(60_000), processes=4)


@pytest.fixture(autouse=True)
def short_agent_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the delay before an agent is started again."""
    monkeypatch.setattr("adjudge.sandbox.pool.AGENT_RETRY_SEC", 0.2)


class CountedDegradation(NullSandboxMetrics):
    """Records why runs fell back to the command."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def degraded(self, reason: str) -> None:
        self.reasons.append(reason)


def _launchers(below: int | None = None) -> dict[int, str]:
    return {process.pid: process.name for process in descendants(below).values() if process.name in LAUNCHERS}


def _new_agent(before: set[int]) -> int:
    """The agent that was started since ``before``; a child that it has just forked has its name for a short time."""
    agents = {process.pid: process for process in descendants().values() if process.name == "adjudge-agent"}
    (agent,) = (pid for pid, process in agents.items() if pid not in before and process.parent not in agents)
    return agent


def _is_running(program: str, below: int | None = None) -> bool:
    return any(process.name == program for process in descendants(below).values())


async def _wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(ms(120_000) / 1000):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("killed", ["adjudge-agent", "adjudge-box", "adjudge-"])
@pytest.mark.parametrize("program", ["sleep_forever", "fork_bomb"])
async def test_killed_launcher_leaves_no_processes_and_recovers(
    program_folder: Path, host: HostState, program: str, killed: str
) -> None:
    """Kills the agent, its keeper or both. The run is repeated by the command, then a new agent takes over."""
    before = set(descendants())
    state, metrics = host.state / "killed", CountedDegradation()
    async with Sandbox(unsafe=True, slots=1, state_dir=state, metrics=metrics) as sandbox:
        sandbox_case = SandboxCase(sandbox, program_folder, "agent")
        run = asyncio.create_task(sandbox.run(sandbox_case.spec(program, within=LONG)))
        await _wait_until(lambda: _is_running(program))
        for pid, name in _launchers().items():
            if pid not in before and name.startswith(killed):
                os.kill(pid, signal.SIGKILL)
        await _wait_until(lambda: metrics.reasons == ["agent_died"] and _is_running(program))
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        await _wait_until(lambda: not _is_running(program))
        await _wait_until_recovered(sandbox_case)
    await _wait_until(lambda: set(descendants()) <= before)
    assert cgroups_of(state) == []


async def _wait_until_recovered(sandbox_case: SandboxCase) -> None:
    async with asyncio.timeout(ms(120_000) / 1000):
        while (report := await sandbox_case.sandbox.run(sandbox_case.spec("static_noop"))).degraded:
            assert report.verdict is SandboxVerdict.OK
            await asyncio.sleep(0.05)
    assert report.verdict is SandboxVerdict.OK


async def test_killed_idle_agent_is_replaced(program_folder: Path, host: HostState) -> None:
    before = set(descendants())
    async with Sandbox(unsafe=True, slots=1, state_dir=host.state / "idle") as sandbox:
        sandbox_case = SandboxCase(sandbox, program_folder, "agent")
        for _ in range(2):
            for pid, name in _launchers().items():
                if pid not in before and name == "adjudge-agent":
                    os.kill(pid, signal.SIGKILL)
            was_degraded = sandbox.is_degraded
            assert (await sandbox.run(sandbox_case.spec("static_noop"))).verdict is SandboxVerdict.OK
            assert (was_degraded, sandbox.is_degraded) == (False, True)
            await _wait_until_recovered(sandbox_case)
        assert (sandbox.is_degraded,) == (False,)


async def test_killed_prepared_child_is_replaced(program_folder: Path, host: HostState) -> None:
    """The agent prepares the process of the next program. If it is killed, another one is created."""
    before = set(descendants())
    async with Sandbox(unsafe=True, slots=1, state_dir=host.state / "waiting") as sandbox:
        sandbox_case = SandboxCase(sandbox, program_folder, "agent")
        for _ in range(3):
            await _wait_until(lambda: bool(_prepared_children(before)))
            for pid in _prepared_children(before):
                os.kill(pid, signal.SIGKILL)
            await _wait_until(lambda: not _prepared_children(before))
            assert (await sandbox_case.run("static_noop")).verdict is SandboxVerdict.OK


def _prepared_children(before: set[int]) -> list[int]:
    return [
        process.pid
        for process in descendants().values()
        if process.name == PREPARED_CHILD and process.pid not in before
    ]


async def test_agent_reports_failed_step_without_leaking_descriptors(program_folder: Path, host: HostState) -> None:
    """Two directories, then two pipes, are prepared. As the limit decreases, each of them fails in turn."""
    before = set(descendants())
    async with Sandbox(unsafe=True, slots=1, state_dir=host.state / "short") as sandbox:
        agent = _new_agent(before)
        missed = await _failed_steps(sandbox, agent, 48)
        assert await _failed_steps(sandbox, agent, 48) == missed, "descriptors leaked"
    steps = [step for step in dict.fromkeys(missed.values()) if not step.startswith("cgroup_")]  # v2 has more of these
    assert steps == ["stderr", "stdout", "tmp_directory", "work_directory"]


async def _failed_steps(sandbox: Sandbox, agent: int, most: int) -> dict[int, str]:
    """Map from the descriptor limit of the agent to the step that failed."""
    usual, missed = resource.prlimit(agent, resource.RLIMIT_NOFILE), dict[int, str]()
    for count in range(most, 0, -1):
        resource.prlimit(agent, resource.RLIMIT_NOFILE, (count, usual[1]))
        await sandbox.run(SandboxRunSpec(argv=("/bin/true",)))  # may have been prepared before the limit
        fault = (await sandbox.run(SandboxRunSpec(argv=("/bin/true",)))).sandbox_error
        if fault is not None:
            missed[count] = fault.step
        if "work_directory" in missed.values():
            break
    resource.prlimit(agent, resource.RLIMIT_NOFILE, usual)
    assert (await sandbox.run(SandboxRunSpec(argv=("/bin/true",)))).verdict is SandboxVerdict.OK
    return missed


async def test_failed_run_does_not_leave_its_size_limits(program_folder: Path, host: HostState) -> None:
    """Without descriptors, directories are mounted for the failed run but not opened. The next run must resize them."""
    before = set(descendants())
    async with Sandbox(unsafe=True, slots=1, state_dir=host.state / "caps") as sandbox:
        agent, sandbox_case = _new_agent(before), SandboxCase(sandbox, program_folder, "agent")
        small, large = limits(work_bytes=1 << 20), limits(work_bytes=8 << 20)
        usual = resource.prlimit(agent, resource.RLIMIT_NOFILE)
        assert (await sandbox_case.run("fill_disk", "/tmp", within=small)).stdout.startswith(b"1048576 ")
        resource.prlimit(agent, resource.RLIMIT_NOFILE, (3, usual[1]))
        for _ in range(2):  # the first may have been prepared before the limit
            await sandbox.run(SandboxRunSpec(argv=("/bin/true",), limits=small))
        fault = (await sandbox.run(SandboxRunSpec(argv=("/bin/true",), limits=large))).sandbox_error
        assert fault is not None
        assert fault.step == "work_directory"
        await _wait_until(lambda: _has_prepared_next_run(agent, "size=8192k"))
        resource.prlimit(agent, resource.RLIMIT_NOFILE, usual)
        assert (await sandbox_case.run("fill_disk", "/tmp", within=small)).stdout.startswith(b"1048576 ")


def _has_prepared_next_run(agent: int, size: str) -> bool:
    """Whether the agent has mounted both directories for the next run and sleeps."""
    mounts, state = Path(f"/proc/{agent}/mountinfo").read_text(), Path(f"/proc/{agent}/stat").read_text()
    return mounts.count(size) == 2 and state.rpartition(") ")[2].startswith("S")


async def test_close_is_idempotent_and_safe_during_run(sandbox_case: SandboxCase, host: HostState) -> None:
    """Kill and cleanup are idempotent (INV-10)."""
    sandbox = Sandbox(unsafe=True, slots=1, use_agent=sandbox_case.mode == "agent", state_dir=host.state / "twice")
    await sandbox.__aenter__()
    run = asyncio.create_task(sandbox.run(sandbox_case.spec("sleep_forever", within=LONG)))
    await _wait_until(lambda: _is_running("sleep_forever"))
    run.cancel()
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    for _ in range(3):
        await sandbox.close()
    assert not _is_running("sleep_forever")
    assert cgroups_of(host.state / "twice") == []


WORKER = """
import asyncio, sys
from pathlib import Path
from adjudge.sandbox import InputFile, Limits, SandboxRunSpec, Sandbox
programs, state, mode, program = sys.argv[1:]
async def main():
    async with Sandbox(unsafe=True, slots=1, use_agent=mode == "agent", state_dir=Path(state)) as sandbox:
        await sandbox.run(SandboxRunSpec(argv=("/work/x",), limits=Limits(cpu_ms=60_000, wall_ms=60_000, processes=32),
            files=(InputFile("x", Path(programs) / program, executable=True),)))
asyncio.run(main())
"""


async def _start_worker(sandbox_case: SandboxCase, state: Path, program: str) -> subprocess.Popen[bytes]:
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(sandbox_case.programs), str(state), sandbox_case.mode, program]
    )
    await _wait_until(lambda: _is_running("x", worker.pid))
    return worker


@pytest.mark.parametrize("program", ["sleep_forever", "fork_bomb", "stopped"])
async def test_killed_worker_leaves_no_processes(sandbox_case: SandboxCase, host: HostState, program: str) -> None:
    before = set(descendants())
    state = host.state / "worker"
    worker = await _start_worker(sandbox_case, state, program)
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    await _wait_until(lambda: set(descendants()) <= before)
    assert cgroups_of(state) == []


async def test_next_start_removes_leftovers_after_simultaneous_kill(sandbox_case: SandboxCase, host: HostState) -> None:
    """Worker, keeper and agent are killed together, as by a power cut: only the next start can clean up."""
    before = set(descendants())
    state = host.state / "power-cut"
    worker = await _start_worker(sandbox_case, state, "sleep_forever")
    had = cgroups_of(state)
    for pid in (worker.pid, *_launchers(worker.pid)):
        os.kill(pid, signal.SIGSTOP)
    for pid in (*_launchers(worker.pid), worker.pid):
        os.kill(pid, signal.SIGKILL)
    worker.wait()
    await _wait_until(lambda: set(descendants()) <= before)
    assert cgroups_of(state) == had
    async with Sandbox(unsafe=True, slots=1, state_dir=state) as sandbox:
        report = await sandbox.run(sandbox_case.spec("static_noop"))
        assert report.verdict is SandboxVerdict.OK
        assert bool(had) == (report.memory_source is not MemorySource.RLIMIT)
    assert cgroups_of(state) == []
