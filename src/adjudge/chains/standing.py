"""Runs and nodes as the engine holds them within one transaction, and the few writes that everything is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adjudge.domain.chain import Counts, is_failed
from adjudge.domain.states import NodeStatus, RunStatus
from adjudge.store import chain_statements as sql
from adjudge.store.chain_values import NO_ARTIFACT, Artifact, Place
from adjudge.store.driver import Tx
from adjudge.store.statement import Row

Key = tuple[str, str]
"""Run and node."""


@dataclass(frozen=True, slots=True)
class EndedNode:
    """A node whose row says that it has ended."""

    run_id: str
    node_id: str
    type: str
    status: NodeStatus
    parent_id: str | None = None
    seconds: float | None = None
    pool: str | None = None
    """The chain whose places its run shares with others."""

    @property
    def key(self) -> Key:
        """Run and node."""
        return self.run_id, self.node_id


def ended_node(row: Row) -> EndedNode:
    """What ``chain_nodes.finish`` and ``close`` return."""
    begun, over = row["started_at"], row["ended_at"]
    seconds = None if begun is None or over is None else (over - begun) / 1_000_000
    status = NodeStatus(row["status"])
    return EndedNode(row["run_id"], row["node_id"], row["type"], status, row["parent_id"], seconds, row["pool"])


@dataclass(slots=True)
class Standing:
    """A run under our lock, as it stands after our last count."""

    id: str
    status: RunStatus
    chain_id: str
    chain_version: int
    nodes_open: int
    nodes_failed: int
    trace_id: str | None
    place: Place | None = None

    @property
    def waits(self) -> bool:
        """Whether it is not its turn yet: what could start in it does so when it is."""
        return self.place == "wanted"

    @property
    def goes_on(self) -> bool:
        """Whether its nodes may still start."""
        return self.status in (RunStatus.PENDING, RunStatus.RUNNING)


Runs = dict[str, Standing]


def standing_of(row: Row) -> Standing:
    """What ``chain_runs.lock`` and ``count_nodes`` return."""
    run_id, status, *rest = row
    return Standing(run_id, RunStatus(status), *rest)


@dataclass(frozen=True, slots=True)
class Delta:
    """How the counts of a run change."""

    total: int = 0
    open: int = 0
    failed: int = 0


async def count(tx: Tx, deltas: Mapping[str, Delta]) -> Runs:
    """Change the counts of runs, and keep the runs for us until the transaction ends: the youngest first."""
    rows = [(run_id, item.total, item.open, item.failed) for run_id, item in sorted(deltas.items(), reverse=True)]
    return {row["id"]: standing_of(row) for row in await tx.fetch(sql.COUNT_NODES, rows)} if rows else {}


async def lock(tx: Tx, run_ids: Sequence[str]) -> Runs:
    """Keep runs for us until the transaction ends."""
    rows = [(run_id,) for run_id in sorted(set(run_ids), reverse=True)]
    return {row["id"]: standing_of(row) for row in await tx.fetch(sql.LOCK_RUNS, rows)} if rows else {}


def ended_delta(ended: Sequence[EndedNode]) -> dict[str, Delta]:
    """What ended nodes change: instances are open nodes too, but only the mapped node itself can fail its run."""
    over, failed = Counter[str](), Counter[str]()
    for node in ended:
        over[node.run_id] += 1
        failed[node.run_id] += node.parent_id is None and is_failed(node.status)
    return {run_id: Delta(0, -number, failed[run_id]) for run_id, number in over.items()}


async def set_counts(tx: Tx, run_id: str, counts: Mapping[str, Counts]) -> None:
    """Write how the dependencies of waiting nodes stand."""
    rows = [(run_id, key, c.waiting, c.success, c.failed, c.skipped) for key, c in sorted(counts.items())]
    if rows:
        await tx.execute(sql.SET_COUNTS, rows)


@dataclass(frozen=True, slots=True)
class Closing:
    """A node to end that no job is running."""

    run_id: str
    node_id: str
    status: NodeStatus
    reason: str
    source: NodeStatus = NodeStatus.RUNNING
    actor: str = "engine"
    error: str | None = None
    artifact: Artifact = NO_ARTIFACT
    """What it leaves behind; what it has stands where there is none."""
    wait: tuple[str, str] | None = None
    """What it must still wait for: kind and key."""


async def close(tx: Tx, closings: Sequence[Closing]) -> list[EndedNode]:
    """End nodes that no job is running; one that stands elsewhere by now is left out."""
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
    return [ended_node(row) for row in await tx.fetch(sql.CLOSE_NODES, rows)]
