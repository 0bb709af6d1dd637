"""Starts ready nodes: creates their jobs, immediately or when the limits of run and chain allow it.

Slots in use are counted over the rows that hold them, never in a separate counter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from adjudge.chains.dag_cache import DagCache
from adjudge.chains.follow_ups import FollowUps, node_job
from adjudge.domain.chain import ChainLimits, Dag, Node
from adjudge.domain.ids import IdFactory
from adjudge.store.chains import concurrency
from adjudge.store.chains.concurrency import HeldSlots, SlotRequest
from adjudge.store.chains.finish import NodeStart, new_job_row, start_nodes
from adjudge.store.chains.models import LockedChainRun, SlotState
from adjudge.store.engine.driver import Tx
from adjudge.store.jobs.models import NewJob

UNLIMITED: Final = 100_000
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


class SlotAllocator:
    """The remaining slots: in each run, and over all of them."""

    def __init__(self, over_runs: ChainLimits | None = None) -> None:
        self._over = over_runs or ChainLimits()
        self._busy = Counter[str]()
        self._in_run = Counter[tuple[str, ...]]()

    def occupy(self, held: HeldSlots) -> None:
        """Count slots in use."""
        self._busy[held.type] += held.busy
        for key in ((held.run_id,), (held.run_id, "type", held.type), (held.run_id, "parent", held.parent_id)):
            self._in_run[key] += held.number

    @property
    def free(self) -> int:
        """The number of slots over all runs."""
        return UNLIMITED if self._over.max_parallel is None else max(0, self._over.max_parallel - self._busy.total())

    def free_in_run(self, run_id: str, dag: Dag) -> int:
        """The number of slots in a run."""
        return UNLIMITED if dag.max_parallel is None else max(0, dag.max_parallel - self._in_run[run_id,])

    def allocate(self, dag: Dag, request: SlotRequest) -> Node | None:
        """Give a node a slot if every limit allows it; return the node of the DAG."""
        run_id, type_name, parent_id = request.run_id, request.type, request.parent_id
        node = dag.node_for(request.node_id)
        siblings = node.map_spec.max_parallel if node.map_spec and parent_id else None
        if (
            not self.free
            or not self.free_in_run(run_id, dag)
            or self._busy[type_name] >= self._over.max_parallel_by_type.get(type_name, UNLIMITED)
            or self._in_run[run_id, "type", type_name] >= dag.max_parallel_by_type.get(type_name, UNLIMITED)
            or self._in_run[run_id, "parent", parent_id] >= (siblings or UNLIMITED)
        ):
            return None
        self.occupy(HeldSlots(run_id, type_name, parent_id, number=1, busy=1))
        return node


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
        await concurrency.request_slots(tx, [(start.run_id, start.node_id) for start in wanting])
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
        slots = SlotAllocator()
        for held in await concurrency.find_slots_held_in_run(tx, run_id):
            slots.occupy(held)
        free = slots.free_in_run(run_id, dag)
        if not free:
            return []
        limit = UNLIMITED if dag.has_per_node_limits else free
        requests = await concurrency.find_requests_in_run(tx, run_id, limit=limit)
        return [_ready(request, node) for request in requests if (node := slots.allocate(dag, request)) is not None]

    async def _granted_over_runs(
        self, tx: Tx, pool: str, runs: MutableMapping[str, LockedChainRun], dags: MutableMapping[str, Dag]
    ) -> list[ReadyNode]:
        """The nodes that the limits of a chain allow now, in any of its runs; locks the chain."""
        slots, found = SlotAllocator(await self._dags.lock_limits(tx, pool)), list[ReadyNode]()
        for held in await concurrency.find_slots_held_in_pool(tx, pool):
            slots.occupy(held)
        last, limit = None, min(slots.free, _PAGE)
        while slots.free:
            page = await concurrency.page_requests_in_pool(tx, pool, limit=limit, after=last)
            for item in page:
                request, run = item.node, item.run
                if run.id not in dags:
                    runs[run.id] = run
                    dags[run.id] = await self._dags.load(tx, run.chain_id, run.chain_version)
                node = slots.allocate(dags[run.id], request)
                if node is not None:
                    found.append(_ready(request, node))
            if len(page) < limit:
                break
            last, limit = page[-1].node, _PAGE
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
                slot: SlotState | None = "held" if dag.has_concurrency_limits else None
                starts.append(NodeStart(node.run_id, node.node_id, job.id, slot, node.attempts_before + 1, owner))
            new.append(new_job_row(job, owner))
        created = await start_nodes(tx, starts, new, lease_ms=lease_ms)
        follow_ups.record_created(tx, jobs, created, follows)

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


def _ready(request: SlotRequest, node: Node) -> ReadyNode:
    return ReadyNode(request.run_id, request.node_id, node, attempts_before=request.attempts_before)
