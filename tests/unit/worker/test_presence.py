"""What a worker says of itself while it finds out what it can do, and after."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from adjudge.registry import Health, WorkerInfo
from adjudge.registry.database import DatabaseRegistry
from adjudge.worker.presence import announced
from tests.support.stores import Store


class Watched(DatabaseRegistry):
    """Tells of each time that a worker was kept alive."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.database)
        self.kept: asyncio.Queue[Health] = asyncio.Queue()

    async def keep_alive(self, name: str, *, health: Health) -> bool:
        alive = await super().keep_alive(name, health=health)
        await self.kept.put(health)
        return alive


async def test_a_worker_is_starting_until_it_knows_its_languages(sqlite_store: Store) -> None:
    registry, has_looked = Watched(sqlite_store), asyncio.Event()
    info = WorkerInfo("w-1", "host", 1, "1", 2)

    async def look() -> WorkerInfo:
        await has_looked.wait()
        return replace(info, languages={"go": "1"}, health=Health.READY)

    async def listed() -> list[tuple[Health, dict[str, str]]]:
        await registry.kept.get()
        return [(worker.info.health, dict(worker.info.languages)) for worker in await registry.list()]

    async with announced(registry, info, look, lambda: Health.READY, every_sec=60):
        assert await listed() == [(Health.STARTING, {})]
        has_looked.set()
        assert await listed() == [(Health.READY, {"go": "1"})]
    assert await registry.list() == []
    await registry.close()
