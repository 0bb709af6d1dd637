"""The worker registry in the database, for installations without etcd. Leases use the database clock."""

from __future__ import annotations

from adjudge.registry.driver import LEASE_SEC, LiveProcess, ProcessHealth, ProcessInfo, ProcessRole, check_process_name
from adjudge.store import Database
from adjudge.store.ops import processes
from adjudge.store.ops.processes import ProcessRow


class DatabaseRegistry:
    """Rows of ``processes``."""

    def __init__(self, database: Database, *, lease_sec: float = LEASE_SEC) -> None:
        self._database = database
        self._lease_us = int(lease_sec * 1e6)

    async def register(self, info: ProcessInfo) -> None:
        row = ProcessRow(
            id=check_process_name(info.name),
            role=info.role,
            host=info.host,
            pid=info.pid,
            version=info.version,
            slots=info.slots,
            capabilities={"languages": dict(info.languages), "isolation": info.isolation},
            health=info.health,
        )
        await self._database.transact(lambda tx: processes.register(tx, row, lease_us=self._lease_us))

    async def keep_alive(self, name: str, *, health: ProcessHealth) -> bool:
        return await self._database.transact(
            lambda tx: processes.keep_alive(tx, name, health=health, lease_us=self._lease_us)
        )

    async def deregister(self, name: str) -> None:
        await self._database.transact(lambda tx: processes.deregister(tx, name))

    async def list(self) -> list[LiveProcess]:
        """Processes whose lease is valid."""
        return [
            LiveProcess(
                ProcessInfo(
                    name=row.id,
                    role=ProcessRole(row.role),
                    host=row.host,
                    pid=row.pid,
                    version=row.version,
                    slots=row.slots,
                    languages=row.capabilities["languages"],
                    isolation=row.capabilities["isolation"],
                    health=ProcessHealth(row.health),
                ),
                row.lease_left_us / 1e6,
                max(0, row.seen_ago_us) / 1e6,
            )
            for row in await self._database.read(processes.list_alive)
        ]

    async def close(self) -> None:
        """Nothing to close: the caller owns the database."""
