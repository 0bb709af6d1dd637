"""Places for programs that must run at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from adjudge.sandbox.report import SandboxRunReport
from adjudge.sandbox.spec import SandboxRunSpec


class _Run(Protocol):
    def __call__(self, spec: SandboxRunSpec, handover: list[int]) -> Coroutine[Any, Any, SandboxRunReport]: ...


class ReservedSlot:
    """A place that is held for one run, among others that run at the same time."""

    def __init__(self, run: _Run, release: Callable[[], None]) -> None:
        self._run = run
        self._release = release
        self._is_used = False

    async def run(self, spec: SandboxRunSpec, handover: list[int] | None = None) -> SandboxRunReport:
        """Run one program here, once; ``handover`` are descriptors to close once the launcher has its copies."""
        if self._is_used:
            raise RuntimeError("this seat was used already")
        self._is_used = True
        return await self._run(spec, handover or [])

    def release(self) -> None:
        """Leave a seat that nobody used."""
        if not self._is_used:
            self._is_used = True
            self._release()


async def gather_or_cancel(*runs: Coroutine[object, object, SandboxRunReport]) -> list[SandboxRunReport]:
    """Wait for runs that need each other; none goes on when another, or our waiting, comes to grief."""
    tasks = [asyncio.create_task(run) for run in runs]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
