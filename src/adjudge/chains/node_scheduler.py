"""Starts ready nodes: creates their jobs, immediately or when the limits of run and chain allow it.

Slots in use are counted over the rows that hold them, never in a separate counter.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from adjudge.chains.concurrency import UNLIMITED, SlotAllocator, current_chain_limits
from adjudge.chains.dag_cache import DagCache
from adjudge.chains.follow_ups import FollowUps, claimed_job, new_job_row
from adjudge.chains.node_jobs import node_job
from adjudge.chains.run_state import LockedChainRun
from adjudge.domain.chain import Dag, Node
from adjudge.domain.ids import IdFactory
from adjudge.domain.states import ChainRunStatus, JobStatus
from adjudge.store.chains import concurrency as places
from adjudge.store.chains import finish
from adjudge.store.chains import statements as sql
from adjudge.store.chains.models import node_attempt
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.notify import CHANNEL_OUTBOX
from adjudge.store.engine.script import Inputs
from adjudge.store.engine.statement import Row
from adjudge.store.jobs import metrics
from adjudge.store.jobs.models import MILLISECOND, Job, NewJob

_PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class ReadyNode:
    """A ready node."""

    run_id: str
    node_id: str
    node: Node
    job_id: str | None = None
    """Set if its row has the job already."""
    attempts_before: int = 0
    """Attempts made by earlier jobs of the node."""


@dataclass(frozen=True, slots=True)
class FreedSlots:
    """Where a slot may be free."""

    runs: Set[str]
    concurrency_pools: Set[str]
    """Chains in which a slot over all runs may be free."""


class NodeScheduler:
    """Creates jobs for ready nodes."""

    def __init__(self, dags: DagCache, new_id: IdFactory, node_timeout_ms: int) -> None:
        self._dags = dags
        self._new_id = new_id
        self._node_timeout_ms = node_timeout_ms

    async def start_ready(
        self,
        tx: Tx,
        runs: Mapping[str, LockedChainRun],
        dags: Mapping[str, Dag],
        starts: Sequence[ReadyNode],
        freed: FreedSlots,
        *,
        follow_ups: FollowUps,
    ) -> int:
        """Start ready nodes, as far as limits allow; return how many.

        Nodes for which the worker has a free slot are claimed by it.
        """
        limited = {start.run_id for start in starts if dags[start.run_id].has_concurrency_limits}
        now = [start for start in starts if start.run_id not in limited]
        wanting = [start for start in starts if start.run_id in limited]
        if wanting:
            await tx.execute(
                sql.ASSIGN_JOBS, sorted((start.run_id, start.node_id, None, "wanted") for start in wanting)
            )
        limited |= freed.runs
        sharing = {run_id for run_id in limited if dags[run_id].chain_limits.limits_nodes}
        for run_id in sorted(limited - sharing):
            now += await self._granted(tx, run_id, dags[run_id])
        pools = {*freed.concurrency_pools, *(runs[run_id].chain_id for run_id in sharing)}
        if pools:
            runs, dags = dict(runs), dict(dags)
            for pool in sorted(pools):
                now += await self._granted_over_runs(tx, pool, runs, dags)
        await self._start(tx, runs, dags, now, follow_ups)
        return len(now)

    async def _granted(self, tx: Tx, run_id: str, dag: Dag) -> list[ReadyNode]:
        """The nodes that the limits of the run allow now, highest priority first."""
        room = SlotAllocator()
        for row in await tx.fetch(sql.SLOTS_HELD, run_id=run_id):
            room.occupy(run_id, row["type"], row["parent_id"], row["n"])
        free = room.free_in_run(run_id, dag)
        if not free:
            return []
        wanted = await tx.fetch(sql.SLOTS_WANTED, run_id=run_id, limit=UNLIMITED if dag.has_per_node_limits else free)
        return [_ready(run_id, node, row) for row in wanted if (node := room.allocate(run_id, dag, row)) is not None]

    async def _granted_over_runs(
        self, tx: Tx, pool: str, runs: MutableMapping[str, LockedChainRun], dags: MutableMapping[str, Dag]
    ) -> list[ReadyNode]:
        """The nodes that the limits of a chain allow now, in any of its runs; locks the chain."""
        room, found = SlotAllocator(await current_chain_limits(tx, self._dags, pool)), list[ReadyNode]()
        for row in await tx.fetch(places.SLOTS_HELD, pool=pool):
            room.occupy(row["run_id"], row["type"], row["parent_id"], row["n"], int(row["busy"]))
        last, limit = {"priority": -1, "run_id": "", "ordinal": -1, "node_id": ""}, min(room.free, _PAGE)
        while room.free:
            page = await tx.fetch(places.SLOTS_WANTED, pool=pool, limit=limit, **last)
            for row in page:
                run_id = row["run_id"]
                if run_id not in dags:
                    runs[run_id] = _locked_run(row)
                    dags[run_id] = await self._dags.of_run(tx, run_id, row["chain_id"], row["chain_version"])
                node = room.allocate(run_id, dags[run_id], row)
                if node is not None:
                    found.append(_ready(run_id, node, row))
            if len(page) < limit:
                break
            last, limit = {name: page[-1][name] for name in last}, _PAGE
        return found

    async def _start(
        self,
        tx: Tx,
        runs: Mapping[str, LockedChainRun],
        dags: Mapping[str, Dag],
        ready: Sequence[ReadyNode],
        follow_ups: FollowUps,
    ) -> None:
        """Create the jobs of nodes; the worker claims those for which it has slots."""
        if not ready:
            return
        worker, lease_ms = (capacity.worker, capacity.lease_ms) if (capacity := follow_ups.capacity) else (None, 0)
        starts, new, jobs, follows = [], [], dict[str, NewJob](), dict[str, str]()
        for node in ready:
            dag = dags[node.run_id]
            job = self._job(runs[node.run_id], dag, node)
            jobs[job.id] = job
            if (finished := follow_ups.reserve(job)) is not None:
                follows[job.id] = finished
            owner = worker if job.id in follows else None
            if node.job_id is None or owner is not None:
                slot = "held" if dag.has_concurrency_limits else None
                starts.append((node.run_id, node.node_id, job.id, slot, node.attempts_before + 1, owner))
            new.append(new_job_row(job, owner))
        inputs: Inputs = {"start": sorted(starts), "new_job": new}
        rows = (await tx.run(finish.START_NODES, inputs, lease_us=lease_ms * MILLISECOND))["created_job"]
        record_created(tx, jobs, rows, follows, follow_ups)

    def _job(self, run: LockedChainRun, dag: Dag, start: ReadyNode) -> NewJob:
        return node_job(
            start.job_id or self._new_id(),
            (run.id, start.node_id),
            start.node,
            (run.chain_id, str(run.chain_version)),
            run.trace_id,
            attempts_before=start.attempts_before,
            shares=dag.has_cross_run_limits,
            default_timeout_ms=self._node_timeout_ms,
        )


def start_row(job: Job) -> tuple[str, str, str, int, str, str]:
    """The input row of ``chain_nodes.start`` for a claimed job."""
    return job.chain_run_id or "", job.node_id or "", job.id, node_attempt(job), job.actor or "", job.reason or ""


def record_created(
    tx: Tx,
    jobs: Mapping[str, NewJob],
    rows: Sequence[Sequence[Any]],
    follows: Mapping[str, str],
    follow_ups: FollowUps,
) -> None:
    """Record which jobs the step ``created_job`` created, and which of them are claimed."""
    created, claimed = [jobs[row[0]] for row in rows], list[Job]()
    for row in rows:
        if row[0] in follows and row[1] == JobStatus.RUNNING:
            job = claimed_job(jobs[row[0]], row, str(row[3]))
            claimed.append(job)
            follow_ups.claimed.setdefault(follows[job.id], []).append(job)
    if len(claimed) < len(created):
        tx.notify(CHANNEL_OUTBOX)
    tx.on_commit(lambda: metrics.record_enqueued(created))
    tx.on_commit(lambda: metrics.record_started(claimed))


def _ready(run_id: str, node: Node, row: Row) -> ReadyNode:
    before = max(0, row["attempt"] - 1) if row["attempt"] else 0
    return ReadyNode(run_id, row["node_id"], node, attempts_before=before)


def _locked_run(row: Row) -> LockedChainRun:
    return LockedChainRun(
        row["run_id"],
        ChainRunStatus(row["run_status"]),
        row["chain_id"],
        row["chain_version"],
        row["nodes_open"],
        row["nodes_failed"],
        row["trace_id"],
    )
