"""Waiting nodes: which node waits for what, which waits are due, which ends may have been missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from adjudge.domain.states import ChainRunStatus
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class NodeWait:
    """A waiting node."""

    run_id: str
    node_id: str
    kind: str
    key: str
    pool: str | None = None
    """The chain whose slots its run shares with others."""
    until_us: int = 0
    """When it is due; 0 if it has no deadline."""


@dataclass(frozen=True, slots=True)
class StoppableJob:
    """A job to be canceled because its run is stopping."""

    stop_requested_us: int
    id: str


class AwaitedObject(NamedTuple):
    """An object that a node waits for."""

    kind: str
    key: str


_WAIT = {
    "kind": "wait_on",
    "key": "wait_key",
    "pool": "concurrency_pool",
    "until_us": "COALESCE(wait_until, 0)",
}

NOW = Statement("chain_waits.now", "Read the clock that waits end by.", "SELECT {now} AS now_us")

WAITING_FOR = Statement(
    "chain_waits.waiting_for",
    "Find nodes that wait for an event.",
    """
    SELECT {columns} FROM chain_nodes
    WHERE wait_on IS NOT NULL AND wait_on = :on AND wait_key = :key ORDER BY run_id, node_id
    """,
    row=NodeWait,
    columns=_WAIT,
)

DUE = Statement(
    "chain_waits.due",
    "Find waits that are due.",
    """
    SELECT {columns} FROM chain_nodes
    WHERE wait_until IS NOT NULL AND wait_until <= {now}
      AND (wait_until, run_id, node_id) > (:until_us, :run_id, :node_id)
    ORDER BY wait_until, run_id, node_id LIMIT :limit
    """,
    row=NodeWait,
    columns=_WAIT,
)

LONG_WAITS = Statement(
    "chain_waits.long_waits",
    "List waits that have lasted a while, but for kinds whose end cannot be missed.",
    """
    SELECT {columns} FROM chain_nodes
    WHERE wait_on IS NOT NULL AND (wait_on, wait_key, run_id, node_id) > (:on, :key, :run_id, :node_id)
      AND updated_at <= {now} - :older_than_us AND wait_on NOT IN (SELECT given_on FROM {given})
    ORDER BY wait_on, wait_key, run_id, node_id LIMIT :limit
    """,
    input_columns={"given_on": "text"},
    row=NodeWait,
    columns=_WAIT,
)

JOBS_TO_CANCEL = Statement(
    "chain_waits.jobs_to_cancel",
    "Find jobs of stopping runs: waiting ones at once, running ones after the grace period.",
    """
    SELECT {columns}
    FROM chain_runs JOIN jobs ON chain_run_id = chain_runs.id AND chain_run_id IS NOT NULL
    WHERE chain_runs.status = 'stopping' AND (COALESCE(jobs.status, '') IN ('pending', 'queued')
        OR (COALESCE(jobs.status, '') = 'running' AND stop_requested_at <= {now} - :grace_us))
      AND (stop_requested_at, jobs.id) > (:after_us, :after_id)
    ORDER BY stop_requested_at, jobs.id LIMIT :limit
    """,
    row=StoppableJob,
    columns={"stop_requested_us": "stop_requested_at", "id": "jobs.id"},
)

ORPHANED_RUNS = Statement(
    "chain_waits.orphaned_runs",
    "Find sub-chain runs whose parent run is stopping or stopped.",
    """
    SELECT child.id AS id FROM chain_runs child JOIN chain_runs parent ON parent.id = child.parent_run_id
    WHERE child.finished_at IS NULL AND child.status IN ('pending', 'running') AND child.parent_run_id IS NOT NULL
      AND parent.status IN ('stopping', 'stopped') AND child.id > :after
    ORDER BY child.id LIMIT :limit
    """,
)


AWAITED = Statement(
    "chain_waits.awaited",
    "Find out which of the things that have just ended a node waits for, in the order in which runs are locked.",
    """
    SELECT {columns} FROM {given} JOIN chain_nodes ON wait_on = given_on AND wait_key = given_key
    WHERE wait_on IS NOT NULL GROUP BY wait_on, wait_key ORDER BY max(run_id) DESC, wait_on, wait_key
    """,
    input_columns={"given_on": "text", "given_key": "text"},
    row=AwaitedObject,
    columns={"kind": "wait_on", "key": "wait_key"},
)

LOCK_RUN_STATUS = Statement(
    "chain_waits.lock_run_status",
    "Read a run's status under a share lock.",
    "SELECT status FROM chain_runs WHERE id = :run_id FOR SHARE",
)


async def now_ms(tx: Tx) -> int:
    """The database clock, as Unix time in milliseconds."""
    (row,) = await tx.fetch(NOW)
    return int(row["now_us"]) // 1_000


async def find_waiting_nodes(tx: Tx, on: str, key: str) -> list[NodeWait]:
    return await tx.fetch(WAITING_FOR, on=on, key=key)


async def find_due(tx: Tx, *, limit: int, after: NodeWait | None = None) -> list[NodeWait]:
    """Waits that are due, oldest first, after a known one."""
    last = after or NodeWait("", "", "", "")
    return await tx.fetch(DUE, until_us=last.until_us, run_id=last.run_id, node_id=last.node_id, limit=limit)


async def find_long_waits(
    tx: Tx, *, after: NodeWait | None, older_than_ms: int, limit: int, unmissable: Sequence[str] = ()
) -> list[NodeWait]:
    """Waits older than ``older_than_ms``, after a known one, without those of an ``unmissable`` kind."""
    last = after or NodeWait("", "", "", "")
    return await tx.fetch(
        LONG_WAITS,
        [(kind,) for kind in unmissable] or [("",)],
        on=last.kind,
        key=last.key,
        run_id=last.run_id,
        node_id=last.node_id,
        older_than_us=older_than_ms * 1_000,
        limit=limit,
    )


async def lock_run_status(tx: Tx, run_id: str) -> ChainRunStatus | None:
    """The status of a run, locked until this transaction ends."""
    row = await fetch_one(tx, LOCK_RUN_STATUS, run_id=run_id)
    return None if row is None else ChainRunStatus(row["status"])


async def find_jobs_to_cancel(
    tx: Tx, *, grace_ms: int, limit: int, after: StoppableJob | None = None
) -> list[StoppableJob]:
    """Jobs to be canceled because their run is stopping, oldest request first, after a known one."""
    last = after or StoppableJob(0, "")
    return await tx.fetch(
        JOBS_TO_CANCEL, grace_us=grace_ms * 1_000, limit=limit, after_us=last.stop_requested_us, after_id=last.id
    )


async def find_orphaned_runs(tx: Tx, *, limit: int, after: str = "") -> list[str]:
    """Sub-chain runs to be stopped with the run that started them, after a known one."""
    return [row["id"] for row in await tx.fetch(ORPHANED_RUNS, limit=limit, after=after)]


async def find_awaited(tx: Tx, objects: Sequence[tuple[str, str]]) -> list[AwaitedObject]:
    """Those of the objects, each a kind and a key, that a node waits for."""
    return await tx.fetch(AWAITED, sorted(objects)) if objects else []
