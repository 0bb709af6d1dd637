"""Runs the lease keeper on its own thread and connection: work that blocks the event loop loses no lease."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from adjudge.store import Database
from adjudge.store.jobs.commands import JobCommands
from adjudge.worker.leases import LeaseKeeper

OpenDatabase = Callable[[], AbstractAsyncContextManager[Database]]


@asynccontextmanager
async def lease_keeper_thread(
    open_database: OpenDatabase, jobs: JobCommands, *, lease_ms: int, heartbeat_ms: int
) -> AsyncIterator[LeaseKeeper]:
    """A lease keeper that renews on its own thread while the block runs."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[LeaseKeeper] = loop.create_future()
    ended = threading.Event()

    async def beat() -> None:
        async with open_database() as database:
            keeper = LeaseKeeper(database, jobs, lease_ms=lease_ms, heartbeat_ms=heartbeat_ms, clock=time.monotonic)
            loop.call_soon_threadsafe(ready.set_result, keeper)
            beating = asyncio.create_task(keeper.run())
            await asyncio.to_thread(ended.wait)
            beating.cancel()

    def main() -> None:
        try:
            asyncio.run(beat())
        except BaseException as error:  # noqa: BLE001 — the caller that waits for the keeper must get the error
            if not ready.done():
                loop.call_soon_threadsafe(ready.set_exception, error)

    thread = threading.Thread(target=main, name="adjudge-leases", daemon=True)
    thread.start()
    try:
        yield await ready
    finally:
        ended.set()
        await asyncio.to_thread(thread.join)
