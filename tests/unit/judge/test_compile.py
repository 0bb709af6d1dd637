"""Compilation: concurrency limit, lifetime of compiled programs."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any, cast

from adjudge.judge.compile import Compiler
from adjudge.judge.compile_cache import CompileCache
from adjudge.judge.languages import Language, Languages
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.sandbox import Sandbox, SandboxRunReport, SandboxRunSpec, SandboxVerdict
from adjudge.sandbox.report import CollectedFile

LANGUAGE = Language(
    "made", "Made", "made", ("made",), "main.made", ("sh",), ("{dir}/main",), "", (), ("sh",), keep=("main",)
)


class FakeBox:
    """A sandbox whose compilations end when released; it counts those that are under way."""

    def __init__(self) -> None:
        self.running, self.most, self.go_on = 0, 0, asyncio.Event()

    async def run(self, spec: SandboxRunSpec) -> SandboxRunReport:
        self.running += 1
        self.most = max(self.most, self.running)
        await self.go_on.wait()
        self.running -= 1
        assert spec.collect_to is not None
        (spec.collect_to / "main").write_bytes(b"program")
        return SandboxRunReport(SandboxVerdict.OK, 1, 1, 1, 0, 0, collected=(CollectedFile("main", 1, 7, ""),))


def compiler(box: FakeBox, root: Path, **more: Any) -> Compiler:
    return Compiler(cast("Sandbox", box), Languages([LANGUAGE]), CompileCache(root), **more)


async def test_concurrent_compilations_are_limited(tmp_path: Path) -> None:
    box = FakeBox()
    made = compiler(box, tmp_path, compilations=2)
    sources = [ProgramSource((SourceFile("main.made", str(number).encode()),)) for number in range(6)]
    tasks = [asyncio.create_task(made.compile(LANGUAGE, source)) for source in sources]
    while box.running < 2:
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert box.running == 2
    box.go_on.set()
    assert all(compiled.executable for compiled in await asyncio.gather(*tasks))
    assert box.most == 2


async def test_artifact_is_kept_while_program_is_referenced(tmp_path: Path) -> None:
    box = FakeBox()
    box.go_on.set()
    made = Compiler(cast("Sandbox", box), Languages([LANGUAGE]), CompileCache(tmp_path, bound_bytes=0))
    compiled = await made.compile(LANGUAGE, ProgramSource((SourceFile("main.made", b"1"),)))
    assert compiled.executable is not None
    directory = compiled.executable.directory
    assert (directory / "main").is_file()
    kept = compiled.without_artifact()
    del compiled
    async with asyncio.timeout(30):
        while directory.exists():  # the thread that stored it releases it a little later
            gc.collect()
            await asyncio.sleep(0.01)
    assert kept.executable is not None
