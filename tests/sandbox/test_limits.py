"""Programs that want more than they may have: of time, memory, processes, disk and output."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import KIB, MIB
from adjudge.sandbox import STDERR_LIMIT_BYTES, STDOUT_LIMIT_BYTES, LimitKind, MemorySource, RunVerdict
from tests.sandbox.sandbox_case import ROOMY, Box, limits, ms, refused_if_known, within_memory

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unharmed")]

OK, TLE, MLE, OLE, RE = RunVerdict.OK, RunVerdict.TLE, RunVerdict.MLE, RunVerdict.OLE, RunVerdict.RE


@pytest.mark.parametrize(
    ("program", "arguments", "cpu_ms"),
    [("fork_bomb", (), 600), pytest.param("bombs.py", ("fork",), 1_500, marks=pytest.mark.slow)],
)
async def test_a_fork_bomb_runs_into_its_limits_and_dies(
    box: Box, program: str, arguments: tuple[str, ...], cpu_ms: int
) -> None:
    """An interpreter needs time to start before it can fork, on an emulated machine most of a second."""
    report = await box.run(program, *arguments, within=limits(cpu_ms=ms(cpu_ms), memory_bytes=256 * MIB))
    assert report.verdict is TLE
    assert refused_if_known(report)


async def test_a_thread_bomb_gets_no_more_threads_than_processes_allowed(box: Box) -> None:
    report = await box.run("thread_bomb", within=limits(processes=24))
    assert report.verdict is OK
    assert 8 <= int(report.stdout) <= 24
    assert refused_if_known(report)


async def test_a_program_may_use_every_cpu_that_we_may(box: Box) -> None:
    """On its way to exec it is kept where the agent is; the program itself is not."""
    for _ in range(2):
        report = await box.sandbox.run(box.script("import os; print(*sorted(os.sched_getaffinity(0)))"))
        assert report.stdout.split() == [str(cpu).encode() for cpu in sorted(os.sched_getaffinity(0))], report


async def test_a_thread_bomb_of_python_ends_by_the_clock(box: Box) -> None:
    report = await box.run("bombs.py", "threads", within=limits(wall_ms=ms(500), cpu_ms=ms(5_000)))
    assert (report.verdict, report.limit) == (TLE, LimitKind.WALL)


@pytest.mark.parametrize("way", ["malloc", "mmap", "shared", "children"])
async def test_memory_beyond_the_limit_is_mle(box: Box, way: str) -> None:
    report = await box.run("eat_memory", way, "256", within=limits(cpu_ms=ms(2_000)))
    assert (report.verdict, report.limit) == (MLE, LimitKind.MEMORY)
    assert b"got it all" not in report.stdout
    assert within_memory(report, 64 * MIB)


async def test_a_child_killed_for_memory_ends_the_run_at_once(box: Box) -> None:
    """Its parent only waits: were it not noticed, the run would end by its wall limit."""
    run = box.run("eat_memory", "children", "256", within=limits(wall_ms=ms(60_000), cpu_ms=ms(20_000)))
    report = await asyncio.wait_for(run, ms(50_000) / 1000)
    assert (report.verdict, report.limit) == (MLE, LimitKind.MEMORY)


@pytest.mark.parametrize("way", ["sysv", "devshm", "tmpfs", "work", "pipes", "memfd", "memfds"])
async def test_memory_by_the_back_door_is_refused_or_mle(box: Box, way: str) -> None:
    report = await box.run("eat_memory", way, "256", within=limits(file_bytes=512 * MIB, cpu_ms=ms(2_000)))
    assert report.verdict in (MLE, RE)
    assert b"got it all" not in report.stdout
    assert within_memory(report, 64 * MIB)


@pytest.mark.parametrize("way", ["dropped", "sockets"])
async def test_memory_of_no_process_is_limited_by_a_cgroup(box: Box, way: str) -> None:
    """Without one it is not, and the guarantees say so: that is why judging is refused there."""
    within = limits(cpu_ms=ms(2_000), open_files=1_024, processes=64)
    report = await box.run("hidden_memory", way, "256", within=within)
    if report.memory_source is MemorySource.RLIMIT:
        return
    assert report.verdict is MLE or int(report.stdout) < 64
    assert within_memory(report, 64 * MIB)


async def test_a_python_program_that_eats_memory_is_mle(box: Box) -> None:
    report = await box.run("bombs.py", "memory", within=limits(cpu_ms=ms(2_000)))
    assert (report.verdict, report.limit) == (MLE, LimitKind.MEMORY)


async def test_files_on_the_page_cache_do_not_count_against_the_program(box: Box) -> None:
    report = await box.run("eat_memory", "page_cache", "0", within=limits(memory_bytes=24 * MIB, cpu_ms=ms(3_000)))
    assert report.verdict is OK
    assert b"read" in report.stdout


@pytest.mark.parametrize("folder", ["/work", "/tmp"])
async def test_disk_and_inodes_are_capped(box: Box, folder: str) -> None:
    report = await box.run("fill_disk", folder, within=limits(memory_bytes=256 * MIB, cpu_ms=ms(2_000)))
    assert report.verdict is OK, report
    size_bytes, names = map(int, report.stdout.split())
    assert 4 * MIB <= size_bytes <= 8 * MIB
    assert 128 <= names <= 256


async def test_a_single_file_is_capped(box: Box) -> None:
    report = await box.run("file_size", within=limits(file_bytes=1 * MIB))
    assert report.verdict is OK
    assert int(report.stdout) == 1 * MIB


@pytest.mark.parametrize(("streams"), ["1", "2", "12"])
async def test_a_flood_of_output_is_ole(box: Box, streams: str) -> None:
    report = await box.run("flood", streams)
    assert (report.verdict, report.limit) == (OLE, LimitKind.OUTPUT)
    assert report.output_bytes <= 256 * KIB
    assert len(report.stdout) + len(report.stderr) <= 256 * KIB
    assert bool(report.stdout) == ("1" in streams)
    assert bool(report.stderr) == ("2" in streams)


async def test_a_flood_from_python_is_ole(box: Box) -> None:
    report = await box.run("bombs.py", "output")
    assert (report.verdict, report.limit) == (OLE, LimitKind.OUTPUT)


async def test_output_cap_prevents_oom(box: Box) -> None:
    """OJ-spec §7: whatever is written, no more than the cap is ever held, and the next run is served."""
    report = await box.run("flood", "12", within=limits(output_bytes=4 * MIB, cpu_ms=ms(2_000)))
    assert report.verdict is OLE
    assert report.output_bytes <= 4 * MIB
    assert len(report.stdout) <= STDOUT_LIMIT_BYTES
    assert len(report.stderr) <= STDERR_LIMIT_BYTES
    assert report.stdout_truncated
    assert (await box.run("static_noop")).verdict is OK


WRITER = """
import os, sys
for stream in (1, 2):
    for _ in range(32):
        os.write(stream, b"x" * 65536)
os.write(1, b"end")
"""


async def test_output_beyond_what_is_kept_is_read_to_its_end_and_the_run_ends_well(box: Box) -> None:
    """Longer than the captured part, shorter than the cap: truncated, drained, and no fault of the program's."""
    written = 2 * 32 * 65536 + len(b"end")
    report = await box.sandbox.run(box.script(WRITER, within=replace(ROOMY, output_bytes=8 * MIB)))
    assert (report.verdict, report.exit_code) == (OK, 0)
    assert report.output_bytes == written
    assert (len(report.stdout), len(report.stderr)) == (STDOUT_LIMIT_BYTES, STDERR_LIMIT_BYTES)
    assert (report.stdout_truncated, report.stderr_truncated) == (True, True)


async def test_dual_timeouts_wall_and_cpu(box: Box) -> None:
    """OJ-spec §7: one who sleeps and one who burns are both stopped, each by its own limit."""
    sleeper = await box.run("sleep_forever", within=limits(wall_ms=ms(1_000)))  # time to say so on a busy machine, too
    assert (sleeper.verdict, sleeper.limit) == (TLE, LimitKind.WALL)
    assert sleeper.wall_ms >= ms(1_000)
    assert sleeper.time_ms < ms(100)
    assert sleeper.stdout == b"asleep\n"
    burner = await box.run("burn", within=limits(cpu_ms=ms(200)))
    assert (burner.verdict, burner.limit) == (TLE, LimitKind.CPU)
    assert burner.time_ms >= ms(200)


@pytest.mark.parametrize("how", ["threads", "children", "orphans"])
async def test_cpu_time_cannot_be_hidden_in_many(box: Box, how: str) -> None:
    report = await box.run("cpu_time_across_processes", how)
    assert report.verdict is TLE
    if report.memory_source is MemorySource.RLIMIT:
        return  # nobody counts children that are never waited for: the wall clock stops them at the latest
    assert report.limit is LimitKind.CPU
    assert report.time_ms >= ms(300)


async def test_a_python_program_without_end_is_stopped(box: Box) -> None:
    burner = await box.run("bombs.py", "spin")
    assert (burner.verdict, burner.limit) == (TLE, LimitKind.CPU)
    sleeper = await box.run("bombs.py", "sleep", within=limits(wall_ms=ms(500), cpu_ms=ms(2_000)))
    assert (sleeper.verdict, sleeper.limit) == (TLE, LimitKind.WALL)


async def test_a_python_program_without_a_bottom_dies_of_itself(box: Box) -> None:
    report = await box.run(
        "bombs.py", "recursion", within=limits(cpu_ms=ms(3_000), wall_ms=ms(15_000), memory_bytes=128 * MIB)
    )
    assert report.verdict in (RE, MLE)


async def test_stdin_is_capped(box: Box) -> None:
    within = limits(input_bytes=5)
    assert (await box.run("echo", stdin=b"12345", within=within)).stdout.endswith(b"12345")
    for source in (b"123456", box.programs / "scan_files.py"):
        with pytest.raises(InvalidInput, match="stdin"):
            await box.run("echo", stdin=source, within=within)


@pytest.mark.parametrize(
    ("how", "signal"), [(("abort",), 6), (("segv",), 11), (("fpe",), 8), (("kill",), 9), (("core",), 6)]
)
async def test_a_crash_is_re_with_its_signal(box: Box, how: tuple[str, ...], signal: int) -> None:
    report = await box.run("crash", *how)
    assert (report.verdict, report.limit, report.exit_signal) == (RE, None, signal)


@pytest.mark.parametrize("code", [1, 2, 42, 126, 127, 128, 137, 255])
async def test_an_exit_code_is_re_and_kept(box: Box, code: int) -> None:
    report = await box.run("crash", "exit", str(code))
    assert (report.verdict, report.exit_code, report.exit_signal) == (RE, code, 0)
