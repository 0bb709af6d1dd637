"""Starting nodes that may run: a job each, at once, or as soon as the limits of run and chain have a place for it.

What runs is counted over the rows that hold a place, never in a counter kept apart from them.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from adjudge.chains.concurrency import UNLIMITED, SlotAllocator, current_chain_limits
from adjudge.chains.dag_cache import DagCache
from adjudge.chains.node_jobs import node_job
from adjudge.chains.standing import LockedChainRun
from adjudge.domain.chain import Dag, Node
from adjudge.domain.ids import IdFactory
from adjudge.domain.states import ChainRunStatus
from adjudge.store.chains import concurrency as places
from adjudge.store.chains import statements as sql
from adjudge.store.chains.models import node_attempt
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Row
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Job, NewJob, Offer

_PAGE: Final = 200

Offers = Mapping[str, Sequence[Offer]]
"""By run: places that workers keep for what follows from the nodes they have just ended."""


@dataclass(frozen=True, slots=True)
class ReadyNode:
    """A node that may run."""

    run_id: str
    node_id: str
    node: Node
    job_id: str | None = None
    """Set where its row has been given the job already."""
    attempts_before: int = 0
    """Attempts made by earlier jobs of the node."""


@dataclass(frozen=True, slots=True)
class FreedSlots:
    """Where a place may be free again."""

    runs: Set[str]
    concurrency_pools: Set[str]
    """Chains, of which a place over all runs may be."""


class NodeScheduler:
    """Turns nodes that may run into jobs."""

    def __init__(self, dags: DagCache, jobs: JobCommands, new_id: IdFactory, node_timeout_ms: int) -> None:
        self._dags = dags
        self._jobs = jobs
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
        offers: Offers,
    ) -> int:
        """Start what may run; where there are limits, what fits. Return how many nodes that were.

        Nodes for which a worker has a place begin there at once, as many as there are such places.
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
        await self._enqueue(tx, runs, dags, now, offers)
        return len(now)

    async def _granted(self, tx: Tx, run_id: str, dag: Dag) -> list[ReadyNode]:
        """What the run's limits let through now, the most urgent first."""
        room = SlotAllocator()
        for row in await tx.fetch(sql.SLOTS_HELD, run_id=run_id):
            room.occupy(run_id, row["type"], row["parent_id"], row["n"])
        free = room.free_in_run(run_id, dag)
        if not free:
            return []
        wanted = await tx.fetch(sql.SLOTS_WANTED, run_id=run_id, limit=UNLIMITED if dag.has_per_node_limits else free)
        return [_start(run_id, node, row) for row in wanted if (node := room.allocate(run_id, dag, row)) is not None]

    async def _granted_over_runs(
        self, tx: Tx, pool: str, runs: MutableMapping[str, LockedChainRun], dags: MutableMapping[str, Dag]
    ) -> list[ReadyNode]:
        """What the limits of a chain let through now, in whatever run of it; the chain is locked by this."""
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
                    found.append(_start(run_id, node, row))
            if len(page) < limit:
                break
            last, limit = {name: page[-1][name] for name in last}, _PAGE
        return found

    async def _enqueue(
        self,
        tx: Tx,
        runs: Mapping[str, LockedChainRun],
        dags: Mapping[str, Dag],
        starts: Sequence[ReadyNode],
        offers: Offers,
    ) -> None:
        if not starts:
            return
        jobs = [self._job(runs[start.run_id], dags[start.run_id], start) for start in starts]
        given = sorted(
            (start.run_id, start.node_id, job.id, "held" if dags[start.run_id].has_concurrency_limits else None)
            for start, job in zip(starts, jobs, strict=True)
            if start.job_id is None
        )
        if given:
            await tx.execute(sql.ASSIGN_JOBS, given)
        matched = _matched(jobs, offers)
        await self._jobs.enqueue(tx, jobs, matched)
        begun = sorted(start_row(offer.taken) for offer in matched.values() if offer.taken is not None)
        if begun:
            await tx.execute(sql.START_NODES, begun)

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
    """What ``chain_nodes.start`` is given for a claimed job."""
    return job.chain_run_id or "", job.node_id or "", job.id, node_attempt(job), job.actor or "", job.reason or ""


def _matched(jobs: Sequence[NewJob], offers: Offers) -> dict[str, Offer]:
    """Which jobs go to which places."""
    spare = {run_id: list(found) for run_id, found in offers.items()}
    matched = {}
    for job in jobs:
        places = spare.get(job.chain_run_id or "")
        if places and places[-1].accepts(job):
            matched[job.id] = places.pop()
    return matched


def _start(run_id: str, node: Node, row: Row) -> ReadyNode:
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
