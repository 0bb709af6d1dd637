"""Reserved slots, for programs that must run at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from adjudge.sandbox.report import SandboxRunReport
from adjudge.sandbox.spec import SandboxRunSpec

T = TypeVar("T")


class _Run(Protocol):
    def __call__(self, spec: SandboxRunSpec, handover: list[int]) -> Coroutine[Any, Any, SandboxRunReport]: ...


class ReservedSlot:
    """A slot that is reserved for one run."""

    def __init__(self, run: _Run, release: Callable[[], None]) -> None:
        self._run = run
        self._release = release
        self._is_used = False

    async def run(self, spec: SandboxRunSpec, handover: list[int] | None = None) -> SandboxRunReport:
        """Run one program; ``handover`` are descriptors to close once they are sent to the launcher."""
        if self._is_used:
            raise RuntimeError("this reserved slot is already used")
        self._is_used = True
        return await self._run(spec, handover or [])

    def release(self) -> None:
        """Release the slot if it was not used."""
        if not self._is_used:
            self._is_used = True
            self._release()


async def gather_or_cancel(*runs: Coroutine[Any, Any, T]) -> list[T]:
    """Wait for runs that depend on each other; if one fails or the wait is canceled, cancel all."""
    tasks = [asyncio.create_task(run) for run in runs]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
