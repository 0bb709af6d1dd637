"""The registries under test: both databases with a test clock, and etcd with its own clock."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import AsyncIterator
from itertools import count

import httpx
import pytest

from adjudge.registry import Registry
from adjudge.registry.database import DatabaseRegistry
from adjudge.registry.etcd import EtcdRegistry
from tests.support.servers import EtcdServer
from tests.support.store_harness import StoreHarness, open_store

_ENVIRONMENTS = count(1)
LEASE_SEC = 60
"""Longer than any test takes, whatever else the machine does: etcd's leases run by real time."""


class RegistryDriverFixture(ABC):
    """One registry that several roles open."""

    @abstractmethod
    def open(self, lease_sec: int = LEASE_SEC) -> Registry:
        """Open it once more, as another process would."""

    @abstractmethod
    async def pass_time(self) -> None:
        """Let a little time pass, on the clock that leases run by."""

    @abstractmethod
    async def lapse(self, name: str) -> None:
        """End the lease of ``name``, as time would."""


class DatabaseSide(RegistryDriverFixture):
    def __init__(self, store: StoreHarness) -> None:
        self.store = store

    def open(self, lease_sec: int = LEASE_SEC) -> DatabaseRegistry:
        return DatabaseRegistry(self.store.database, lease_sec=lease_sec)

    async def pass_time(self) -> None:
        await self.store.clock.advance(100)

    async def lapse(self, name: str) -> None:
        await self.store.clock.advance(LEASE_SEC * 1_000)


class EtcdSide(RegistryDriverFixture):
    def __init__(self, server: EtcdServer) -> None:
        self.server = server
        self.environment = f"test-{next(_ENVIRONMENTS)}"
        self.opened: list[EtcdRegistry] = []

    def open(self, lease_sec: int = LEASE_SEC) -> EtcdRegistry:
        self.opened.append(EtcdRegistry([self.server.endpoint], environment=self.environment, lease_sec=lease_sec))
        return self.opened[-1]

    async def pass_time(self) -> None:
        await asyncio.sleep(0.05)

    async def lapse(self, name: str) -> None:
        key = b64encode(f"/adjudge/{self.environment}/processes/{name}".encode()).decode()
        async with httpx.AsyncClient(base_url=f"{self.server.endpoint}/v3", timeout=60) as client:
            (found,) = (await client.post("/kv/range", json={"key": key})).json()["kvs"]
            (await client.post("/lease/revoke", json={"ID": found["lease"]})).raise_for_status()


@pytest.fixture(params=["sqlite", "postgresql", "etcd"])
async def side(request: pytest.FixtureRequest) -> AsyncIterator[RegistryDriverFixture]:
    if request.param == "etcd":
        etcd = EtcdSide(request.getfixturevalue("etcd_server"))
        yield etcd
        for registry in etcd.opened:
            await registry.close()
        return
    url = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    async with open_store(url) as store:
        yield DatabaseSide(store)
