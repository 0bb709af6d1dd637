"""Periodic tasks: background work that runs at an interval and survives failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import LONGEST_SEC, Outage

_log = get_logger(__name__)


async def run_periodically(tick: Callable[[], Awaitable[int]], *, interval_ms: int) -> None:
    """Run forever; an unavailable database or stream is retried with growing delays."""
    interval_sec = interval_ms / 1_000
    outage = Outage(_log, "periodic_task_retrying", first_sec=interval_sec, longest_sec=max(LONGEST_SEC, interval_sec))
    name = getattr(tick, "__qualname__", "tick")
    while True:
        pause_sec = interval_sec
        try:
            await tick()
            outage.over()
        except Unavailable as error:
            pause_sec = outage.failed(error, round=name)
        except Exception:  # noqa: BLE001 — one failed pass must not end the scheduler's other tasks
            _log.exception("periodic_task_failed", round=name)
        await asyncio.sleep(pause_sec)


@asynccontextmanager
async def periodic_task(tick: Callable[[], Awaitable[int]], *, interval_ms: int, name: str) -> AsyncIterator[None]:
    """Run in the background while the block runs."""
    task = asyncio.create_task(run_periodically(tick, interval_ms=interval_ms), name=name)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
