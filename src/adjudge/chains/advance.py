"""Advances runs: decides what finished nodes mean for the others, in the transaction that finished them.

Nothing here reads a whole run. Finished nodes decrement counters in the rows of their dependents; the transaction that
decrements a counter to zero decides on the node. All changes of one kind are one statement for all nodes and runs, so a
fan-out of one hundred nodes needs few statements, and a node costs the same in a DAG of ten or ten thousand.

The row of a run is locked from the first count to the commit: two workers that finish nodes of one run wait for each
other, and the second sees the writes of the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from adjudge.chains.conditions import evaluate_conditions
from adjudge.chains.dag_cache import DagCache
from adjudge.chains.follow_ups import FollowUps
from adjudge.chains.node_scheduler import FreedSlots, NodeScheduler, ReadyNode
from adjudge.domain.chain import Dag, DependencyCounts, DependencyRule, Node, NodeDecision, cascade_skips, decide
from adjudge.domain.states import NodeStatus
from adjudge.store.chains import commands
from adjudge.store.chains.models import (
    CountedNode,
    FinishedNode,
    LockedChainRun,
    LockedRuns,
    NodeClosing,
    NodeKey,
)
from adjudge.store.engine.driver import Tx

_LEVELS_BY_STATEMENT: Final = 8
"""The number of levels of skips that are written level by level; deeper ones are computed in memory."""


class ChainRunAdvancer:
    """Decides which nodes of runs are skipped, finished or started when others finish."""

    def __init__(self, dags: DagCache, scheduler: NodeScheduler, new_id: Callable[[], str]) -> None:
        self._dags = dags
        self._scheduler = scheduler
        self._new_id = new_id

    async def advance(
        self,
        tx: Tx,
        runs: LockedRuns,
        ended: Sequence[FinishedNode],
        ready: Sequence[ReadyNode],
        *,
        follow_ups: FollowUps,
        counted: Sequence[CountedNode] | None = None,
        counted_ended: Collection[NodeKey] = (),
        yielding: Collection[str] = (),
    ) -> list[FinishedNode]:
        """Count ``ended`` nodes for their dependents, then skip and start nodes; ``runs`` are locked and counted.

        Those of ``counted_ended`` are counted already, for the dependents in ``counted``. In ``yielding`` runs a node
        has started to wait, and may have released its slot. Returns the other nodes that finished: skipped ones, and
        mapped ones with their last instance.
        """
        dags = {
            run_id: await self._dags.load(tx, run.chain_id, run.chain_version)
            for run_id, run in runs.items()
            if run.can_start_nodes
        }
        starts, also = list(ready), list[FinishedNode]()
        level, depth = [node for node in ended if node.run_id in dags], 0
        undecided = list(counted or ())
        while level or undecided:
            depth += 1
            joined = await self._join(tx, level)
            fresh = [node for node in level if depth > 1 or node.key not in counted_ended]
            undecided += await self._count_deps(tx, runs, dags, fresh)
            found, skips = await self._decide(tx, dags, undecided)
            starts, undecided = [*starts, *found], []
            if depth >= _LEVELS_BY_STATEMENT and skips:
                far, decided = await self._skip_far(tx, dags, skips)
                also += far
                found, skips = await self._decide(tx, dags, decided)
                starts += found
            level = [*joined, *await self._skip(tx, dags, skips)]
            also += level
        if also:
            runs.update(await commands.count_finished(tx, also))
        limited = {
            node.run_id for node in (*ended, *also) if node.run_id in dags and dags[node.run_id].has_concurrency_limits
        }
        pools = await self._pools(tx, runs, {*yielding, *(node.run_id for node in ended if node.pool)})
        active = {run_id: runs[run_id] for run_id in dags}
        admitted = [start for start in starts if not runs[start.run_id].is_waiting_for_slot]
        await self._scheduler.start_ready(tx, active, dags, admitted, FreedSlots(limited, pools), follow_ups=follow_ups)
        return also

    async def _pools(self, tx: Tx, runs: LockedRuns, run_ids: Iterable[str]) -> set[str]:
        """Chains with a slot over all runs that may be free; a stopping run releases its own too."""
        found = set[str]()
        for run_id in run_ids:
            run = runs[run_id]
            if (await self._dags.load(tx, run.chain_id, run.chain_version)).chain_limits.limits_nodes:
                found.add(run.chain_id)
        return found

    async def start_waiting_nodes(self, tx: Tx, chain_id: str) -> int:
        """Give free slots of a chain to waiting nodes; return to how many."""
        freed = FreedSlots(frozenset(), {chain_id})
        return await self._scheduler.start_ready(tx, {}, {}, (), freed, follow_ups=FollowUps())

    async def _join(self, tx: Tx, level: Sequence[FinishedNode]) -> list[FinishedNode]:
        """Count instances for their mapped nodes, and finish those whose last instance it was."""
        ended: dict[NodeKey, list[NodeStatus]] = defaultdict(list)
        for node in level:
            if node.parent_id is not None:
                ended[node.run_id, node.parent_id].append(node.status)
        mapped = await commands.count_instances(tx, ended)
        closings = [join_closing(*node.key, node.counts.failed) for node in mapped if not node.counts.waiting]
        return await commands.close_nodes(tx, closings)

    async def _count_deps(
        self, tx: Tx, runs: LockedRuns, dags: Mapping[str, Dag], level: Sequence[FinishedNode]
    ) -> list[CountedNode]:
        """Count finished nodes for their dependents; return the dependents that are still to be decided."""
        ended: dict[NodeKey, list[NodeStatus]] = defaultdict(list)
        for node in level:
            if node.parent_id is None:
                for dependent in dags[node.run_id].dependents[node.node_id]:
                    ended[node.run_id, dependent].append(node.status)
        job_ids = {key: None if runs[key[0]].is_waiting_for_slot else self._job_for(dags, key) for key in sorted(ended)}
        counted = await commands.count_dependencies(tx, ended, job_ids)
        # A node with a job from an earlier count was decided then.
        return [item for item in counted if item.job_id in (None, job_ids[item.key])]

    def _job_for(self, dags: Mapping[str, Dag], key: NodeKey) -> str | None:
        """A job id for a node that starts as soon as its dependencies succeeded; saves a statement."""
        dag = dags[key[0]]
        return self._new_id() if dag.by_id[key[1]].needs_only_success and not dag.has_concurrency_limits else None

    async def _decide(
        self, tx: Tx, dags: Mapping[str, Dag], counted: Sequence[CountedNode]
    ) -> tuple[list[ReadyNode], dict[NodeKey, str]]:
        """Decide on nodes whose dependencies were counted: to start, or to skip with a reason."""
        starts, skips, conditional = list[ReadyNode](), dict[NodeKey, str](), list[tuple[str, Node]]()
        for item in counted:
            node = dags[item.run_id].by_id[item.node_id]
            if item.job_id is not None:
                starts.append(ReadyNode(item.run_id, item.node_id, node, job_id=item.job_id))
                continue
            decision = decide(node.when, item.counts)
            if decision is NodeDecision.SKIP:
                skips[item.key] = _skip_reason(node.when, item.counts)
            elif decision is NodeDecision.RUN and node.condition is not None and node.when is not DependencyRule.ALWAYS:
                conditional.append((item.run_id, node))
            elif decision is NodeDecision.RUN:
                starts.append(ReadyNode(item.run_id, item.node_id, node))
        for run_id, node, holds in await evaluate_conditions(tx, dags, conditional):
            if holds:
                starts.append(ReadyNode(run_id, node.id, node))
            else:
                skips[run_id, node.id] = f"if: {node.condition.text if node.condition else ''} is false"
        return starts, skips

    async def decide_runnable(self, tx: Tx, run: LockedChainRun) -> tuple[list[ReadyNode], list[FinishedNode]]:
        """Decide on nodes of a run in its current state: roots of a new run, pending or retried nodes later."""
        dag = await self._dags.load(tx, run.chain_id, run.chain_version)
        without_job = [node for node in await commands.list_states(tx, run.id) if node.job_id is None]
        pending = [
            CountedNode(run.id, node.node_id, node.counts)
            for node in without_job
            if node.status is NodeStatus.PENDING and node.parent_id is None
        ]
        starts, skips = await self._decide(tx, {run.id: dag}, pending)
        starts += [
            ReadyNode(run.id, node.node_id, dag.node_for(node.node_id), attempts_before=node.attempt - 1)
            for node in without_job
            if node.status is NodeStatus.RETRYING
        ]
        return starts, await self._skip(tx, {run.id: dag}, skips)

    async def _skip(self, tx: Tx, dags: Mapping[str, Dag], skips: Mapping[NodeKey, str]) -> list[FinishedNode]:
        await commands.skip_nodes(tx, skips)
        return [
            FinishedNode(run_id, node_id, dags[run_id].by_id[node_id].type, NodeStatus.SKIPPED)
            for run_id, node_id in skips
        ]

    async def _skip_far(
        self, tx: Tx, dags: Mapping[str, Dag], skips: Mapping[NodeKey, str]
    ) -> tuple[list[FinishedNode], list[CountedNode]]:
        """Compute a long cascade of skips from one read of each run; return it and the nodes left to decide."""
        skipped, decided = dict(skips), list[CountedNode]()
        for run_id in sorted({key[0] for key in skips}):
            nodes = await commands.list_states(tx, run_id)
            waiting = {node.node_id: node.counts for node in nodes if node.status is NodeStatus.PENDING}
            found = cascade_skips(dags[run_id], waiting, [node_id for run, node_id in skips if run == run_id])
            skipped |= {
                (run_id, node_id): _skip_reason(dags[run_id].by_id[node_id].when, counts)
                for node_id, counts in found.skipped.items()
            }
            await commands.set_counts(tx, run_id, {**found.still_waiting, **found.runnable})
            decided += [CountedNode(run_id, node_id, counts) for node_id, counts in found.runnable.items()]
        return await self._skip(tx, dags, skipped), decided


def join_closing(run_id: str, node_id: str, failed: int) -> NodeClosing:
    """The status of a mapped node whose instances have all finished, ``failed`` of them without success."""
    if failed:
        error = f"{failed} of its instances did not succeed."
        return NodeClosing(run_id, node_id, NodeStatus.FAILED, reason="joined", error=error)
    return NodeClosing(run_id, node_id, NodeStatus.SUCCESS, reason="joined")


def _skip_reason(when: DependencyRule, counts: DependencyCounts) -> str:
    return f"when {when}: {counts.success} succeeded, {counts.failed} failed, {counts.skipped} skipped"
