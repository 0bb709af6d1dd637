"""Keeps nodes in step with their jobs: what a claim, a release and an end mean for the run."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.chains.artifacts import inline_artifact
from adjudge.chains.concurrency import lock_chains
from adjudge.chains.control import ChainRunControl
from adjudge.chains.node_jobs import HAS_CROSS_RUN_LIMITS
from adjudge.chains.node_scheduler import ReadyNode, start_row
from adjudge.chains.run_lifecycle import ChainRunLifecycle
from adjudge.chains.standing import (
    FinishedNode,
    LockedRuns,
    NodeClosing,
    NodeCountDelta,
    close_nodes,
    delta_of_finished,
    finished_node_from_row,
    update_counts,
)
from adjudge.chains.stepping import Step, Stepper
from adjudge.domain.chain import instance_id
from adjudge.domain.ids import IdFactory
from adjudge.domain.states import JobStatus, NodeStatus
from adjudge.store.chains import statements as sql
from adjudge.store.chains.models import Artifact, NodeDone, NodeExpanded, NodeStopped, NodeSuspended
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.script import Inputs
from adjudge.store.jobs.models import FinishedJob, FollowUpSlots, Job, JobResult, NewJob, Offer


@dataclass(frozen=True, slots=True)
class _Expansion:
    run_id: str
    node_id: str
    items: tuple[Any, ...]


class NodeJobListener:
    """The owner of jobs of kind ``node``."""

    def __init__(
        self, progress: ChainRunLifecycle, control: ChainRunControl, stepper: Stepper, new_id: IdFactory
    ) -> None:
        self._progress = progress
        self._control = control
        self._stepper = stepper
        self._new_id = new_id

    def plan(self, finishes: Sequence[JobResult], room: FollowUpSlots) -> Step | None:
        """The short way for nodes that ended well, where there is one."""
        return self._stepper.plan(finishes, room)

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
        """End the nodes, and advance their runs in the same transaction."""
        suspended = [item for item in ended if _is(item, NodeSuspended)]
        awaited = await self._progress.probe_all(
            tx,
            {
                (item.typed_result.wait_kind, item.typed_result.wait_key)
                for item in suspended
                if isinstance(item.typed_result, NodeSuspended)
            },
        )
        await lock_chains(
            tx, [item.job.payload["chain_id"] for item in ended if HAS_CROSS_RUN_LIMITS in item.job.payload]
        )
        unclaimed = sorted(
            start_row(item.job)
            for item in ended
            if item.job.status is JobStatus.FAILED and item.job.prior_status is not JobStatus.RUNNING
        )
        if unclaimed:  # buried before anybody claimed it: a node fails through running
            await tx.execute(sql.START_NODES, unclaimed)
        waits = await self._suspend(tx, suspended)
        fans = await self._fan_out(tx, [item for item in ended if _is(item, NodeExpanded)])
        rest = sorted(_end_row(item) for item in ended if not _is(item, NodeSuspended) and not _is(item, NodeExpanded))
        over = [finished_node_from_row(row) for row in await tx.fetch(sql.FINISH_NODES, rest)] if rest else []
        touched = {node[0]: NodeCountDelta() for node in waits} | {fan.run_id: NodeCountDelta() for fan in fans}
        runs = await update_counts(tx, touched | delta_of_finished(over))
        if not runs:
            return
        late = await self._too_late(tx, runs, [*waits, *((fan.run_id, fan.node_id) for fan in fans)])
        going = {node: wait for node, wait in waits.items() if runs[node[0]].can_start_nodes}
        late += await self._progress.finish_satisfied_waits(tx, going, awaited)
        starts, empty = await self._instances(tx, runs, [fan for fan in fans if runs[fan.run_id].can_start_nodes])
        late += empty
        if late:
            runs.update(await update_counts(tx, delta_of_finished(late)))
        yielding = {run_id for run_id, _ in waits}
        await self._progress.advance_runs(tx, runs, [*over, *late], starts, _offers(ended), yielding=yielding)

    async def _suspend(self, tx: Tx, items: Sequence[FinishedJob]) -> dict[tuple[str, str], tuple[str, str]]:
        if not items:
            return {}
        rows = await tx.fetch(sql.SUSPEND_NODES, sorted(_suspend_row(item.job, item.typed_result) for item in items))
        return {(row["run_id"], row["node_id"]): (row["wait_on"], row["wait_key"]) for row in rows}

    async def _fan_out(self, tx: Tx, items: Sequence[FinishedJob]) -> list[_Expansion]:
        if not items:
            return []
        lists = {
            (item.job.chain_run_id or "", item.job.node_id or ""): (item.job.id, item.typed_result.items)
            for item in items
            if isinstance(item.typed_result, NodeExpanded)
        }
        rows = [(*key, job_id, len(found)) for key, (job_id, found) in sorted(lists.items())]
        return [
            _Expansion(row["run_id"], row["node_id"], lists[row["run_id"], row["node_id"]][1])
            for row in await tx.fetch(sql.EXPAND_MAPS, rows)
        ]

    async def _too_late(self, tx: Tx, runs: LockedRuns, nodes: Sequence[tuple[str, str]]) -> list[FinishedNode]:
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
        self, tx: Tx, runs: LockedRuns, fans: Sequence[_Expansion]
    ) -> tuple[list[ReadyNode], list[FinishedNode]]:
        """Make the instances of mapped nodes; a list without items is done at once."""
        starts, rows, made = [], [], dict[str, int]()
        for fan in fans:
            dag = await self._progress.advance.dag_of(tx, runs[fan.run_id])
            node = dag.by_id[fan.node_id]
            made[fan.run_id] = made.get(fan.run_id, 0) + len(fan.items)
            for index, item in enumerate(fan.items):
                node_id, job_id = (
                    instance_id(fan.node_id, index),
                    None if dag.has_concurrency_limits else self._new_id(),
                )
                text = json.dumps(item)
                pool = runs[fan.run_id].chain_id if dag.has_cross_run_limits else None
                rows.append((fan.run_id, node_id, node.type, index, node.priority, 0, job_id, fan.node_id, text, pool))
                starts.append(ReadyNode(fan.run_id, node_id, node, job_id))
        if rows:
            await tx.execute(sql.INSERT_NODES, rows)
            runs.update(
                await update_counts(tx, {run_id: NodeCountDelta(number, number, 0) for run_id, number in made.items()})
            )
        empty = [
            NodeClosing(fan.run_id, fan.node_id, NodeStatus.SUCCESS, "nothing to map", artifact=inline_artifact([]))
            for fan in fans
            if not fan.items
        ]
        return starts, await close_nodes(tx, empty)


def _is(item: FinishedJob, kind: type) -> bool:
    return item.job.status is JobStatus.SUCCEEDED and isinstance(item.typed_result, kind)


def _offers(ended: Sequence[FinishedJob]) -> dict[str, list[Offer]]:
    """The places that are kept for what follows, by run."""
    found: dict[str, list[Offer]] = defaultdict(list)
    for item in ended:
        if item.offer is not None:
            found[item.job.chain_run_id or ""].append(item.offer)
    return found


def _end_row(item: FinishedJob) -> tuple[object, ...]:
    job, status, artifact = item.job, NodeStatus.STOPPED, Artifact()
    reason = job.reason
    if job.status is JobStatus.FAILED:
        status = NodeStatus.FAILED
    elif job.status is JobStatus.SUCCEEDED and isinstance(item.typed_result, NodeStopped):
        reason = item.typed_result.reason
    elif job.status is JobStatus.SUCCEEDED:
        status = NodeStatus.SUCCESS
        artifact = item.typed_result.artifact if isinstance(item.typed_result, NodeDone) else artifact
    return (
        job.chain_run_id or "",
        job.node_id or "",
        job.id,
        str(status),
        job.actor,
        reason,
        artifact.text,
        artifact.digest,
        artifact.size_bytes,
    )


def _suspend_row(job: Job, outcome: object) -> tuple[object, ...]:
    if not isinstance(outcome, NodeSuspended):
        raise TypeError("only a suspended node waits")
    return (
        job.chain_run_id or "",
        job.node_id or "",
        job.id,
        outcome.wait_kind,
        outcome.wait_key,
        None if outcome.until_ms is None else outcome.until_ms * 1_000,
        None if outcome.timeout_ms is None else outcome.timeout_ms * 1_000,
        outcome.artifact.text,
        outcome.artifact.size_bytes,
        f"waiting_for_{outcome.wait_kind}",
    )
