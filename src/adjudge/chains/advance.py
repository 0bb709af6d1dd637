"""Advances runs: decides what finished nodes mean for the others, in the transaction that finished them.

Nothing here reads a whole run. Finished nodes decrement counters in the rows of their dependents; the transaction that
decrements a counter to zero decides on the node. All changes of one kind are one statement for all nodes and runs, so a
fan-out of one hundred nodes needs few statements, and a node costs the same in a DAG of ten or ten thousand.

The row of a run is locked from the first count to the commit: two workers that finish nodes of one run wait for each
other, and the second sees the writes of the first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.chains.concurrency import current_chain_limits
from adjudge.chains.conditions import evaluate_conditions
from adjudge.chains.dag_cache import DagCache
from adjudge.chains.follow_ups import FollowUps
from adjudge.chains.node_scheduler import FreedSlots, NodeScheduler, ReadyNode
from adjudge.chains.run_state import (
    FinishedNode,
    LockedChainRun,
    LockedRuns,
    NodeClosing,
    NodeKey,
    close_nodes,
    delta_of_finished,
    set_counts,
    update_counts,
)
from adjudge.domain.chain import (
    ChainLimits,
    Dag,
    DependencyCounts,
    DependencyRule,
    Node,
    NodeDecision,
    cascade_skips,
    decide,
    is_failed,
)
from adjudge.domain.states import NodeStatus
from adjudge.store.chains import statements as sql
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Row

_LEVELS_BY_STATEMENT: Final = 8
"""The number of levels of skips that are written level by level; deeper ones are computed in memory."""


@dataclass(frozen=True, slots=True)
class CountedNode:
    """A pending node whose dependencies were counted; it has a job already if nothing was left to decide."""

    run_id: str
    node_id: str
    counts: DependencyCounts
    job_id: str | None = None


class ChainRunAdvancer:
    """Advances runs."""

    def __init__(self, dags: DagCache, starter: NodeScheduler, new_id: Callable[[], str]) -> None:
        self._dags = dags
        self._starter = starter
        self._new_id = new_id

    async def dag_of(self, tx: Tx, run: LockedChainRun) -> Dag:
        return await self._dags.of_run(tx, run.id, run.chain_id, run.chain_version)

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
        dags = {run_id: await self.dag_of(tx, run) for run_id, run in runs.items() if run.can_start_nodes}
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
            runs.update(await update_counts(tx, delta_of_finished(also)))
        limited = {
            node.run_id for node in (*ended, *also) if node.run_id in dags and dags[node.run_id].has_concurrency_limits
        }
        pools = await self._pools(tx, runs, {*yielding, *(node.run_id for node in ended if node.pool)})
        going = {run_id: runs[run_id] for run_id in dags}
        turns = [start for start in starts if not runs[start.run_id].is_waiting_for_slot]
        await self._starter.start_ready(tx, going, dags, turns, FreedSlots(limited, pools), follow_ups=follow_ups)
        return also

    async def _pools(self, tx: Tx, runs: LockedRuns, run_ids: Iterable[str]) -> set[str]:
        """Chains with a slot over all runs that may be free; a stopping run releases its own too."""
        found = set[str]()
        for run_id in run_ids:
            if (await self.dag_of(tx, runs[run_id])).chain_limits.limits_nodes:
                found.add(runs[run_id].chain_id)
        return found

    async def start_waiting_nodes(self, tx: Tx, chain_id: str) -> int:
        """Give free slots of a chain to waiting nodes; return to how many."""
        return await self._starter.start_ready(
            tx, {}, {}, (), FreedSlots(frozenset(), {chain_id}), follow_ups=FollowUps()
        )

    async def limits_of(self, tx: Tx, chain_id: str) -> ChainLimits:
        """The current limits of a chain over its runs."""
        return await current_chain_limits(tx, self._dags, chain_id)

    async def _join(self, tx: Tx, level: Sequence[FinishedNode]) -> list[FinishedNode]:
        """Count instances for their mapped nodes, and finish those whose last instance it was."""
        counts_by_node: dict[NodeKey, Counter[str]] = defaultdict(Counter)
        for node in level:
            if node.parent_id is not None:
                counts_by_node[node.run_id, node.parent_id][_outcome(node.status)] += 1
        if not counts_by_node:
            return []
        rows = await tx.fetch(
            sql.COUNT_INSTANCES, [_counts_row(key, counts) for key, counts in sorted(counts_by_node.items())]
        )
        over = [row for row in rows if row["waiting_on"] == 0]
        return await close_nodes(
            tx,
            [join_closing(row["run_id"], row["node_id"], row["deps_failed"]) for row in over],
        )

    async def _count_deps(
        self, tx: Tx, runs: LockedRuns, dags: Mapping[str, Dag], level: Sequence[FinishedNode]
    ) -> list[CountedNode]:
        counts_by_node: dict[NodeKey, Counter[str]] = defaultdict(Counter)
        for node in level:
            if node.parent_id is None:
                for dependent in dags[node.run_id].dependents[node.node_id]:
                    counts_by_node[node.run_id, dependent][_outcome(node.status)] += 1
        if not counts_by_node:
            return []
        job_ids = {
            key: None if runs[key[0]].is_waiting_for_slot else self._job_for(dags, key)
            for key in sorted(counts_by_node)
        }
        found = await tx.fetch(
            sql.COUNT_DEPS, [(*_counts_row(key, counts_by_node[key]), job_id) for key, job_id in job_ids.items()]
        )
        counted = [_counted(row, row["run_id"]) for row in found]
        # A node with a job from an earlier count was decided then.
        return [item for item in counted if item.job_id in (None, job_ids[item.run_id, item.node_id])]

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
                skips[item.run_id, item.node_id] = _skip_reason(node.when, item.counts)
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
        dag = await self.dag_of(tx, run)
        rows = await tx.fetch(sql.SELECT_STATES, run_id=run.id)
        fresh = [
            _counted(row, run.id)
            for row in rows
            if row["status"] == NodeStatus.PENDING and row["job_id"] is None and row["parent_id"] is None
        ]
        starts, skips = await self._decide(tx, {run.id: dag}, fresh)
        starts += [
            ReadyNode(run.id, row["node_id"], dag.node_for(row["node_id"]), attempts_before=row["attempt"] - 1)
            for row in rows
            if row["status"] == NodeStatus.RETRYING and row["job_id"] is None
        ]
        return starts, await self._skip(tx, {run.id: dag}, skips)

    async def _skip(self, tx: Tx, dags: Mapping[str, Dag], skips: Mapping[NodeKey, str]) -> list[FinishedNode]:
        if not skips:
            return []
        await tx.execute(sql.SKIP_NODES, [(*key, reason) for key, reason in sorted(skips.items())])
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
            rows = await tx.fetch(sql.SELECT_STATES, run_id=run_id)
            waiting = {row["node_id"]: _counted(row, run_id).counts for row in rows if row["status"] == "pending"}
            found = cascade_skips(dags[run_id], waiting, [node_id for run, node_id in skips if run == run_id])
            skipped |= {
                (run_id, node_id): _skip_reason(dags[run_id].by_id[node_id].when, counts)
                for node_id, counts in found.skipped.items()
            }
            await set_counts(tx, run_id, {**found.still_waiting, **found.runnable})
            decided += [CountedNode(run_id, node_id, counts) for node_id, counts in found.runnable.items()]
        return await self._skip(tx, dags, skipped), decided


def _outcome(status: NodeStatus) -> str:
    return "failed" if is_failed(status) else str(status)


def _counts_row(key: NodeKey, counts: Counter[str]) -> tuple[object, ...]:
    return (*key, counts.total(), counts["success"], counts["failed"], counts["skipped"])


def join_closing(run_id: str, node_id: str, failed: int) -> NodeClosing:
    """The status of a mapped node whose instances have all finished, ``failed`` of them without success."""
    if failed:
        error = f"{failed} of its instances did not succeed."
        return NodeClosing(run_id, node_id, NodeStatus.FAILED, reason="joined", error=error)
    return NodeClosing(run_id, node_id, NodeStatus.SUCCESS, reason="joined")


def counted_node_from_row(row: Sequence[Any]) -> CountedNode:
    run_id, node_id, waiting, success, failed, skipped, job_id = row
    return CountedNode(run_id, node_id, DependencyCounts(waiting, success, failed, skipped), job_id)


def _counted(row: Row, run_id: str) -> CountedNode:
    counts = DependencyCounts(row["waiting_on"], row["deps_success"], row["deps_failed"], row["deps_skipped"])
    return CountedNode(run_id, row["node_id"], counts, row["job_id"])


def _skip_reason(when: DependencyRule, counts: DependencyCounts) -> str:
    return f"when {when}: {counts.success} succeeded, {counts.failed} failed, {counts.skipped} skipped"
