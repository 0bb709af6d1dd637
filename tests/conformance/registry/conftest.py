"""The registry suite's sides: both databases under a clock of the test's own, and etcd under its own clock."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from itertools import count

import pytest

from adjudge.registry import Registry
from adjudge.registry.database import DatabaseRegistry
from adjudge.registry.etcd import EtcdRegistry
from tests.support.services import EtcdServer
from tests.support.stores import Store, opened

_ENVIRONMENTS = count(1)
_PATIENCE_SEC = 20.0


class Side(ABC):
    """One registry that several roles open."""

    @abstractmethod
    def open(self) -> Registry:
        """Open it once more, as another process would."""

    @abstractmethod
    async def lapse(self, registry: Registry, name: str) -> None:
        """Let time pass until the lease of ``name`` has ended."""


class DatabaseSide(Side):
    def __init__(self, store: Store) -> None:
        self.store = store

    def open(self) -> DatabaseRegistry:
        return DatabaseRegistry(self.store.database, lease_sec=1)

    async def lapse(self, registry: Registry, name: str) -> None:
        await self.store.clock.advance(1000)


class EtcdSide(Side):
    def __init__(self, server: EtcdServer) -> None:
        self.server = server
        self.environment = f"test-{next(_ENVIRONMENTS)}"
        self.opened: list[EtcdRegistry] = []

    def open(self) -> EtcdRegistry:
        self.opened.append(EtcdRegistry([self.server.endpoint], environment=self.environment, lease_sec=1))
        return self.opened[-1]

    async def lapse(self, registry: Registry, name: str) -> None:
        """etcd's leases take real seconds; the shortest one is a second."""
        deadline = time.monotonic() + _PATIENCE_SEC
        while name in [worker.info.name for worker in await registry.list()]:
            assert time.monotonic() < deadline, "the lease outlived itself"
            await asyncio.sleep(0.05)


@pytest.fixture(params=["sqlite", "postgresql", "etcd"])
async def side(request: pytest.FixtureRequest) -> AsyncIterator[Side]:
    if request.param == "etcd":
        etcd = EtcdSide(request.getfixturevalue("etcd_server"))
        yield etcd
        for registry in etcd.opened:
            await registry.close()
        return
    url = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    async with opened(url) as store:
        yield DatabaseSide(store)
