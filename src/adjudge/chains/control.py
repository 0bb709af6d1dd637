"""Manual actions on runs: stop, retry a node, complete a node. Each advances the run immediately and is logged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from adjudge.chains.advance import join_closing
from adjudge.chains.dag_cache import DagCache
from adjudge.chains.node_scheduler import ReadyNode
from adjudge.chains.run_lifecycle import ChainRunLifecycle
from adjudge.domain.chain import (
    Dag,
    count_statuses,
    dag_node_id,
    dependency_counts,
    is_failed,
    is_instance,
    nodes_to_reopen,
)
from adjudge.domain.errors import NotFound, WrongNodeState, WrongRunState
from adjudge.domain.ids import IdFactory
from adjudge.domain.states import CHAIN_RUN, NODE, ChainRunStatus, JobStatus, NodeStatus
from adjudge.store.chains import commands, control
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.concurrency import lock_chain_of_run
from adjudge.store.chains.control import OpenJob
from adjudge.store.chains.models import (
    NO_ARTIFACT,
    Artifact,
    ChainNodeRow,
    FinishedNode,
    LockedChainRun,
    NodeClosing,
    NodeCountDelta,
    SlotState,
)
from adjudge.store.engine.driver import Tx
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import NewJob
from adjudge.store.ops import audit_log

_RETRIABLE: Final = (NodeStatus.FAILED, NodeStatus.STOPPED)
_COMPLETABLE: Final = (*_RETRIABLE, NodeStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class _ManualAction:
    """Who acts, and why."""

    actor: str
    reason: str

    def logged(self, default_reason: str) -> dict[str, str]:
        """The actor and the reason that are written to the rows."""
        return {"actor": self.actor, "reason": self.reason or default_reason}


@dataclass(slots=True)
class _RunSnapshot:
    """A whole run, read under its lock; only manual actions need it. Changes are written to it and to the rows."""

    run: LockedChainRun
    dag: Dag
    status: dict[str, NodeStatus]
    attempt: Mapping[str, int]
    job: Mapping[str, str | None]
    instances: Mapping[str, list[str]]
    open_jobs: Sequence[OpenJob]
    """The unfinished jobs, locked before the run was; one created since then counts as started."""
    needs_slot: bool
    """Whether the run waits for a slot, or would have to if it were reopened."""
    delta: NodeCountDelta = field(default_factory=NodeCountDelta)
    """The reopened nodes, for the counts of the run."""

    def was_attempted(self, node_id: str) -> bool:
        return self.attempt[node_id] > 0

    def reopen(self, node_id: str, status: NodeStatus) -> None:
        """Record that a finished node is open again."""
        was_failed = not is_instance(node_id) and is_failed(self.status[node_id])
        self.delta = NodeCountDelta(0, self.delta.open + 1, self.delta.failed - was_failed)
        self.status[node_id] = status


class ChainRunControl:
    """The manual actions."""

    def __init__(self, lifecycle: ChainRunLifecycle, dags: DagCache, jobs: JobCommands, new_id: IdFactory) -> None:
        self._lifecycle = lifecycle
        self._dags = dags
        self._jobs = jobs
        self._new_id = new_id

    async def stop(self, tx: Tx, run_id: str, *, actor: str, reason: str = "") -> ChainRunStatus:
        """Ask a run to stop: pending nodes stop immediately, running ones are notified and later canceled.

        Returns the status: ``stopping``, or ``stopped`` if nothing was running. A second call returns it again; a
        finished run is refused (``WrongRunState``).
        """
        jobs = await control.lock_open_jobs(tx, run_id)
        await lock_chain_of_run(tx, run_id)
        run = await commands.lock_run(tx, run_id)
        if run.status in (ChainRunStatus.SUCCESS, ChainRunStatus.FAILED):
            raise WrongRunState(f"Run {run_id!r} is already {run.status}.", status=str(run.status))
        if run.status in (ChainRunStatus.STOPPING, ChainRunStatus.STOPPED):
            return run.status
        await control.stop_run(tx, run_id, actor=actor, reason=reason or "stop_requested")
        # Jobs created before the run was locked are not locked (jobs come before runs). Housekeeping cancels them.
        unclaimed = [job.id for job in jobs if job.status is not JobStatus.RUNNING]
        await self._jobs.cancel(tx, unclaimed, actor=actor, reason="run_stopped")
        stopped = await control.stop_idle_nodes(tx, run_id, actor=actor, reason=reason or "run_stopped")
        await audit_log.record(tx, actor=actor, action="stop", object_kind="chain_run", objects=[run_id], reason=reason)
        tx.notify(chain_queries.STOPPING)
        tx.notify(chain_queries.CHANGED)
        runs = await commands.update_counts(tx, commands.delta_of_finished(stopped) or {run_id: NodeCountDelta()})
        await self._lifecycle.advance_runs(tx, runs, stopped)
        return (await chain_queries.find_run(tx, run_id)).status

    async def retry(self, tx: Tx, run_id: str, node_id: str, *, actor: str, reason: str = "") -> ChainNodeRow:
        """Run a failed or stopped node again; nodes skipped because of it become pending.

        For a mapped node, every instance that failed or was stopped runs again.
        """
        by, snapshot = _ManualAction(actor, reason), await self._load(tx, run_id, node_id)
        self._refuse(snapshot, node_id, _RETRIABLE, "retried")
        again = [item for item in snapshot.instances.get(node_id, ()) if snapshot.status[item] in _RETRIABLE]
        targets = again if snapshot.instances.get(node_id) else [node_id]
        ready = await self._retry_all(tx, snapshot, targets, by)
        await self._reopen_above(tx, snapshot, node_id, by)
        await self._continue(tx, snapshot, by, ready, await self._join_at_once(tx, snapshot, node_id))
        jobs = {snapshot.job[node.node_id]: node.job_id for node in ready}
        note = "its node was retried manually"
        await control.resolve_dead_letters(tx, jobs, state="replayed", actor=actor, note=note)
        await _record(tx, "retry", run_id, node_id, by)
        return await chain_queries.find_node(tx, run_id, node_id)

    async def complete(
        self, tx: Tx, run_id: str, node_id: str, *, actor: str, artifact: Artifact = NO_ARTIFACT, reason: str = ""
    ) -> ChainNodeRow:
        """Mark a failed, stopped or running node as success, with the given artifact."""
        by, snapshot = _ManualAction(actor, reason), await self._load(tx, run_id, node_id)
        self._refuse(snapshot, node_id, _COMPLETABLE, "completed")
        running = [item for item in snapshot.instances.get(node_id, ()) if snapshot.status[item] not in NODE.terminal]
        if running:
            raise WrongNodeState(
                f"Node {node_id!r} is mapped and {running[0]!r} has not ended; complete its instances."
            )
        source = snapshot.status[node_id]
        open_jobs = [job.id for job in snapshot.open_jobs if job.node_id == node_id]
        await self._jobs.cancel(tx, open_jobs, actor=actor, reason="node_completed")
        if source in _RETRIABLE:
            snapshot.reopen(node_id, NodeStatus.RUNNING)
            await self._reopen_above(tx, snapshot, node_id, by)
        closing = NodeClosing(
            run_id, node_id, NodeStatus.SUCCESS, reason or "completed_manually", source, actor, artifact=artifact
        )
        finished = await commands.close_nodes(tx, [closing])
        jobs = dict.fromkeys(snapshot.job[item] for item in (node_id, *snapshot.instances.get(node_id, ())))
        note = "its node was completed manually"
        await control.resolve_dead_letters(tx, jobs, state="discarded", actor=actor, note=note)
        await self._continue(tx, snapshot, by, finished=finished)
        await _record(tx, "complete", run_id, node_id, by)
        return await chain_queries.find_node(tx, run_id, node_id)

    async def replay(self, tx: Tx, letter: NewJob, *, reason: str) -> str | None:
        """Make the replay of a node's dead letter another attempt of the node; return its job, if it has one yet."""
        run_id, node_id = letter.chain_run_id or "", letter.node_id or ""
        by, snapshot = _ManualAction(letter.actor or "engine", reason), await self._load(tx, run_id, node_id)
        if snapshot.status[node_id] is not NodeStatus.FAILED or snapshot.job[node_id] != letter.origin_job_id:
            raise WrongNodeState(
                f"Node {node_id!r} of run {run_id!r} was retried or completed since; discard the dead letter.",
                node_id=node_id,
            )
        self._refuse(snapshot, node_id, _RETRIABLE, "retried")
        ready = await self._retry_all(tx, snapshot, [node_id], by)
        await self._reopen_above(tx, snapshot, node_id, by)
        await self._continue(tx, snapshot, by, ready)
        return (await chain_queries.find_node(tx, run_id, node_id)).job_id

    async def _load(self, tx: Tx, run_id: str, node_id: str) -> _RunSnapshot:
        """Lock a run with its unfinished jobs and read all its nodes, of which ``node_id`` must be one."""
        open_jobs = await control.lock_open_jobs(tx, run_id)
        await lock_chain_of_run(tx, run_id)
        run = await commands.lock_run(tx, run_id)
        nodes = await commands.list_states(tx, run_id)
        if all(node.node_id != node_id for node in nodes):
            raise NotFound("node", node_id)
        instances: dict[str, list[str]] = {}
        for node in nodes:
            if node.parent_id is not None:
                instances.setdefault(node.parent_id, []).append(node.node_id)
        dag = await self._dags.load(tx, run.chain_id, run.chain_version)
        is_limited = run.status in CHAIN_RUN.terminal and await self._is_limited(tx, run_id, dag)
        return _RunSnapshot(
            run,
            dag,
            {node.node_id: node.status for node in nodes},
            {node.node_id: node.attempt for node in nodes},
            {node.node_id: node.job_id for node in nodes},
            instances,
            open_jobs,
            run.is_waiting_for_slot or is_limited,
        )

    async def _is_limited(self, tx: Tx, run_id: str, dag: Dag) -> bool:
        """Whether the chain limits its runs; a run that another run waits for is not limited."""
        if dag.chain_limits.max_runs is None:
            return False
        return (await chain_queries.find_run(tx, run_id)).parent_run_id is None

    def _refuse(self, snapshot: _RunSnapshot, node_id: str, allowed: Sequence[NodeStatus], done: str) -> None:
        status = snapshot.status[node_id]
        if status not in allowed:
            raise WrongNodeState(
                f"Node {node_id!r} is {status}; only a node that is {' or '.join(allowed)} can be {done}.",
                node_id=node_id,
                status=str(status),
            )
        base = dag_node_id(node_id)
        if base != node_id and snapshot.status[base] is NodeStatus.SUCCESS:
            raise WrongNodeState(
                f"Node {node_id!r} cannot change: its mapped node {base!r} was completed manually.", node_id=node_id
            )
        if snapshot.run.status is ChainRunStatus.STOPPING and status is not NodeStatus.RUNNING:
            raise WrongRunState(f"Run {snapshot.run.id!r} is stopping; wait until it has stopped.", status="stopping")

    async def _retry_all(
        self, tx: Tx, snapshot: _RunSnapshot, targets: Sequence[str], by: _ManualAction
    ) -> list[ReadyNode]:
        """Set nodes to retrying; they get their jobs now, unless they have to wait for a slot."""
        waits = snapshot.dag.has_concurrency_limits or snapshot.needs_slot
        job_ids = {node_id: None if waits else self._new_id() for node_id in targets}
        for node_id in targets:
            snapshot.reopen(node_id, NodeStatus.RETRYING)
        await control.retry_nodes(tx, snapshot.run.id, job_ids, **by.logged("retried_manually"))
        return [
            ReadyNode(
                snapshot.run.id, node_id, snapshot.dag.node_for(node_id), job_ids[node_id], snapshot.attempt[node_id]
            )
            for node_id in targets
        ]

    async def _reopen_above(self, tx: Tx, snapshot: _RunSnapshot, node_id: str, by: _ManualAction) -> None:
        """Reopen what ended because of a node: the mapped node of an instance, then skipped nodes."""
        run_id, base = snapshot.run.id, dag_node_id(node_id)
        logged = by.logged(f"{node_id} was retried or completed")
        if snapshot.instances.get(base):
            if snapshot.status[base] in _RETRIABLE:
                snapshot.reopen(base, NodeStatus.RUNNING)
                await control.resume_map(tx, run_id, base, snapshot.job[base], **logged)
            if snapshot.status[base] is NodeStatus.RUNNING:
                counts = count_statuses(snapshot.status[item] for item in snapshot.instances[base])
                await control.set_instance_counts(tx, run_id, base, counts)
        again = nodes_to_reopen(snapshot.dag, snapshot.status, snapshot.was_attempted, base)
        for item in again:
            snapshot.reopen(item, NodeStatus.PENDING)
        await control.reopen_nodes(tx, run_id, again, **logged)
        touched = {*again, *(found for item in (base, *again) for found in snapshot.dag.dependents[item])}
        pending = [item for item in sorted(touched) if snapshot.status[item] is NodeStatus.PENDING]
        unclaimed = [item for item in pending if item in again or await self._cancel_unclaimed(tx, snapshot, item)]
        counts_by_node = {item: dependency_counts(snapshot.dag, item, snapshot.status) for item in unclaimed}
        await commands.set_counts(tx, run_id, counts_by_node)

    async def _join_at_once(self, tx: Tx, snapshot: _RunSnapshot, node_id: str) -> list[FinishedNode]:
        """Finish a reopened mapped node that has no unfinished instance.

        A stop ends the mapped node immediately, and its instances may all succeed within the grace period.
        """
        instances = snapshot.instances.get(node_id)
        if not instances or snapshot.status[node_id] is not NodeStatus.RUNNING:
            return []
        counts = count_statuses(snapshot.status[item] for item in instances)
        closings = [] if counts.waiting else [join_closing(snapshot.run.id, node_id, counts.failed)]
        return await commands.close_nodes(tx, closings)

    async def _cancel_unclaimed(self, tx: Tx, snapshot: _RunSnapshot, node_id: str) -> bool:
        """Cancel the job of a node that becomes pending; False if the job was claimed."""
        if snapshot.job[node_id] is None:
            return True
        jobs = [job for job in snapshot.open_jobs if job.node_id == node_id]
        if not jobs or any(job.status is JobStatus.RUNNING for job in jobs):
            return False
        await self._jobs.cancel(tx, [job.id for job in jobs], actor="engine", reason="dependency_restarted")
        return True

    async def _continue(
        self,
        tx: Tx,
        snapshot: _RunSnapshot,
        by: _ManualAction,
        ready: Sequence[ReadyNode] = (),
        finished: Sequence[FinishedNode] = (),
    ) -> None:
        """Reopen the run if it is finished, and advance it."""
        run_id, limits = snapshot.run.id, snapshot.dag.chain_limits
        if snapshot.run.status in CHAIN_RUN.terminal:
            slot: SlotState | None = None if limits.max_runs is None else "wanted" if snapshot.needs_slot else "held"
            await control.reopen_run(tx, run_id, slot=slot, **by.logged("a node was reopened"))
        ended = commands.delta_of_finished(finished).get(run_id, NodeCountDelta())
        delta = NodeCountDelta(0, snapshot.delta.open + ended.open, snapshot.delta.failed + ended.failed)
        runs = await commands.update_counts(tx, {run_id: delta})
        await self._lifecycle.advance_runs(tx, runs, finished, ready)
        if snapshot.needs_slot:
            await self._lifecycle.admit_or_refuse(tx, run_id, snapshot.run.chain_id, limits)


async def _record(tx: Tx, action: str, run_id: str, node_id: str, by: _ManualAction) -> None:
    details = {run_id: {"node_id": node_id}}
    await audit_log.record(
        tx, actor=by.actor, action=action, object_kind="chain_run", objects=details, reason=by.reason
    )
