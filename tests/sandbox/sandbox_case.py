"""Runs one of the test programs with small limits."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from adjudge.domain.limits import KIB, MIB, Limits
from adjudge.sandbox import InputFile, MemorySource, Sandbox, SandboxRunReport, SandboxRunSpec, SandboxVerdict

SCALE: Final = float(os.environ.get("ADJUDGE_TEST_TIME_SCALE", "1"))
"""Factor on time limits, for emulated machines."""
PYTHON: Final = "/usr/bin/python3"

SMALL: Final = Limits(
    cpu_ms=round(300 * SCALE),
    wall_ms=round(30_000 * SCALE),
    memory_bytes=64 * MIB,
    processes=32,
    open_files=128,
    file_bytes=16 * MIB,
    output_bytes=256 * KIB,
    work_bytes=8 * MIB,
    work_inodes=256,
)


LARGE: Final = replace(SMALL, cpu_ms=round(2_000 * SCALE), memory_bytes=128 * MIB, output_bytes=1 * MIB)
"""For programs that should succeed, and for starting an interpreter."""


def ms(value: int) -> int:
    """A time limit scaled for this machine."""
    return round(value * SCALE)


def limits(**changes: int) -> Limits:
    """``SMALL`` with changes."""
    return replace(SMALL, **changes)


@dataclass(frozen=True, slots=True)
class SandboxCase:
    """A sandbox in one mode, and the test programs."""

    sandbox: Sandbox
    programs: Path
    mode: str

    def spec(self, program: str, *arguments: str, within: Limits = SMALL, **more: Any) -> SandboxRunSpec:
        """Spec of a test program, by name; Python programs end in ``.py``."""
        source = InputFile(program, self.programs / program, executable=True)
        argv = (PYTHON, "-I", f"/work/{program}") if program.endswith(".py") else (f"/work/{program}",)
        files = (source, *more.pop("files", ()))
        return SandboxRunSpec(argv=(*argv, *arguments), limits=within, files=files, **more)

    def script(self, code: str, *arguments: str, within: Limits = LARGE, **more: Any) -> SandboxRunSpec:
        """Spec of a Python script."""
        return SandboxRunSpec(argv=(PYTHON, "-I", "-c", code, *arguments), limits=within, **more)

    async def run(self, program: str, *arguments: str, within: Limits = SMALL, **more: Any) -> SandboxRunReport:
        """Run a test program; fails on a system error."""
        report = await self.sandbox.run(self.spec(program, *arguments, within=within, **more))
        assert report.verdict is not SandboxVerdict.SE, report
        assert report.sandbox_error is None
        assert report.degraded is False
        return report


def is_process_limit_hit(report: SandboxRunReport) -> bool:
    """Whether the process limit was hit; always true without a cgroup, which is needed to count it."""
    return report.processes_refused or report.memory_source is MemorySource.RLIMIT


def within_memory(report: SandboxRunReport, limit_bytes: int) -> bool:
    """Whether the peak was within the limit: 5 % tolerance with a cgroup, else twice the limit (the rlimit)."""
    margin = 2.1 if report.memory_source is MemorySource.RLIMIT else 1.05
    return report.mem_kb * KIB <= limit_bytes * margin


def breaches(report: SandboxRunReport) -> list[str]:
    """Attempts of the program that were not blocked."""
    return [line for line in report.stdout.decode(errors="replace").splitlines() if line.startswith("breach")]


def count_blocked(report: SandboxRunReport) -> int:
    """Number of blocked attempts, which proves that the program made them."""
    return sum(line.startswith("blocked") for line in report.stdout.decode(errors="replace").splitlines())
