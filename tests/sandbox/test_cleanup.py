"""Cleanup: no process and no data of a run is left after it."""

from __future__ import annotations

import asyncio
import time

import pytest

from adjudge.domain.limits import MIB
from adjudge.sandbox import LimitKind, Sandbox, SandboxVerdict
from tests.sandbox.host_state import HostState, descendants
from tests.sandbox.sandbox_case import SandboxCase, breaches, limits, ms

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unchanged_host")]

MANY = limits(processes=1_100, memory_bytes=512 * MIB, cpu_ms=ms(10_000), wall_ms=ms(60_000))


async def test_process_tree_is_killed_when_program_exits(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run("tree", "1000", within=MANY)
    assert (report.verdict, report.stdout) == (SandboxVerdict.OK, b"1000\n")


@pytest.mark.parametrize("how", ["close", "hold"])
async def test_daemon_is_killed_without_waiting(sandbox_case: SandboxCase, how: str) -> None:
    within = limits(wall_ms=ms(60_000))
    report = await asyncio.wait_for(sandbox_case.run("daemonise", how, within=within), ms(50_000) / 1000)
    assert (report.verdict, report.stdout) == (SandboxVerdict.OK, b"left behind\n")


async def test_stopped_processes_are_killed(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run("stopped", within=limits(wall_ms=ms(300)))
    assert (report.verdict, report.limit) == (SandboxVerdict.TLE, LimitKind.WALL)


async def test_next_run_in_slot_finds_no_traces(
    program_folder: object, sandbox_case: SandboxCase, host: HostState
) -> None:
    async with Sandbox(
        unsafe=True, slots=1, use_agent=sandbox_case.mode == "agent", state_dir=host.state / "traces"
    ) as sandbox:
        alone = SandboxCase(sandbox, sandbox_case.programs, sandbox_case.mode)
        for _ in range(2):
            left = await alone.run("leave_traces")
            assert left.verdict is SandboxVerdict.OK
            assert left.stdout.count(b"left ") >= 3
            assert left.stdout.count(b"dated ") >= 2
            found = await alone.run("find_traces")
            assert breaches(found) == []
            assert found.verdict is SandboxVerdict.OK


async def test_directory_timestamps_are_set_per_run(sandbox_case: SandboxCase, host: HostState) -> None:
    """Directories are prepared in advance; their timestamps must not show when the previous run ended."""
    code = "import os; print(*(int(os.stat(name).st_mtime_ns) for name in ('/work', '/tmp')))"
    async with Sandbox(
        unsafe=True, slots=1, use_agent=sandbox_case.mode == "agent", state_dir=host.state / "dates"
    ) as sandbox:
        for _ in range(2):
            requested_ns = time.time_ns()
            report = await sandbox.run(sandbox_case.script(code))
            # File timestamps have the resolution of a kernel tick.
            assert all(int(timestamp) > requested_ns - 20_000_000 for timestamp in report.stdout.split()), report
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("program", ["sleep_forever", "fork_bomb", "stopped", "flood"])
async def test_canceled_run_is_killed_and_frees_slot(sandbox_case: SandboxCase, program: str) -> None:
    runs = [
        asyncio.create_task(
            sandbox_case.run(program, within=limits(cpu_ms=ms(60_000), wall_ms=ms(60_000), output_bytes=512 * MIB))
        )
        for _ in range(2)
    ]
    await _wait_until_started(program)
    for run in runs:
        run.cancel()
    for result in await asyncio.gather(*runs, return_exceptions=True):
        assert isinstance(result, asyncio.CancelledError)
    assert not [process for process in descendants().values() if process.name == program]
    reports = await asyncio.gather(*(sandbox_case.run("static_noop") for _ in range(2)))
    assert [report.verdict for report in reports] == [SandboxVerdict.OK] * 2


async def _wait_until_started(program: str) -> None:
    async with asyncio.timeout(ms(50_000) / 1000):
        while not [process for process in descendants().values() if process.name == program]:
            await asyncio.sleep(0.005)


async def test_slot_is_usable_after_cancel_at_any_time(sandbox_case: SandboxCase) -> None:
    for step_us in range(0, 4_000, 250):
        run = asyncio.create_task(sandbox_case.run("burn", "1"))
        await asyncio.sleep(step_us / 1_000_000)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
    assert (await sandbox_case.run("static_noop")).verdict is SandboxVerdict.OK


async def test_parallel_runs_do_not_affect_each_other(sandbox_case: SandboxCase) -> None:
    """Programs with different verdicts run in parallel; each gets its own report."""
    mix = [
        ("static_noop", (), SandboxVerdict.OK),
        ("crash", ("exit", "3"), SandboxVerdict.RE),
        ("flood", ("1",), SandboxVerdict.OLE),
    ]
    mix.append(("daemonise", ("hold",), SandboxVerdict.OK))
    jobs = [mix[number % len(mix)] for number in range(40)]
    reports = await asyncio.gather(*(sandbox_case.run(name, *arguments) for name, arguments, _ in jobs))
    assert [report.verdict for report in reports] == [verdict for *_, verdict in jobs]
