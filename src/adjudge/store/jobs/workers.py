"""The worker registry in the database: workers, their capabilities and their leases.

A row with an expired lease is a lost worker: readers ignore it, and the next registration of any worker deletes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker, from its row."""

    id: str
    host: str
    pid: int
    version: str
    slots: int
    capabilities: Mapping[str, Any]
    health: str
    started_at_us: int = 0
    lease_left_us: int = 0


REGISTER = Statement(
    "workers.register",
    "Insert or replace a worker with a fresh lease.",
    """
    INSERT INTO workers (id, host, pid, version, slots, capabilities, health, started_at, seen_at, lease_until)
    VALUES (:id, :host, :pid, :version, :slots, :capabilities, :health, {now}, {now}, {now} + CAST(:lease_us AS bigint))
    ON CONFLICT (id) DO UPDATE SET host = excluded.host, pid = excluded.pid, version = excluded.version,
        slots = excluded.slots, capabilities = excluded.capabilities, health = excluded.health,
        started_at = excluded.started_at, seen_at = excluded.seen_at, lease_until = excluded.lease_until
    """,
)

KEEP_ALIVE = Statement(
    "workers.keep_alive",
    "Renew a worker's lease if it has not expired.",
    """
    UPDATE workers SET seen_at = {now}, lease_until = {now} + CAST(:lease_us AS bigint), health = :health
    WHERE id = :id AND lease_until > {now}
    """,
)

DEREGISTER = Statement("workers.deregister", "Delete a worker.", "DELETE FROM workers WHERE id = :id")

DELETE_EXPIRED = Statement(
    "workers.delete_expired",
    "Delete workers whose lease expired.",
    "DELETE FROM workers WHERE lease_until <= {now}",
)

LIST_ALIVE = Statement(
    "workers.list_alive",
    "List workers with a valid lease.",
    "SELECT {columns} FROM workers WHERE lease_until > {now} ORDER BY id",
    row=WorkerRow,
    columns={"started_at_us": "started_at", "lease_left_us": "lease_until - {now}"},
)


async def register(tx: Tx, worker: WorkerRow, *, lease_us: int) -> None:
    """Register a worker, and delete lost ones."""
    await tx.execute(DELETE_EXPIRED)
    await tx.execute(
        REGISTER,
        id=worker.id,
        host=worker.host,
        pid=worker.pid,
        version=worker.version,
        slots=worker.slots,
        capabilities=json.dumps(worker.capabilities),
        health=worker.health,
        lease_us=lease_us,
    )


async def keep_alive(tx: Tx, worker_id: str, *, health: str, lease_us: int) -> bool:
    """Renew a lease; False if it has expired or does not exist."""
    return await tx.execute(KEEP_ALIVE, id=worker_id, health=health, lease_us=lease_us) == 1


async def deregister(tx: Tx, worker_id: str) -> None:
    await tx.execute(DEREGISTER, id=worker_id)


async def list_alive(tx: Tx) -> list[WorkerRow]:
    """List live workers by name."""
    return await tx.fetch(LIST_ALIVE)
