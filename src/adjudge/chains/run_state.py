"""Runs and nodes as the engine holds them within one transaction, and the basic writes on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.domain.chain import DependencyCounts, is_failed
from adjudge.domain.states import ChainRunStatus, NodeStatus
from adjudge.store.chains import statements as sql
from adjudge.store.chains.models import NO_ARTIFACT, Artifact, SlotState
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Row

NodeKey = tuple[str, str]
"""Run and node."""


@dataclass(frozen=True, slots=True)
class FinishedNode:
    """A node whose row is finished."""

    run_id: str
    node_id: str
    type: str
    status: NodeStatus
    parent_id: str | None = None
    duration_sec: float | None = None
    pool: str | None = None
    """The chain whose slots its run shares with other runs."""

    @property
    def key(self) -> NodeKey:
        return self.run_id, self.node_id


def finished_node_from_row(row: Row) -> FinishedNode:
    """Convert a row of ``chain_nodes.finish`` or ``close``."""
    begun, over = row["started_at"], row["ended_at"]
    seconds = None if begun is None or over is None else (over - begun) / 1_000_000
    status = NodeStatus(row["status"])
    return FinishedNode(
        row["run_id"], row["node_id"], row["type"], status, row["parent_id"], seconds, row["concurrency_pool"]
    )


@dataclass(slots=True)
class LockedChainRun:
    """A run locked by this transaction, after the last count."""

    id: str
    status: ChainRunStatus
    chain_id: str
    chain_version: int
    nodes_open: int
    nodes_failed: int
    trace_id: str | None
    slot: SlotState | None = None

    @property
    def is_waiting_for_slot(self) -> bool:
        """Whether it waits for a slot: its nodes start when it gets one."""
        return self.slot == "wanted"

    @property
    def can_start_nodes(self) -> bool:
        """Whether its nodes may still start."""
        return self.status in (ChainRunStatus.PENDING, ChainRunStatus.RUNNING)


LockedRuns = dict[str, LockedChainRun]


def locked_run_from_row(row: Iterable[Any]) -> LockedChainRun:
    """Convert a row of ``chain_runs.lock`` or ``count_nodes``."""
    run_id, status, *rest = row
    return LockedChainRun(run_id, ChainRunStatus(status), *rest)


@dataclass(frozen=True, slots=True)
class NodeCountDelta:
    """Changes of the counters of a run."""

    total: int = 0
    open: int = 0
    failed: int = 0


async def update_counts(tx: Tx, deltas: Mapping[str, NodeCountDelta]) -> LockedRuns:
    """Update the counters of runs and lock the runs until the transaction ends, newest first."""
    rows = [(run_id, item.total, item.open, item.failed) for run_id, item in sorted(deltas.items(), reverse=True)]
    return {row["id"]: locked_run_from_row(row) for row in await tx.fetch(sql.UPDATE_NODE_COUNTS, rows)} if rows else {}


async def lock_runs(tx: Tx, run_ids: Sequence[str]) -> LockedRuns:
    """Lock runs until the transaction ends."""
    rows = [(run_id,) for run_id in sorted(set(run_ids), reverse=True)]
    return {row["id"]: locked_run_from_row(row) for row in await tx.fetch(sql.LOCK_RUNS, rows)} if rows else {}


def delta_of_finished(ended: Sequence[FinishedNode]) -> dict[str, NodeCountDelta]:
    """The changes by finished nodes: instances count as open nodes, but only the mapped node can fail its run."""
    over, failed = Counter[str](), Counter[str]()
    for node in ended:
        over[node.run_id] += 1
        failed[node.run_id] += node.parent_id is None and is_failed(node.status)
    return {run_id: NodeCountDelta(0, -number, failed[run_id]) for run_id, number in over.items()}


async def set_counts(tx: Tx, run_id: str, counts: Mapping[str, DependencyCounts]) -> None:
    """Write the dependency counters of pending nodes."""
    rows = [(run_id, key, c.waiting, c.success, c.failed, c.skipped) for key, c in sorted(counts.items())]
    if rows:
        await tx.execute(sql.SET_COUNTS, rows)


@dataclass(frozen=True, slots=True)
class NodeClosing:
    """A node without a running job, to be finished."""

    run_id: str
    node_id: str
    status: NodeStatus
    reason: str
    source: NodeStatus = NodeStatus.RUNNING
    actor: str = "engine"
    error: str | None = None
    artifact: Artifact = NO_ARTIFACT
    """Its artifact; without one, the node keeps what it has."""
    wait: tuple[str, str] | None = None
    """The wait that it must still have: kind and key."""


async def close_nodes(tx: Tx, closings: Sequence[NodeClosing]) -> list[FinishedNode]:
    """Finish nodes without a running job; a node in another state is left out."""
    if not closings:
        return []
    rows = [
        (
            item.run_id,
            item.node_id,
            str(item.source),
            str(item.status),
            item.actor,
            item.reason,
            item.error,
            item.artifact.text,
            item.artifact.digest,
            item.artifact.size_bytes,
            *(item.wait or (None, None)),
        )
        for item in sorted(closings, key=lambda item: (item.run_id, item.node_id))
    ]
    return [finished_node_from_row(row) for row in await tx.fetch(sql.CLOSE_NODES, rows)]
