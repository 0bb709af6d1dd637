"""Accuracy of reported CPU time and memory. Both are kernel counters, so a busy machine does not change them."""

from __future__ import annotations

import pytest

from adjudge.domain.limits import MIB
from adjudge.sandbox import MemorySource, SandboxVerdict
from tests.sandbox.sandbox_case import SCALE, SandboxCase, limits, ms

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unchanged_host")]

LARGE = limits(memory_bytes=256 * MIB, cpu_ms=ms(3_000), wall_ms=ms(60_000))


async def test_memory_of_64_mib_is_measured(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run("touch", "64", within=LARGE)
    assert report.verdict is SandboxVerdict.OK
    assert abs(report.mem_kb - 65_536) <= 65_536 * 0.02, report


async def test_memory_of_minimal_program_is_small(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run("static_noop", within=LARGE)
    assert report.mem_kb <= 4_096


async def test_usage_does_not_leak_into_next_run(sandbox_case: SandboxCase) -> None:
    await sandbox_case.run("touch", "128", within=LARGE)
    await sandbox_case.run("burn", "300", within=LARGE)
    report = await sandbox_case.run("static_noop", within=LARGE)
    assert report.mem_kb <= 4_096
    assert report.time_ms <= 100


async def test_cpu_time_of_200_ms_is_measured(sandbox_case: SandboxCase) -> None:
    """Within 5 % or 10 ms. Start-up takes longer on an emulated machine, so the tolerance is scaled."""
    reports = [await sandbox_case.run("burn", "200", within=LARGE) for _ in range(3)]
    assert [report.verdict for report in reports] == [SandboxVerdict.OK] * 3
    # The median: on a virtual machine, stolen time may be charged to a run.
    median_ms = sorted(report.time_ms for report in reports)[1]
    assert abs(median_ms - 200) <= max(10 * SCALE, 0.05 * 200), reports


@pytest.mark.slow
async def test_memory_of_process_tree_is_measured(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run(
        "eat_memory", "children", "128", within=limits(memory_bytes=256 * MIB, cpu_ms=ms(3_000), wall_ms=ms(3_000))
    )
    assert report.verdict is SandboxVerdict.TLE
    least = 0.9 if report.memory_source is MemorySource.RLIMIT else 0.98
    assert 128 * 1024 * least <= report.mem_kb <= 140 * 1024
