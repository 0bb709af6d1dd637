"""Limits of time, memory, processes, disk and output."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import KIB, MIB
from adjudge.sandbox import STDERR_LIMIT_BYTES, STDOUT_LIMIT_BYTES, LimitKind, MemorySource, SandboxVerdict
from tests.sandbox.sandbox_case import LARGE, SandboxCase, is_process_limit_hit, limits, ms, within_memory

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unchanged_host")]

OK, TLE, MLE, OLE, RE = SandboxVerdict.OK, SandboxVerdict.TLE, SandboxVerdict.MLE, SandboxVerdict.OLE, SandboxVerdict.RE


@pytest.mark.parametrize(
    ("program", "arguments", "cpu_ms"),
    [("fork_bomb", (), 600), pytest.param("bombs.py", ("fork",), 1_500, marks=pytest.mark.slow)],
)
async def test_fork_bomb_is_stopped(
    sandbox_case: SandboxCase, program: str, arguments: tuple[str, ...], cpu_ms: int
) -> None:
    """An interpreter needs time to start before it can fork, on an emulated machine almost a second."""
    report = await sandbox_case.run(program, *arguments, within=limits(cpu_ms=ms(cpu_ms), memory_bytes=256 * MIB))
    assert report.verdict is TLE
    assert is_process_limit_hit(report)


async def test_thread_count_is_limited(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run("thread_bomb", within=limits(processes=24))
    assert report.verdict is OK
    assert 8 <= int(report.stdout) <= 24
    assert is_process_limit_hit(report)


async def test_program_may_use_all_cpus(sandbox_case: SandboxCase) -> None:
    """Before exec, the child is pinned to the CPU of the agent; the program must not be."""
    for _ in range(2):
        report = await sandbox_case.sandbox.run(
            sandbox_case.script("import os; print(*sorted(os.sched_getaffinity(0)))")
        )
        assert report.stdout.split() == [str(cpu).encode() for cpu in sorted(os.sched_getaffinity(0))], report


async def test_python_thread_bomb_ends_at_wall_limit(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run("bombs.py", "threads", within=limits(wall_ms=ms(500), cpu_ms=ms(5_000)))
    assert (report.verdict, report.limit) == (TLE, LimitKind.WALL)


@pytest.mark.parametrize("method", ["malloc", "mmap", "shared", "children"])
async def test_memory_over_limit_is_mle(sandbox_case: SandboxCase, method: str) -> None:
    report = await sandbox_case.run("eat_memory", method, "256", within=limits(cpu_ms=ms(2_000)))
    assert (report.verdict, report.limit) == (MLE, LimitKind.MEMORY)
    assert b"got it all" not in report.stdout
    assert within_memory(report, 64 * MIB)


async def test_oom_killed_child_ends_run(sandbox_case: SandboxCase) -> None:
    """Its parent only waits. If the kill were not detected, the run would end at the wall limit."""
    run = sandbox_case.run("eat_memory", "children", "256", within=limits(wall_ms=ms(60_000), cpu_ms=ms(20_000)))
    report = await asyncio.wait_for(run, ms(50_000) / 1000)
    assert (report.verdict, report.limit) == (MLE, LimitKind.MEMORY)


@pytest.mark.parametrize("method", ["sysv", "devshm", "tmpfs", "work", "pipes", "memfd", "memfds"])
async def test_indirect_memory_use_is_limited(sandbox_case: SandboxCase, method: str) -> None:
    report = await sandbox_case.run("eat_memory", method, "256", within=limits(file_bytes=512 * MIB, cpu_ms=ms(2_000)))
    assert report.verdict in (MLE, RE)
    assert b"got it all" not in report.stdout
    assert within_memory(report, 64 * MIB)


@pytest.mark.parametrize("method", ["dropped", "sockets"])
async def test_memory_without_owning_process_is_limited_by_cgroup(sandbox_case: SandboxCase, method: str) -> None:
    """Without a cgroup it is not limited (see the sandbox guarantees), so judging is refused there."""
    within = limits(cpu_ms=ms(2_000), open_files=1_024, processes=64)
    report = await sandbox_case.run("hidden_memory", method, "256", within=within)
    if report.memory_source is MemorySource.RLIMIT:
        return
    assert report.verdict is MLE or int(report.stdout) < 64
    assert within_memory(report, 64 * MIB)


async def test_python_memory_over_limit_is_mle(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run("bombs.py", "memory", within=limits(cpu_ms=ms(2_000)))
    assert (report.verdict, report.limit) == (MLE, LimitKind.MEMORY)


async def test_page_cache_does_not_count_as_memory(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run(
        "eat_memory", "page_cache", "0", within=limits(memory_bytes=24 * MIB, cpu_ms=ms(3_000))
    )
    assert report.verdict is OK
    assert b"read" in report.stdout


@pytest.mark.parametrize("folder", ["/work", "/tmp"])
async def test_disk_space_and_inodes_are_limited(sandbox_case: SandboxCase, folder: str) -> None:
    report = await sandbox_case.run("fill_disk", folder, within=limits(memory_bytes=256 * MIB, cpu_ms=ms(2_000)))
    assert report.verdict is OK, report
    size_bytes, names = map(int, report.stdout.split())
    assert 4 * MIB <= size_bytes <= 8 * MIB
    assert 128 <= names <= 256


async def test_file_size_is_limited(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run("file_size", within=limits(file_bytes=1 * MIB))
    assert report.verdict is OK
    assert int(report.stdout) == 1 * MIB


@pytest.mark.parametrize(("streams"), ["1", "2", "12"])
async def test_output_over_limit_is_ole(sandbox_case: SandboxCase, streams: str) -> None:
    report = await sandbox_case.run("flood", streams)
    assert (report.verdict, report.limit) == (OLE, LimitKind.OUTPUT)
    assert report.output_bytes <= 256 * KIB
    assert len(report.stdout) + len(report.stderr) <= 256 * KIB
    assert bool(report.stdout) == ("1" in streams)
    assert bool(report.stderr) == ("2" in streams)


async def test_python_output_over_limit_is_ole(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run("bombs.py", "output")
    assert (report.verdict, report.limit) == (OLE, LimitKind.OUTPUT)


async def test_output_cap_prevents_oom(sandbox_case: SandboxCase) -> None:
    """OJ-spec §7: no more than the limit is kept in memory, and the next run works."""
    report = await sandbox_case.run("flood", "12", within=limits(output_bytes=4 * MIB, cpu_ms=ms(2_000)))
    assert report.verdict is OLE
    assert report.output_bytes <= 4 * MIB
    assert len(report.stdout) <= STDOUT_LIMIT_BYTES
    assert len(report.stderr) <= STDERR_LIMIT_BYTES
    assert report.stdout_truncated
    assert (await sandbox_case.run("static_noop")).verdict is OK


WRITER = """
import os, sys
for stream in (1, 2):
    for _ in range(32):
        os.write(stream, b"x" * 65536)
os.write(1, b"end")
"""


async def test_output_over_capture_size_is_truncated_and_drained(sandbox_case: SandboxCase) -> None:
    """Output larger than the capture but below the limit is truncated and drained; the verdict is OK."""
    written = 2 * 32 * 65536 + len(b"end")
    report = await sandbox_case.sandbox.run(sandbox_case.script(WRITER, within=replace(LARGE, output_bytes=8 * MIB)))
    assert (report.verdict, report.exit_code) == (OK, 0)
    assert report.output_bytes == written
    assert (len(report.stdout), len(report.stderr)) == (STDOUT_LIMIT_BYTES, STDERR_LIMIT_BYTES)
    assert (report.stdout_truncated, report.stderr_truncated) == (True, True)


async def test_dual_timeouts_wall_and_cpu(sandbox_case: SandboxCase) -> None:
    """OJ-spec §7: a sleeping and a busy program are stopped, each by its own limit."""
    sleeper = await sandbox_case.run(
        "sleep_forever", within=limits(wall_ms=ms(1_000))
    )  # enough to write its output on a busy machine
    assert (sleeper.verdict, sleeper.limit) == (TLE, LimitKind.WALL)
    assert sleeper.wall_ms >= ms(1_000)
    assert sleeper.time_ms < ms(100)
    assert sleeper.stdout == b"asleep\n"
    burner = await sandbox_case.run("burn", within=limits(cpu_ms=ms(200)))
    assert (burner.verdict, burner.limit) == (TLE, LimitKind.CPU)
    assert burner.time_ms >= ms(200)


@pytest.mark.parametrize("how", ["threads", "children", "orphans"])
async def test_cpu_time_of_threads_and_children_is_limited(sandbox_case: SandboxCase, how: str) -> None:
    report = await sandbox_case.run("cpu_time_across_processes", how)
    assert report.verdict is TLE
    if report.memory_source is MemorySource.RLIMIT:
        return  # unreaped children are not counted; the wall limit stops them
    assert report.limit is LimitKind.CPU
    assert report.time_ms >= ms(300)


async def test_endless_python_program_is_tle(sandbox_case: SandboxCase) -> None:
    burner = await sandbox_case.run("bombs.py", "spin")
    assert (burner.verdict, burner.limit) == (TLE, LimitKind.CPU)
    sleeper = await sandbox_case.run("bombs.py", "sleep", within=limits(wall_ms=ms(500), cpu_ms=ms(2_000)))
    assert (sleeper.verdict, sleeper.limit) == (TLE, LimitKind.WALL)


async def test_endless_python_recursion_is_re_or_mle(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run(
        "bombs.py", "recursion", within=limits(cpu_ms=ms(3_000), wall_ms=ms(15_000), memory_bytes=128 * MIB)
    )
    assert report.verdict in (RE, MLE)


async def test_stdin_size_is_limited(sandbox_case: SandboxCase) -> None:
    within = limits(input_bytes=5)
    assert (await sandbox_case.run("echo", stdin=b"12345", within=within)).stdout.endswith(b"12345")
    for source in (b"123456", sandbox_case.programs / "scan_files.py"):
        with pytest.raises(InvalidInput, match="stdin"):
            await sandbox_case.run("echo", stdin=source, within=within)


@pytest.mark.parametrize(
    ("how", "signal"), [(("abort",), 6), (("segv",), 11), (("fpe",), 8), (("kill",), 9), (("core",), 6)]
)
async def test_crash_is_re_with_signal(sandbox_case: SandboxCase, how: tuple[str, ...], signal: int) -> None:
    report = await sandbox_case.run("crash", *how)
    assert (report.verdict, report.limit, report.exit_signal) == (RE, None, signal)


@pytest.mark.parametrize("code", [1, 2, 42, 126, 127, 128, 137, 255])
async def test_nonzero_exit_code_is_re(sandbox_case: SandboxCase, code: int) -> None:
    report = await sandbox_case.run("crash", "exit", str(code))
    assert (report.verdict, report.exit_code, report.exit_signal) == (RE, code, 0)
