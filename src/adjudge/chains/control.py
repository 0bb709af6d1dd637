"""Manual actions on runs: stop, retry a node, complete a node. Each advances the run immediately and is logged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from adjudge.chains.advance import join_closing
from adjudge.chains.concurrency import lock_chain_of_run
from adjudge.chains.node_scheduler import ReadyNode
from adjudge.chains.run_lifecycle import ChainRunLifecycle
from adjudge.chains.run_state import (
    FinishedNode,
    LockedChainRun,
    NodeClosing,
    NodeCountDelta,
    close_nodes,
    delta_of_finished,
    lock_runs,
    set_counts,
    update_counts,
)
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
from adjudge.domain.states import CHAIN_RUN, NODE, ChainRunStatus, NodeStatus
from adjudge.store.chains import control as manual
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains import statements as sql
from adjudge.store.chains.models import NO_ARTIFACT, Artifact, ChainNodeRow
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Row
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import NewJob
from adjudge.store.ops import audit_log

_RETRIABLE: Final = (NodeStatus.FAILED, NodeStatus.STOPPED)
_COMPLETABLE: Final = (*_RETRIABLE, NodeStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class _ManualAction:
    """The actor and the reason."""

    actor: str
    reason: str

    def why(self, otherwise: str) -> dict[str, str]:
        """The parameters of statements."""
        return {"actor": self.actor, "reason": self.reason or otherwise}


@dataclass(slots=True)
class _RunSnapshot:
    """A whole run, read under its lock; only manual actions, which are rare, need it."""

    run: LockedChainRun
    dag: Dag
    status: dict[str, NodeStatus]
    attempt: Mapping[str, int]
    job: Mapping[str, str | None]
    instances: Mapping[str, list[str]]
    open_jobs: Sequence[Row]
    """The unfinished jobs, locked before the run was; one created since then counts as started."""
    takes_turn: bool
    """Whether the run waits for a slot, or would have to if it were reopened."""
    delta: dict[str, int] = field(default_factory=lambda: {"open": 0, "failed": 0})

    def began(self, node_id: str) -> bool:
        """Whether an attempt of the node was ever made."""
        return self.attempt[node_id] > 0

    def reopen(self, node_id: str, status: NodeStatus) -> None:
        """Record that a finished node is open again, for the counts of its run."""
        self.delta["open"] += 1
        if not is_instance(node_id) and is_failed(self.status[node_id]):
            self.delta["failed"] -= 1
        self.status[node_id] = status


class ChainRunControl:
    """The manual actions."""

    def __init__(self, progress: ChainRunLifecycle, jobs: JobCommands, new_id: IdFactory) -> None:
        self._progress = progress
        self._jobs = jobs
        self._new_id = new_id

    async def stop(self, tx: Tx, run_id: str, *, actor: str, reason: str = "") -> ChainRunStatus:
        """Ask a run to stop: pending nodes stop immediately, running ones are notified and later canceled.

        Returns the status: ``stopping``, or ``stopped`` if nothing was running. A second call returns it again; a
        finished run is refused (``WrongRunState``).
        """
        jobs = await tx.fetch(manual.LOCK_OPEN_JOBS, run_id=run_id)
        await lock_chain_of_run(tx, run_id)
        run = await self._locked(tx, run_id)
        if run.status in (ChainRunStatus.SUCCESS, ChainRunStatus.FAILED):
            raise WrongRunState(f"Run {run_id!r} is already {run.status}.", status=str(run.status))
        if run.status in (ChainRunStatus.STOPPING, ChainRunStatus.STOPPED):
            return run.status
        await tx.execute(manual.STOP_RUN, run_id=run_id, actor=actor, reason=reason or "stop_requested")
        # Jobs created before the run was locked are not locked (jobs come before runs). Housekeeping cancels them.
        waiting = [row["id"] for row in jobs if row["status"] != "running"]
        await self._jobs.cancel(tx, waiting, actor=actor, reason="run_stopped")
        rows = await tx.fetch(manual.STOP_IDLE, run_id=run_id, actor=actor, reason=reason or "run_stopped")
        stopped = [
            FinishedNode(run_id, found, row["type"], NodeStatus.STOPPED, _parent(found), pool=row["concurrency_pool"])
            for row in rows
            for found in (row["node_id"],)
        ]
        await audit_log.record(tx, actor=actor, action="stop", object_kind="chain_run", objects=[run_id], reason=reason)
        tx.notify(chain_queries.STOPPING)
        tx.notify(chain_queries.CHANGED)
        runs = await update_counts(tx, delta_of_finished(stopped) or {run_id: NodeCountDelta()})
        await self._progress.advance_runs(tx, runs, stopped)
        return (await chain_queries.find_run(tx, run_id)).status

    async def retry(self, tx: Tx, run_id: str, node_id: str, *, actor: str, reason: str = "") -> ChainNodeRow:
        """Run a failed or stopped node again; nodes skipped because of it become pending.

        For a mapped node, every instance that failed or was stopped runs again.
        """
        by, sheet = _ManualAction(actor, reason), await self._sheet(tx, run_id, node_id)
        self._refuse(sheet, node_id, _RETRIABLE, "retried")
        again = [item for item in sheet.instances.get(node_id, ()) if sheet.status[item] in _RETRIABLE]
        targets = again if sheet.instances.get(node_id) else [node_id]
        starts = await self._retry_all(tx, sheet, targets, by)
        await self._reopen_above(tx, sheet, node_id, by)
        await self._go_on(tx, sheet, by, starts, await self._join_at_once(tx, sheet, node_id))
        letters = {sheet.job[start.node_id]: start.job_id for start in starts}
        await _settle_letters(tx, letters, "replayed", actor, "its node was retried manually")
        await _record(tx, "retry", run_id, node_id, by)
        return await chain_queries.find_node(tx, run_id, node_id)

    async def complete(
        self, tx: Tx, run_id: str, node_id: str, *, actor: str, artifact: Artifact = NO_ARTIFACT, reason: str = ""
    ) -> ChainNodeRow:
        """Mark a failed, stopped or running node as success, with the given artifact."""
        by, sheet = _ManualAction(actor, reason), await self._sheet(tx, run_id, node_id)
        self._refuse(sheet, node_id, _COMPLETABLE, "completed")
        running = [item for item in sheet.instances.get(node_id, ()) if sheet.status[item] not in NODE.terminal]
        if running:
            raise WrongNodeState(
                f"Node {node_id!r} is mapped and {running[0]!r} has not ended; complete its instances."
            )
        source = sheet.status[node_id]
        jobs = [row["id"] for row in sheet.open_jobs if row["node_id"] == node_id]
        await self._jobs.cancel(tx, jobs, actor=actor, reason="node_completed")
        if source in _RETRIABLE:
            sheet.reopen(node_id, NodeStatus.RUNNING)
            await self._reopen_above(tx, sheet, node_id, by)
        closing = NodeClosing(
            run_id, node_id, NodeStatus.SUCCESS, reason or "completed_manually", source, actor, artifact=artifact
        )
        over = await close_nodes(tx, [closing])
        letters = dict.fromkeys(sheet.job[item] for item in (node_id, *sheet.instances.get(node_id, ())))
        await _settle_letters(tx, letters, "discarded", actor, "its node was completed manually")
        await self._go_on(tx, sheet, by, over=over)
        await _record(tx, "complete", run_id, node_id, by)
        return await chain_queries.find_node(tx, run_id, node_id)

    async def replay(self, tx: Tx, letter: NewJob, *, reason: str) -> str | None:
        """Make the replay of a node's dead letter another attempt of the node; return its job, if it has one yet."""
        run_id, node_id, by = (
            letter.chain_run_id or "",
            letter.node_id or "",
            _ManualAction(letter.actor or "engine", reason),
        )
        sheet = await self._sheet(tx, run_id, node_id)
        if sheet.status[node_id] is not NodeStatus.FAILED or sheet.job[node_id] != letter.origin_job_id:
            raise WrongNodeState(
                f"Node {node_id!r} of run {run_id!r} was retried or completed since; discard the dead letter.",
                node_id=node_id,
            )
        self._refuse(sheet, node_id, _RETRIABLE, "retried")
        starts = await self._retry_all(tx, sheet, [node_id], by)
        await self._reopen_above(tx, sheet, node_id, by)
        await self._go_on(tx, sheet, by, starts)
        return (await chain_queries.find_node(tx, run_id, node_id)).job_id

    async def _locked(self, tx: Tx, run_id: str) -> LockedChainRun:
        runs = await lock_runs(tx, [run_id])
        if run_id not in runs:
            raise NotFound("run", run_id)
        return runs[run_id]

    async def _sheet(self, tx: Tx, run_id: str, node_id: str) -> _RunSnapshot:
        open_jobs = await tx.fetch(manual.LOCK_OPEN_JOBS, run_id=run_id)
        await lock_chain_of_run(tx, run_id)
        run = await self._locked(tx, run_id)
        rows = await tx.fetch(sql.SELECT_STATES, run_id=run_id)
        instances: dict[str, list[str]] = {}
        for row in rows:
            if row["parent_id"] is not None:
                instances.setdefault(row["parent_id"], []).append(row["node_id"])
        dag = await self._progress.advance.dag_of(tx, run)
        sheet = _RunSnapshot(
            run,
            dag,
            {row["node_id"]: NodeStatus(row["status"]) for row in rows},
            {row["node_id"]: row["attempt"] for row in rows},
            {row["node_id"]: row["job_id"] for row in rows},
            instances,
            open_jobs,
            run.is_waiting_for_slot or (run.status in CHAIN_RUN.terminal and await self._takes_turns(tx, run_id, dag)),
        )
        if node_id not in sheet.status:
            raise NotFound("node", node_id)
        return sheet

    async def _takes_turns(self, tx: Tx, run_id: str, dag: Dag) -> bool:
        """Whether the chain limits its runs, and no other run waits for this one."""
        return (
            dag.chain_limits.max_runs is not None and (await chain_queries.find_run(tx, run_id)).parent_run_id is None
        )

    def _refuse(self, sheet: _RunSnapshot, node_id: str, allowed: Sequence[NodeStatus], done: str) -> None:
        status = sheet.status[node_id]
        if status not in allowed:
            raise WrongNodeState(
                f"Node {node_id!r} is {status}; only a node that is {' or '.join(allowed)} can be {done}.",
                node_id=node_id,
                status=str(status),
            )
        base = dag_node_id(node_id)
        if base != node_id and sheet.status[base] is NodeStatus.SUCCESS:
            raise WrongNodeState(
                f"Node {node_id!r} cannot change: its mapped node {base!r} was completed manually.", node_id=node_id
            )
        if sheet.run.status is ChainRunStatus.STOPPING and status is not NodeStatus.RUNNING:
            raise WrongRunState(f"Run {sheet.run.id!r} is stopping; wait until it has stopped.", status="stopping")

    async def _retry_all(
        self, tx: Tx, sheet: _RunSnapshot, targets: Sequence[str], by: _ManualAction
    ) -> list[ReadyNode]:
        run_id, later = sheet.run.id, sheet.dag.has_concurrency_limits or sheet.takes_turn
        job_ids = {node_id: None if later else self._new_id() for node_id in targets}
        for node_id in targets:
            sheet.reopen(node_id, NodeStatus.RETRYING)
        rows = sorted((run_id, node_id, job_id) for node_id, job_id in job_ids.items())
        await tx.fetch(manual.RETRY_NODES, rows, **by.why("retried_manually"))
        return [
            ReadyNode(run_id, node_id, sheet.dag.node_for(node_id), job_ids[node_id], sheet.attempt[node_id])
            for node_id in targets
        ]

    async def _reopen_above(self, tx: Tx, sheet: _RunSnapshot, node_id: str, by: _ManualAction) -> None:
        """Reopen what ended because of a node: the mapped node of an instance, then skipped nodes."""
        run_id, base = sheet.run.id, dag_node_id(node_id)
        why = by.why(f"{node_id} was retried or completed")
        if sheet.instances.get(base):
            if sheet.status[base] in _RETRIABLE:
                sheet.reopen(base, NodeStatus.RUNNING)
                await tx.fetch(manual.RETRY_NODES, [(run_id, base, sheet.job[base])], **why)
                await tx.execute(manual.RESUME_MAP, run_id=run_id, node_id=base)
            if sheet.status[base] is NodeStatus.RUNNING:
                c = count_statuses(sheet.status[item] for item in sheet.instances[base])
                row = (run_id, base, c.waiting, c.success, c.failed, c.skipped)
                await tx.execute(manual.SET_INSTANCE_COUNTS, [row])
        again = nodes_to_reopen(sheet.dag, sheet.status, sheet.began, base)
        for item in again:
            sheet.reopen(item, NodeStatus.PENDING)
        if again:
            await tx.execute(manual.REOPEN_NODES, sorted((run_id, item) for item in again), **why)
        touched = {*again, *(found for item in (base, *again) for found in sheet.dag.dependents[item])}
        waiting = [item for item in sorted(touched) if sheet.status[item] is NodeStatus.PENDING]
        fresh = [item for item in waiting if item in again or await self._take_back(tx, sheet, item)]
        await set_counts(tx, run_id, {item: dependency_counts(sheet.dag, item, sheet.status) for item in fresh})

    async def _join_at_once(self, tx: Tx, sheet: _RunSnapshot, node_id: str) -> list[FinishedNode]:
        """Finish a reopened mapped node that has no unfinished instance.

        A stop ends the mapped node immediately, and its instances may all succeed within the grace period.
        """
        instances = sheet.instances.get(node_id)
        if not instances or sheet.status[node_id] is not NodeStatus.RUNNING:
            return []
        counts = count_statuses(sheet.status[item] for item in instances)
        return [] if counts.waiting else await close_nodes(tx, [join_closing(sheet.run.id, node_id, counts.failed)])

    async def _take_back(self, tx: Tx, sheet: _RunSnapshot, node_id: str) -> bool:
        """Cancel the unclaimed job of a node that becomes pending; False if it was claimed."""
        if sheet.job[node_id] is None:
            return True
        jobs = [row for row in sheet.open_jobs if row["node_id"] == node_id]
        if not jobs or any(row["status"] == "running" for row in jobs):
            return False
        await self._jobs.cancel(tx, [row["id"] for row in jobs], actor="engine", reason="dependency_restarted")
        return True

    async def _go_on(
        self,
        tx: Tx,
        sheet: _RunSnapshot,
        by: _ManualAction,
        starts: Sequence[ReadyNode] = (),
        over: Sequence[FinishedNode] = (),
    ) -> None:
        run_id = sheet.run.id
        if sheet.run.status in CHAIN_RUN.terminal:
            slot = None if sheet.dag.chain_limits.max_runs is None else "wanted" if sheet.takes_turn else "held"
            await tx.execute(manual.REOPEN_RUN, run_id=run_id, slot=slot, **by.why("a node was opened again"))
        ended = delta_of_finished(over).get(run_id, NodeCountDelta())
        delta = NodeCountDelta(0, sheet.delta["open"] + ended.open, sheet.delta["failed"] + ended.failed)
        runs = await update_counts(tx, {run_id: delta})
        await self._progress.advance_runs(tx, runs, over, starts)
        if sheet.takes_turn:
            await self._progress.admit_or_refuse(tx, run_id, sheet.run.chain_id, sheet.dag.chain_limits)


def _parent(node_id: str) -> str | None:
    return dag_node_id(node_id) if is_instance(node_id) else None


async def _settle_letters(tx: Tx, jobs: Mapping[str | None, str | None], state: str, actor: str, note: str) -> None:
    rows = sorted((old, new) for old, new in jobs.items() if old is not None)
    if rows:
        await tx.execute(manual.RESOLVE_DEAD_LETTERS, rows, state=state, actor=actor, note=note)


async def _record(tx: Tx, action: str, run_id: str, node_id: str, by: _ManualAction) -> None:
    details = {run_id: {"node_id": node_id}}
    await audit_log.record(
        tx, actor=by.actor, action=action, object_kind="chain_run", objects=details, reason=by.reason
    )
