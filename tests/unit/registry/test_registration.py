"""Registrations of processes: workers before and after their languages are known, and the other roles."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from adjudge.registry import ProcessHealth, ProcessInfo, ProcessRole
from adjudge.registry.database import DatabaseRegistry
from adjudge.registry.registration import keep_registered, keep_role_registered
from tests.support.store_harness import StoreHarness


class RecordingRegistry(DatabaseRegistry):
    """Tells of each time that a worker was kept alive."""

    def __init__(self, store: StoreHarness) -> None:
        super().__init__(store.database)
        self.kept: asyncio.Queue[ProcessHealth] = asyncio.Queue()

    async def keep_alive(self, name: str, *, health: ProcessHealth) -> bool:
        alive = await super().keep_alive(name, health=health)
        await self.kept.put(health)
        return alive


async def test_worker_is_starting_until_its_languages_are_known(sqlite_store: StoreHarness) -> None:
    registry, has_looked = RecordingRegistry(sqlite_store), asyncio.Event()
    info = ProcessInfo("w-1", "host", 1, "1", 2)

    async def look() -> ProcessInfo:
        await has_looked.wait()
        return replace(info, languages={"go": "1"}, health=ProcessHealth.READY)

    async def listed() -> list[tuple[ProcessHealth, dict[str, str]]]:
        await registry.kept.get()
        return [(worker.info.health, dict(worker.info.languages)) for worker in await registry.list()]

    async with keep_registered(registry, info, look, lambda: ProcessHealth.READY, interval_sec=60):
        assert await listed() == [(ProcessHealth.STARTING, {})]
        has_looked.set()
        assert await listed() == [(ProcessHealth.READY, {"go": "1"})]
    assert await registry.list() == []
    await registry.close()


async def test_scheduler_is_registered_while_it_runs(sqlite_store: StoreHarness) -> None:
    registry = RecordingRegistry(sqlite_store)
    info = ProcessInfo("scheduler-host-1", "host", 1, "1", role=ProcessRole.SCHEDULER)
    async with keep_role_registered(registry, info, interval_sec=60):
        await registry.kept.get()
        (listed,) = await registry.list()
        assert listed.info == replace(info, health=ProcessHealth.READY)
    assert await registry.list() == []
    await registry.close()


async def test_registration_is_renewed_once_per_interval(sqlite_store: StoreHarness) -> None:
    registry = RecordingRegistry(sqlite_store)
    info = ProcessInfo("scheduler-host-1", "host", 1, "1", role=ProcessRole.SCHEDULER)
    async with keep_role_registered(registry, info, interval_sec=3_600):
        for _ in range(2):  # once before and once after the capabilities are known
            await registry.kept.get()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(registry.kept.get(), 0.5)
    await registry.close()
