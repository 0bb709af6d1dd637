"""The worker registry in the database, for installations without etcd. Leases use the database clock."""

from __future__ import annotations

from adjudge.registry.driver import LEASE_SEC, LiveWorker, WorkerHealth, WorkerInfo, check_worker_name
from adjudge.store import Database
from adjudge.store.jobs import workers
from adjudge.store.jobs.workers import WorkerRow


class DatabaseRegistry:
    """Rows of ``workers``."""

    def __init__(self, database: Database, *, lease_sec: float = LEASE_SEC) -> None:
        self._database = database
        self._lease_us = int(lease_sec * 1e6)

    async def register(self, info: WorkerInfo) -> None:
        row = WorkerRow(
            id=check_worker_name(info.name),
            host=info.host,
            pid=info.pid,
            version=info.version,
            slots=info.slots,
            capabilities={"languages": dict(info.languages), "isolation": info.isolation},
            health=info.health,
        )
        await self._database.transact(lambda tx: workers.register(tx, row, lease_us=self._lease_us))

    async def keep_alive(self, name: str, *, health: WorkerHealth) -> bool:
        return await self._database.transact(
            lambda tx: workers.keep_alive(tx, name, health=health, lease_us=self._lease_us)
        )

    async def deregister(self, name: str) -> None:
        await self._database.transact(lambda tx: workers.deregister(tx, name))

    async def list(self) -> list[LiveWorker]:
        """Workers whose lease is valid."""
        return [
            LiveWorker(
                WorkerInfo(
                    name=row.id,
                    host=row.host,
                    pid=row.pid,
                    version=row.version,
                    slots=row.slots,
                    languages=row.capabilities["languages"],
                    isolation=row.capabilities["isolation"],
                    health=WorkerHealth(row.health),
                ),
                row.lease_left_us / 1e6,
            )
            for row in await self._database.read(workers.list_alive)
        ]

    async def close(self) -> None:
        """Nothing to close: the caller owns the database."""
