"""Orders of operators to workers: a pause lasts until it is withdrawn, a drain is carried out once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.notify import CHANNEL_WORKER_CONTROL
from adjudge.store.engine.statement import Statement

WorkerMode = Literal["pause", "drain"]


@dataclass(frozen=True, slots=True)
class WorkerControlRow:
    """An order to a worker."""

    worker: str
    mode: WorkerMode
    actor: str
    reason: str
    created_at: int


SET = Statement(
    "worker_controls.set",
    "Order a worker to pause or to drain; replaces an earlier order.",
    """
    INSERT INTO worker_controls (worker, mode, actor, reason, created_at)
    VALUES (:worker, :mode, :actor, :reason, {now})
    ON CONFLICT (worker) DO UPDATE SET mode = excluded.mode, actor = excluded.actor, reason = excluded.reason,
        created_at = excluded.created_at
    """,
)
DELETE = Statement(
    "worker_controls.delete", "Withdraw the order to a worker.", "DELETE FROM worker_controls WHERE worker = :worker"
)
FIND = Statement(
    "worker_controls.find",
    "Read the order to one worker.",
    "SELECT {columns} FROM worker_controls WHERE worker = :worker",
    row=WorkerControlRow,
)
LIST = Statement(
    "worker_controls.list",
    "List the orders to workers.",
    "SELECT {columns} FROM worker_controls ORDER BY worker",
    row=WorkerControlRow,
)


async def set_mode(tx: Tx, worker: str, mode: WorkerMode, *, actor: str, reason: str) -> None:
    """Order a worker to pause or to drain."""
    await tx.execute(SET, worker=worker, mode=mode, actor=actor, reason=reason)
    tx.notify(CHANNEL_WORKER_CONTROL)


async def delete(tx: Tx, worker: str) -> bool:
    """Withdraw an order; False if there is none."""
    tx.notify(CHANNEL_WORKER_CONTROL)
    return bool(await tx.execute(DELETE, worker=worker))


async def find(tx: Tx, worker: str) -> WorkerControlRow | None:
    """The order to one worker."""
    return await fetch_one(tx, FIND, worker=worker)


async def list_all(tx: Tx) -> list[WorkerControlRow]:
    """All orders."""
    return await tx.fetch(LIST)
