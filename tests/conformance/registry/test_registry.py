"""Conformance of worker registries, run on every driver."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.registry import ProcessHealth, ProcessInfo, ProcessRole, Registry
from tests.conformance.registry.conftest import LEASE_SEC, RegistryDriverFixture

ANNA = ProcessInfo(
    name="anna-1",
    host="anna.example",
    pid=4711,
    version="0.1.0",
    slots=4,
    languages={"cpp": "12.2.0", "python": "3.11.2"},
    isolation="namespaces, cgroup v2",
    health=ProcessHealth.READY,
)
BERT = replace(ANNA, name="bert-1", languages={}, isolation="", health=ProcessHealth.STARTING)


async def names(registry: Registry) -> list[str]:
    return [worker.info.name for worker in await registry.list()]


async def test_registered_worker_is_listed(side: RegistryDriverFixture) -> None:
    await side.open().register(ANNA)
    (worker,) = await side.open().list()
    assert worker.info == ANNA
    assert 0 <= worker.lease_left_sec <= LEASE_SEC
    assert 0 <= worker.seen_ago_sec <= LEASE_SEC


@pytest.mark.parametrize("role", ProcessRole)
async def test_role_is_listed(side: RegistryDriverFixture, role: ProcessRole) -> None:
    await side.open().register(replace(ANNA, role=role))
    assert [process.info.role for process in await side.open().list()] == [role]


async def test_last_renewal_is_listed(side: RegistryDriverFixture) -> None:
    registry = side.open()
    await registry.register(ANNA)
    async with asyncio.timeout(60):
        while (await registry.list())[0].seen_ago_sec < 1:
            await side.pass_time()
        while (await registry.list())[0].seen_ago_sec >= 1:
            assert await registry.keep_alive("anna-1", health=ProcessHealth.READY)


async def test_workers_are_listed_by_name(side: RegistryDriverFixture) -> None:
    registry = side.open()
    assert await names(registry) == []
    await registry.register(BERT)
    await registry.register(ANNA)
    assert await names(registry) == ["anna-1", "bert-1"]


async def test_registering_again_replaces_entry(side: RegistryDriverFixture) -> None:
    await side.open().register(ANNA)
    again = replace(ANNA, pid=4712, slots=8, languages={"rust": "1.63"})
    registry = side.open()
    await registry.register(again)
    assert [worker.info for worker in await registry.list()] == [again]
    assert await registry.keep_alive("anna-1", health=ProcessHealth.READY)


async def test_worker_disappears_after_lease(side: RegistryDriverFixture) -> None:
    registry = side.open(lease_sec=1)
    await registry.register(ANNA)
    async with asyncio.timeout(60):
        while await names(registry):
            await side.pass_time()


async def test_keep_alive_renews_lease(side: RegistryDriverFixture) -> None:
    registry = side.open()
    await registry.register(ANNA)
    async with asyncio.timeout(60):
        while (before := await _left_sec(registry)) > LEASE_SEC - 2:
            await side.pass_time()
        while await _left_sec(registry) <= before:  # at once, unless the machine stands still meanwhile
            assert await registry.keep_alive("anna-1", health=ProcessHealth.READY)


async def _left_sec(registry: Registry) -> float:
    (worker,) = await registry.list()
    return worker.lease_left_sec


async def test_keep_alive_updates_health(side: RegistryDriverFixture) -> None:
    registry = side.open()
    await registry.register(ANNA)
    assert await registry.keep_alive("anna-1", health=ProcessHealth.DRAINING)
    assert [worker.info for worker in await side.open().list()] == [replace(ANNA, health=ProcessHealth.DRAINING)]


async def test_expired_lease_cannot_be_renewed(side: RegistryDriverFixture) -> None:
    registry = side.open()
    await registry.register(ANNA)
    await side.lapse("anna-1")
    assert not await registry.keep_alive("anna-1", health=ProcessHealth.READY)
    assert await names(registry) == []
    await registry.register(ANNA)
    assert await registry.keep_alive("anna-1", health=ProcessHealth.READY)
    assert await names(registry) == ["anna-1"]


async def test_unregistered_worker_cannot_keep_alive(side: RegistryDriverFixture) -> None:
    assert not await side.open().keep_alive("nobody", health=ProcessHealth.READY)


async def test_deregister_removes_only_that_worker(side: RegistryDriverFixture) -> None:
    registry = side.open()
    await registry.register(ANNA)
    await registry.register(BERT)
    await registry.deregister("anna-1")
    assert await names(registry) == ["bert-1"]
    assert not await registry.keep_alive("anna-1", health=ProcessHealth.READY)
    await registry.deregister("anna-1")


async def test_worker_of_other_process_can_be_removed(side: RegistryDriverFixture) -> None:
    await side.open().register(ANNA)
    registry = side.open()
    await registry.deregister("anna-1")
    assert await names(registry) == []


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "x" * 129])
async def test_invalid_worker_name_is_rejected(side: RegistryDriverFixture, name: str) -> None:
    with pytest.raises(InvalidInput, match="worker_id"):
        await side.open().register(replace(ANNA, name=name))
