"""The job listener of nodes: writes nodes and runs when node jobs are claimed, released and finished."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.chains.artifacts import inline_artifact
from adjudge.chains.control import ChainRunControl
from adjudge.chains.dag_cache import DagCache
from adjudge.chains.executor import WaitResult
from adjudge.chains.follow_ups import HAS_CROSS_RUN_LIMITS, FollowUpPlanner, FollowUps, record_finished
from adjudge.chains.node_scheduler import ReadyNode
from adjudge.chains.run_lifecycle import ChainRunLifecycle
from adjudge.domain.chain import instance_id
from adjudge.domain.ids import IdFactory
from adjudge.domain.states import JobStatus, NodeStatus
from adjudge.store.chains import commands, concurrency
from adjudge.store.chains.finish import FinishedNodes, finish_nodes
from adjudge.store.chains.models import (
    FinishedNode,
    LockedRuns,
    NewNode,
    NodeClosing,
    NodeCountDelta,
    NodeExpanded,
    NodeKey,
    NodeSuspended,
)
from adjudge.store.engine.driver import Tx
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import (
    Capacity,
    FinishedAttempts,
    FinishedJob,
    Job,
    JobResult,
    NewJob,
)

_FINAL = (NodeStatus.SUCCESS, NodeStatus.FAILED, NodeStatus.STOPPED)


class NodeJobListener:
    """The listener of jobs of kind ``node``."""

    def __init__(
        self,
        lifecycle: ChainRunLifecycle,
        control: ChainRunControl,
        *,
        planner: FollowUpPlanner,
        dags: DagCache,
        jobs: JobCommands,
        new_id: IdFactory,
    ) -> None:
        self._lifecycle = lifecycle
        self._control = control
        self._planner = planner
        self._dags = dags
        self._jobs = jobs
        self._new_id = new_id

    async def finish_attempts(
        self, tx: Tx, results: Sequence[tuple[JobResult, Job, str | None]], capacity: Capacity | None
    ) -> FinishedAttempts:
        """End attempts of nodes, advance their runs, and claim follow-up jobs: by one script where it decides all."""
        waits = {
            (job.chain_run_id or "", job.node_id or ""): (result.typed_result.wait_kind, result.typed_result.wait_key)
            for result, job, _ in results
            if isinstance(result.typed_result, NodeSuspended) and result.status is JobStatus.SUCCEEDED
        }
        shared = [job.payload["chain_id"] for _, job, _ in results if HAS_CROSS_RUN_LIMITS in job.payload]
        awaited: Mapping[tuple[str, str], WaitResult] = {}
        if waits or shared:  # these lock rows that stand between the jobs and the runs in the lock order
            await self._jobs.lock(tx, [job.id for _, job, _ in results])
            awaited = await self._lifecycle.probe_all(tx, set(waits.values()))
            await concurrency.lock_chains(tx, shared)
        dags = {
            job.chain_run_id or "": await self._dags.load(
                tx, job.payload["chain_id"], int(job.payload["chain_version"])
            )
            for _, job, _ in results
        }
        follow_ups = FollowUps(capacity, [job for result, job, _ in results if result.status is JobStatus.SUCCEEDED])
        plan = self._planner.plan(results, dags, follow_ups)
        inputs = plan.inputs(None if capacity is None else capacity.worker)
        lease_ms = 0 if capacity is None else capacity.lease_ms
        finished = await finish_nodes(tx, inputs, lease_ms=lease_ms, is_last=plan.is_last)
        if finished.created:
            follow_ups.record_created(tx, plan.new_jobs, finished.created, plan.follows)
        if plan.is_last and finished.is_complete:  # the rows have decided everything
            record_finished(tx, list(finished.nodes.values()))
        else:
            expansions = {
                (job.chain_run_id or "", job.node_id or ""): result.typed_result.items
                for result, job, _ in results
                if isinstance(result.typed_result, NodeExpanded) and result.status is JobStatus.SUCCEEDED
            }
            await self._advance(tx, finished, waits, awaited, expansions=expansions, follow_ups=follow_ups)
        claimed = {job_id: tuple(jobs) for job_id, jobs in follow_ups.claimed.items()}
        return FinishedAttempts(finished.jobs, frozenset(finished.nodes), claimed)

    async def _advance(
        self,
        tx: Tx,
        finished: FinishedNodes,
        waits: Mapping[NodeKey, tuple[str, str]],
        awaited: Mapping[tuple[str, str], WaitResult],
        *,
        expansions: Mapping[NodeKey, tuple[Any, ...]],
        follow_ups: FollowUps,
    ) -> None:
        """Do what the script has left undecided."""
        runs = finished.runs
        if not runs:
            return
        ended = [node for node in finished.nodes.values() if node.status in _FINAL]
        still_open = {node.key for node in finished.nodes.values() if node.status is NodeStatus.RUNNING}
        waits = {key: wait for key, wait in waits.items() if key in still_open}
        expansions = {key: items for key, items in expansions.items() if key in still_open}
        late = await self._stop_late_nodes(tx, runs, [*waits, *expansions])
        active_waits = {key: wait for key, wait in waits.items() if runs[key[0]].can_start_nodes}
        late += await self._lifecycle.finish_satisfied_waits(tx, active_waits, awaited)
        active = {key: items for key, items in expansions.items() if runs[key[0]].can_start_nodes}
        ready = await self._insert_instances(tx, runs, active)
        late += await self._finish_empty_maps(tx, active)
        if late:
            runs.update(await commands.count_finished(tx, late))
        await self._lifecycle.advance_runs(
            tx,
            runs,
            [*ended, *late],
            ready,
            follow_ups,
            counted=[item for item in finished.dependents if item.job_id is None],
            counted_ended={node.key for node in ended},
            yielding={key[0] for key in waits},
        )

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """Set the nodes of claimed jobs to running, and runs whose root node starts."""
        await commands.start_claimed(tx, jobs)

    async def replay(self, tx: Tx, jobs: Sequence[NewJob], *, reason: str) -> dict[str, str | None]:
        """The replay of a node's dead letter is another attempt of the node, within all limits."""
        return {
            job.id: await self._control.replay(tx, job, reason=reason)
            for job in sorted(jobs, key=lambda job: job.chain_run_id or "", reverse=True)
        }

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """Set running nodes to retrying; a node that was not started stays pending."""
        await commands.release_nodes(tx, jobs)

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """Finish nodes whose jobs failed or were canceled without a result of their worker, and advance their runs."""
        jobs = [item.job for item in ended]
        await concurrency.lock_chains(
            tx, [job.payload["chain_id"] for job in jobs if HAS_CROSS_RUN_LIMITS in job.payload]
        )
        await self._lifecycle.on_nodes_finished(tx, await commands.finish_with_jobs(tx, jobs))

    async def _stop_late_nodes(self, tx: Tx, runs: LockedRuns, nodes: Sequence[NodeKey]) -> list[FinishedNode]:
        """Stop nodes that would wait or expand in a stopping run."""
        late = [key for key in nodes if not runs[key[0]].can_start_nodes]
        return await commands.close_nodes(
            tx, [NodeClosing(*key, status=NodeStatus.STOPPED, reason="run_stopping") for key in late]
        )

    async def _insert_instances(
        self, tx: Tx, runs: LockedRuns, expansions: Mapping[NodeKey, tuple[Any, ...]]
    ) -> list[ReadyNode]:
        """Insert the instances of mapped nodes; return them."""
        ready, new, number = list[ReadyNode](), list[NewNode](), Counter[str]()
        for (run_id, parent_id), items in expansions.items():
            run = runs[run_id]
            dag = await self._dags.load(tx, run.chain_id, run.chain_version)
            node, pool = dag.by_id[parent_id], run.chain_id if dag.has_cross_run_limits else None
            number[run_id] += len(items)
            for index, item in enumerate(items):
                node_id = instance_id(parent_id, index)
                job_id = None if dag.has_concurrency_limits else self._new_id()
                new.append(
                    NewNode(
                        run_id,
                        node_id,
                        node.type,
                        index,
                        node.priority,
                        job_id=job_id,
                        parent_id=parent_id,
                        item=json.dumps(item),
                        pool=pool,
                    )
                )
                ready.append(ReadyNode(run_id, node_id, node, job_id))
        await commands.insert_nodes(tx, new)
        if new:
            added = {run_id: NodeCountDelta(total=n, open=n) for run_id, n in number.items()}
            runs.update(await commands.update_counts(tx, added))
        return ready

    async def _finish_empty_maps(self, tx: Tx, expansions: Mapping[NodeKey, tuple[Any, ...]]) -> list[FinishedNode]:
        """Finish mapped nodes whose list has no items."""
        return await commands.close_nodes(
            tx,
            [
                NodeClosing(*key, NodeStatus.SUCCESS, "nothing to map", artifact=inline_artifact([]))
                for key, items in expansions.items()
                if not items
            ],
        )
