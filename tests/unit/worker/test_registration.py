"""What a worker says of itself while it finds out what it can do, and after."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from adjudge.registry import WorkerHealth, WorkerInfo
from adjudge.registry.database import DatabaseRegistry
from adjudge.worker.registration import keep_registered
from tests.support.store_harness import StoreHarness


class RecordingRegistry(DatabaseRegistry):
    """Tells of each time that a worker was kept alive."""

    def __init__(self, store: StoreHarness) -> None:
        super().__init__(store.database)
        self.kept: asyncio.Queue[WorkerHealth] = asyncio.Queue()

    async def keep_alive(self, name: str, *, health: WorkerHealth) -> bool:
        alive = await super().keep_alive(name, health=health)
        await self.kept.put(health)
        return alive


async def test_worker_is_starting_until_its_languages_are_known(sqlite_store: StoreHarness) -> None:
    registry, has_looked = RecordingRegistry(sqlite_store), asyncio.Event()
    info = WorkerInfo("w-1", "host", 1, "1", 2)

    async def look() -> WorkerInfo:
        await has_looked.wait()
        return replace(info, languages={"go": "1"}, health=WorkerHealth.READY)

    async def listed() -> list[tuple[WorkerHealth, dict[str, str]]]:
        await registry.kept.get()
        return [(worker.info.health, dict(worker.info.languages)) for worker in await registry.list()]

    async with keep_registered(registry, info, look, lambda: WorkerHealth.READY, interval_sec=60):
        assert await listed() == [(WorkerHealth.STARTING, {})]
        has_looked.set()
        assert await listed() == [(WorkerHealth.READY, {"go": "1"})]
    assert await registry.list() == []
    await registry.close()
