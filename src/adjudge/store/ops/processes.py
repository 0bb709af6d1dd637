"""The registry in the database: processes, their capabilities and their leases.

A row with an expired lease is a lost process: it is reported to operators, and deleted a day later when any process
registers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process, from its row."""

    id: str
    role: str
    host: str
    pid: int
    version: str
    slots: int
    capabilities: Mapping[str, Any]
    health: str
    started_at_us: int = 0
    lease_left_us: int = 0
    seen_ago_us: int = 0


REGISTER = Statement(
    "processes.register",
    "Insert or replace a process with a fresh lease.",
    """
    INSERT INTO processes (id, role, host, pid, version, slots, capabilities, health, started_at, seen_at, lease_until)
    VALUES (:id, :role, :host, :pid, :version, :slots, :capabilities, :health, {now}, {now},
            {now} + CAST(:lease_us AS bigint))
    ON CONFLICT (id) DO UPDATE SET role = excluded.role, host = excluded.host, pid = excluded.pid,
        version = excluded.version, slots = excluded.slots, capabilities = excluded.capabilities,
        health = excluded.health, started_at = excluded.started_at, seen_at = excluded.seen_at,
        lease_until = excluded.lease_until
    """,
)

KEEP_ALIVE = Statement(
    "processes.keep_alive",
    "Renew the lease of a process if it has not expired.",
    """
    UPDATE processes SET seen_at = {now}, lease_until = {now} + CAST(:lease_us AS bigint), health = :health
    WHERE id = :id AND lease_until > {now}
    """,
)

DEREGISTER = Statement("processes.deregister", "Delete a process.", "DELETE FROM processes WHERE id = :id")

DELETE_EXPIRED = Statement(
    "processes.delete_expired",
    "Delete processes whose lease expired more than a day ago.",
    "DELETE FROM processes WHERE lease_until <= {now} - 86400000000",
)

LIST_ALIVE = Statement(
    "processes.list_alive",
    "List processes with a valid lease.",
    "SELECT {columns} FROM processes WHERE lease_until > {now} ORDER BY id",
    row=ProcessRow,
    columns={"started_at_us": "started_at", "lease_left_us": "lease_until - {now}", "seen_ago_us": "{now} - seen_at"},
)


async def register(tx: Tx, process: ProcessRow, *, lease_us: int) -> None:
    """Register a process, and delete lost ones."""
    await tx.execute(DELETE_EXPIRED)
    await tx.execute(
        REGISTER,
        id=process.id,
        role=process.role,
        host=process.host,
        pid=process.pid,
        version=process.version,
        slots=process.slots,
        capabilities=json.dumps(process.capabilities),
        health=process.health,
        lease_us=lease_us,
    )


async def keep_alive(tx: Tx, process_id: str, *, health: str, lease_us: int) -> bool:
    """Renew a lease; False if it has expired or does not exist."""
    return await tx.execute(KEEP_ALIVE, id=process_id, health=health, lease_us=lease_us) == 1


async def deregister(tx: Tx, process_id: str) -> None:
    await tx.execute(DEREGISTER, id=process_id)


async def list_alive(tx: Tx) -> list[ProcessRow]:
    """List live processes by name."""
    return await tx.fetch(LIST_ALIVE)
