"""The job listener of nodes: writes nodes and runs when node jobs are claimed, released and finished."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from adjudge.chains.advance import counted_node_from_row
from adjudge.chains.artifacts import inline_artifact
from adjudge.chains.concurrency import lock_chains
from adjudge.chains.control import ChainRunControl
from adjudge.chains.dag_cache import DagCache
from adjudge.chains.executor import WaitResult
from adjudge.chains.follow_ups import FollowUpPlanner, FollowUps
from adjudge.chains.node_jobs import HAS_CROSS_RUN_LIMITS
from adjudge.chains.node_scheduler import ReadyNode, record_created, start_row
from adjudge.chains.run_lifecycle import ChainRunLifecycle
from adjudge.chains.run_state import (
    FinishedNode,
    LockedRuns,
    NodeClosing,
    NodeCountDelta,
    NodeKey,
    close_nodes,
    delta_of_finished,
    finished_node_from_row,
    locked_run_from_row,
    update_counts,
)
from adjudge.domain.chain import Dag, instance_id
from adjudge.domain.errors import NotFound
from adjudge.domain.ids import IdFactory
from adjudge.domain.states import JobStatus, NodeStatus
from adjudge.store.chains import finish
from adjudge.store.chains import statements as sql
from adjudge.store.chains.models import NodeExpanded, NodeSuspended
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.script import Inputs, Returned
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import (
    MILLISECOND,
    Capacity,
    FinishedAttempts,
    FinishedJob,
    Job,
    JobResult,
    NewJob,
)

_FINAL = (NodeStatus.SUCCESS, NodeStatus.FAILED, NodeStatus.STOPPED)


@dataclass(frozen=True, slots=True)
class _Expansion:
    run_id: str
    node_id: str
    items: tuple[Any, ...]


class NodeJobListener:
    """The listener of jobs of kind ``node``."""

    def __init__(
        self,
        progress: ChainRunLifecycle,
        control: ChainRunControl,
        *,
        planner: FollowUpPlanner,
        dags: DagCache,
        jobs: JobCommands,
        new_id: IdFactory,
    ) -> None:
        self._progress = progress
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
            awaited = await self._progress.probe_all(tx, set(waits.values()))
            await lock_chains(tx, shared)
        dags = await self._dags_of(tx, [job for _, job, _ in results])
        follow_ups = FollowUps(capacity, [job for result, job, _ in results if result.status is JobStatus.SUCCEEDED])
        plan = self._planner.plan(results, dags, follow_ups)
        lease_us = 0 if capacity is None else capacity.lease_ms * MILLISECOND
        rows = await tx.run(
            finish.FINISH_NODES,
            plan.inputs(None if capacity is None else capacity.worker),
            last=plan.is_last,
            lease_us=lease_us,
        )
        if rows["created_job"]:
            record_created(tx, plan.new_jobs, rows["created_job"], plan.follows, follow_ups)
        lists = {
            (job.chain_run_id or "", job.node_id or ""): result.typed_result.items
            for result, job, _ in results
            if isinstance(result.typed_result, NodeExpanded) and result.status is JobStatus.SUCCEEDED
        }
        await self._advance(tx, rows, waits, awaited, lists=lists, follow_ups=follow_ups)
        claimed = {job_id: tuple(jobs) for job_id, jobs in follow_ups.claimed.items()}
        return FinishedAttempts(rows["finished_job"], frozenset(row[0] for row in rows["finished_node"]), claimed)

    async def _dags_of(self, tx: Tx, jobs: Sequence[Job]) -> dict[str, Dag]:
        found = {}
        for job in jobs:
            run_id, payload = job.chain_run_id or "", job.payload
            with suppress(NotFound):  # a run that is gone has nobody to count for
                found[run_id] = await self._dags.of_run(tx, run_id, payload["chain_id"], int(payload["chain_version"]))
        return found

    async def _advance(
        self,
        tx: Tx,
        rows: Returned,
        waits: Mapping[NodeKey, tuple[str, str]],
        awaited: Mapping[tuple[str, str], WaitResult],
        *,
        lists: Mapping[NodeKey, tuple[Any, ...]],
        follow_ups: FollowUps,
    ) -> None:
        """Do what the script has left undecided; a script that was complete has left nothing."""
        runs = {row[0]: locked_run_from_row(row) for row in rows["counted_run"]}
        if not runs:
            return
        nodes = [_finished_node(row) for row in rows["finished_node"]]
        over = [node for node in nodes if node.status in _FINAL]
        still_open = {node.key for node in nodes if node.status is NodeStatus.RUNNING}
        waits = {key: wait for key, wait in waits.items() if key in still_open}
        expansions = [_Expansion(*key, items) for key, items in lists.items() if key in still_open]
        late = await self._stop_late_nodes(
            tx, runs, [*waits, *((expansion.run_id, expansion.node_id) for expansion in expansions)]
        )
        going = {key: wait for key, wait in waits.items() if runs[key[0]].can_start_nodes}
        late += await self._progress.finish_satisfied_waits(tx, going, awaited)
        starts, empty = await self._instances(
            tx, runs, [expansion for expansion in expansions if runs[expansion.run_id].can_start_nodes]
        )
        late += empty
        if late:
            runs.update(await update_counts(tx, delta_of_finished(late)))
        counted = [counted_node_from_row(row) for row in rows["counted_node"]]
        await self._progress.advance_runs(
            tx,
            runs,
            [*over, *late],
            starts,
            follow_ups,
            counted=[item for item in counted if item.job_id is None],
            counted_ended={node.key for node in over},
            yielding={key[0] for key in waits},
        )

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """A node runs from its claim on, and its run from its first node on."""
        runs = sorted({job.chain_run_id or "" for job in jobs if job.payload.get("is_root")}, reverse=True)
        inputs: Inputs = {"root_run": [(run_id,) for run_id in runs], "claim": sorted(start_row(job) for job in jobs)}
        await tx.run(sql.START_CLAIMED, inputs)

    async def replay(self, tx: Tx, jobs: Sequence[NewJob], *, reason: str) -> dict[str, str | None]:
        """The replay of a node's dead letter is another attempt of the node, within all limits."""
        return {
            job.id: await self._control.replay(tx, job, reason=reason)
            for job in sorted(jobs, key=lambda job: job.chain_run_id or "", reverse=True)
        }

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """A node that ran waits for another attempt; one that had not begun just goes on waiting."""
        rows = sorted(
            (job.chain_run_id or "", job.node_id or "", job.id, job.actor, job.reason)
            for job in jobs
            if job.prior_status is JobStatus.RUNNING
        )
        if rows:
            await tx.execute(sql.RELEASE_NODES, rows)

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """Finish nodes whose jobs were ended by somebody else than their worker, and advance their runs."""
        await lock_chains(
            tx, [item.job.payload["chain_id"] for item in ended if HAS_CROSS_RUN_LIMITS in item.job.payload]
        )
        unclaimed = sorted(
            start_row(item.job)
            for item in ended
            if item.job.status is JobStatus.FAILED and item.job.prior_status is not JobStatus.RUNNING
        )
        if unclaimed:  # dead-lettered before anybody claimed it: a node fails through running
            await tx.execute(sql.START_NODES, unclaimed)
        rows = await tx.fetch(sql.FINISH_NODES, sorted(_end_row(item.job) for item in ended))
        await self._progress.on_nodes_finished(tx, [finished_node_from_row(row) for row in rows])

    async def _stop_late_nodes(self, tx: Tx, runs: LockedRuns, nodes: Sequence[tuple[str, str]]) -> list[FinishedNode]:
        """Stop nodes that would go on, because their run stops."""
        return await close_nodes(
            tx,
            [
                NodeClosing(*node, status=NodeStatus.STOPPED, reason="run_stopping")
                for node in nodes
                if not runs[node[0]].can_start_nodes
            ],
        )

    async def _instances(
        self, tx: Tx, runs: LockedRuns, expansions: Sequence[_Expansion]
    ) -> tuple[list[ReadyNode], list[FinishedNode]]:
        """Make the instances of mapped nodes; a list without items is done at once."""
        starts, rows, made = [], [], dict[str, int]()
        for expansion in expansions:
            dag = await self._progress.advance.dag_of(tx, runs[expansion.run_id])
            node = dag.by_id[expansion.node_id]
            made[expansion.run_id] = made.get(expansion.run_id, 0) + len(expansion.items)
            for index, item in enumerate(expansion.items):
                node_id, job_id = (
                    instance_id(expansion.node_id, index),
                    None if dag.has_concurrency_limits else self._new_id(),
                )
                text = json.dumps(item)
                pool = runs[expansion.run_id].chain_id if dag.has_cross_run_limits else None
                rows.append(
                    (
                        expansion.run_id,
                        node_id,
                        node.type,
                        index,
                        node.priority,
                        0,
                        job_id,
                        expansion.node_id,
                        text,
                        pool,
                    )
                )
                starts.append(ReadyNode(expansion.run_id, node_id, node, job_id))
        if rows:
            await tx.execute(sql.INSERT_NODES, rows)
            runs.update(
                await update_counts(tx, {run_id: NodeCountDelta(number, number, 0) for run_id, number in made.items()})
            )
        empty = [
            NodeClosing(
                expansion.run_id, expansion.node_id, NodeStatus.SUCCESS, "nothing to map", artifact=inline_artifact([])
            )
            for expansion in expansions
            if not expansion.items
        ]
        return starts, await close_nodes(tx, empty)


def _end_row(job: Job) -> tuple[object, ...]:
    status = NodeStatus.FAILED if job.status is JobStatus.FAILED else NodeStatus.STOPPED
    return (job.chain_run_id or "", job.node_id or "", job.id, str(status), job.actor, job.reason, None, None, 0)


def _finished_node(row: Sequence[Any]) -> FinishedNode:
    _, run_id, node_id, type_name, status, parent_id, started_at, ended_at, pool = row
    seconds = None if started_at is None or ended_at is None else (ended_at - started_at) / 1_000_000
    return FinishedNode(run_id, node_id, type_name, NodeStatus(status), parent_id, seconds, pool)
