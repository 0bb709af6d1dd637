"""Advances and finishes runs when their nodes finish, and resumes nodes that wait for the run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

from adjudge.chains.advance import ChainRunAdvancer, CountedNode
from adjudge.chains.artifacts import inline_artifact
from adjudge.chains.concurrency import lock_chains
from adjudge.chains.executor import WaitProbe, WaitResult, never_missed
from adjudge.chains.follow_ups import FollowUps
from adjudge.chains.node_scheduler import ReadyNode
from adjudge.chains.run_state import (
    FinishedNode,
    LockedChainRun,
    LockedRuns,
    NodeClosing,
    NodeCountDelta,
    NodeKey,
    close_nodes,
    delta_of_finished,
    lock_runs,
    locked_run_from_row,
    update_counts,
)
from adjudge.domain.chain import ChainLimits, MaxRunsPolicy
from adjudge.domain.errors import ChainFull
from adjudge.domain.states import CHAIN_RUN, ChainRunStatus, NodeStatus
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.store.chains import concurrency as places
from adjudge.store.chains import statements as sql
from adjudge.store.chains import waits
from adjudge.store.chains.models import ChainRunFinished
from adjudge.store.chains.queries import CHANGED
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Row

RUN: Final = "run"
"""The kind of wait that the end of a run ends."""
WAIT_TIMER: Final = "timer"
"""The kind of wait that ends at a given time."""

_TURNS_AT_ONCE: Final = 100

OnRunFinished = Callable[[Tx, ChainRunFinished], Awaitable[None]]
"""Called when a run finishes, in the same transaction: chain triggers, events."""

_log = get_logger(__name__)


class ChainRunLifecycle:
    """Everything that happens to a run when one of its nodes finishes."""

    def __init__(
        self, advance: ChainRunAdvancer, probes: Mapping[str, WaitProbe], on_run_ended: Sequence[OnRunFinished]
    ) -> None:
        self.advance = advance
        self._probes = {RUN: _run_outcome, WAIT_TIMER: never_missed, **probes}
        self._on_run_ended = on_run_ended

    async def advance_runs(
        self,
        tx: Tx,
        runs: LockedRuns,
        ended: Sequence[FinishedNode],
        ready: Sequence[ReadyNode] = (),
        follow_ups: FollowUps | None = None,
        *,
        counted: Sequence[CountedNode] | None = None,
        counted_ended: Collection[NodeKey] = (),
        yielding: Collection[str] = (),
        admits: bool = True,
    ) -> None:
        """Advance runs, which are locked and counted; finish those without an open node.

        Runs that wait for a slot of a finished run start, unless the caller does that (``admits``).
        """
        also = await self.advance.advance(
            tx,
            runs,
            ended,
            ready,
            follow_ups=follow_ups or FollowUps(),
            counted=counted,
            counted_ended=counted_ended,
            yielding=yielding,
        )
        over = [*ended, *also]
        tx.on_commit(lambda: _measure(over))
        tx.notify(CHANGED)
        over_runs = await self._finish(tx, [run for run in runs.values() if run.nodes_open == 0])
        if admits:
            for chain_id in sorted(await self._chains_with_turns(tx, over_runs)):
                await self.admit_waiting_runs(tx, chain_id)

    async def _begin(self, tx: Tx, run: LockedChainRun) -> None:
        """Start a run whose nodes have waited for its slot."""
        decided, skipped = await self.advance.decide_runnable(tx, run)
        runs = await update_counts(tx, {run.id: NodeCountDelta(0, -len(skipped), 0)})
        await self.advance_runs(tx, runs, skipped, decided, admits=False)

    async def admit_waiting_runs(self, tx: Tx, chain_id: str) -> set[str]:
        """Start waiting runs of a chain up to its limit; return which ones."""
        admitted = set[str]()
        while True:
            most = (await self.advance.limits_of(tx, chain_id)).max_runs
            held = (await tx.fetch(places.COUNT_ADMITTED_RUNS, chain_id=chain_id))[0]["n"]
            free = _TURNS_AT_ONCE if most is None else min(most - held, _TURNS_AT_ONCE)
            rows = await tx.fetch(places.ADMIT_RUNS, chain_id=chain_id, limit=free) if free > 0 else []
            if not rows:
                return admitted
            for run in sorted((locked_run_from_row(row) for row in rows), key=lambda run: run.id):
                admitted.add(run.id)
                await self._begin(tx, run)

    async def admit_or_refuse(self, tx: Tx, run_id: str, chain_id: str, over_runs: ChainLimits) -> None:
        """Start or continue a run if it gets a slot; otherwise it waits, or is refused if the chain does not queue."""
        await self.admit_waiting_runs(tx, chain_id)
        (run,) = (await lock_runs(tx, [run_id])).values()
        if run.is_waiting_for_slot and over_runs.when_full is MaxRunsPolicy.REFUSE:
            raise ChainFull(
                f"Chain {chain_id!r} already has max_runs={over_runs.max_runs} active runs; retry later or stop one.",
                id=chain_id,
            )

    async def start_waiting(self, tx: Tx, chain_id: str) -> int:
        """Give free slots of a chain to waiting runs and nodes; return to how many."""
        return len(await self.admit_waiting_runs(tx, chain_id)) + await self.advance.start_waiting_nodes(tx, chain_id)

    async def _chains_with_turns(self, tx: Tx, ended: Sequence[LockedChainRun]) -> set[str]:
        dags = [(run.chain_id, await self.advance.dag_of(tx, run)) for run in ended]
        return {chain_id for chain_id, dag in dags if dag.chain_limits.max_runs is not None}

    async def on_nodes_finished(self, tx: Tx, ended: Sequence[FinishedNode]) -> None:
        """Advance the runs of nodes whose rows are finished."""
        if ended:
            runs = await update_counts(tx, delta_of_finished(ended))
            await self.advance_runs(tx, runs, ended)

    async def resume(
        self,
        tx: Tx,
        *,
        on: str,
        key: str,
        success: bool,
        artifact: Any = None,
        error: str | None = None,
        actor: str = "engine",
    ) -> int:
        """Finish the nodes that wait for an object, which this transaction has finished; return how many."""
        waiting = await waits.find_waiting_nodes(tx, on, key)
        if not waiting:
            return 0
        await lock_chains(tx, [wait.pool for wait in waiting])
        await lock_runs(tx, [wait.run_id for wait in waiting])
        awaited = WaitResult(success, artifact, error)
        nodes = [(wait.run_id, wait.node_id) for wait in waiting]
        over = await close_nodes(tx, [closing_for_wait(node, (on, key), awaited, actor) for node in nodes])
        await self.on_nodes_finished(tx, over)
        return len(over)

    async def probe_all(self, tx: Tx, things: Collection[tuple[str, str]]) -> dict[tuple[str, str], WaitResult]:
        """Which of the objects have finished, and how; they stay so until the transaction ends.

        Called before chains and runs are locked: a transaction that finishes an object locks it first, then the run
        that waits for it. Runs are locked newest first, as everywhere.
        """
        runs = sorted((thing for thing in things if thing[0] == RUN), reverse=True)
        others = sorted(thing for thing in things if thing[0] != RUN)
        found = {thing: await self.probe(tx, *thing) for thing in (*others, *runs)}
        return {thing: awaited for thing, awaited in found.items() if awaited is not None}

    async def finish_satisfied_waits(
        self,
        tx: Tx,
        waits: Mapping[tuple[str, str], tuple[str, str]],
        ended: Mapping[tuple[str, str], WaitResult],
    ) -> list[FinishedNode]:
        """Finish waiting nodes whose object has finished already; their runs are locked, the nodes not yet counted."""
        closings = [
            closing_for_wait(node, wait, ended[wait], "engine") for node, wait in sorted(waits.items()) if wait in ended
        ]
        return await close_nodes(tx, closings)

    async def probe(self, tx: Tx, on: str, key: str) -> WaitResult | None:
        """Whether an object has finished, and how; an unknown kind can never finish, and is reported immediately."""
        probe = self._probes.get(on)
        if probe is None:
            return WaitResult(success=False, error=f"Unknown wait kind {on!r}.")
        return await probe(tx, key)

    def unmissable(self) -> list[str]:
        """The kinds of waits whose end cannot be missed and need no check."""
        return sorted(on for on, probe in self._probes.items() if probe is never_missed)

    async def _finish(self, tx: Tx, runs: Sequence[LockedChainRun]) -> list[LockedChainRun]:
        over = [run for run in runs if run.status not in CHAIN_RUN.terminal]
        if not over:
            return []
        fresh = [(run.id,) for run in over if run.status is ChainRunStatus.PENDING]
        if fresh:
            await tx.execute(sql.START_RUNS, sorted(fresh))
        rows = await tx.fetch(sql.FINISH_RUNS, sorted(_end_row(run) for run in over))
        for row in rows:
            await self._run_ended(tx, row)
        return over

    async def _run_ended(self, tx: Tx, row: Row) -> None:
        status = ChainRunStatus(row["status"])
        end = ChainRunFinished(
            row["id"],
            row["chain_id"],
            status,
            row["started_by"],
            row["trace_id"],
            row["parent_run_id"],
            row["parent_node_id"],
        )
        tx.on_commit(lambda: _tell(end))
        for act in self._on_run_ended:
            await act(tx, end)
        found = _outcome_of(end.run_id, status)
        await self.resume(tx, on=RUN, key=end.run_id, success=found.success, artifact=found.artifact, error=found.error)


def closing_for_wait(
    node: tuple[str, str], wait: tuple[str, str], awaited: WaitResult, actor: str, reason: str | None = None
) -> NodeClosing:
    """The status of a node whose wait has ended."""
    return NodeClosing(
        *node,
        status=NodeStatus.SUCCESS if awaited.success else NodeStatus.FAILED,
        reason=reason or f"{wait[0]} ended",
        actor=actor,
        error=None if awaited.success else awaited.error or f"The {wait[0]} that it waited for failed.",
        artifact=inline_artifact(awaited.artifact),
        wait=wait,
    )


async def _run_outcome(tx: Tx, key: str) -> WaitResult | None:
    status = await waits.lock_run_status(tx, key)
    if status is None:
        return WaitResult(success=False, error=f"There is no run {key!r}.")
    return _outcome_of(key, status) if status in CHAIN_RUN.terminal else None


def _outcome_of(run_id: str, status: ChainRunStatus) -> WaitResult:
    success = status is ChainRunStatus.SUCCESS
    error = None if success else f"Run {run_id} ended as {status}."
    return WaitResult(success, {"run_id": run_id, "status": str(status)}, error)


def _end_row(run: LockedChainRun) -> tuple[str, str, str]:
    if run.status is ChainRunStatus.STOPPING:
        return run.id, str(ChainRunStatus.STOPPED), "its last node stopped"
    if run.nodes_failed:
        return run.id, str(ChainRunStatus.FAILED), f"{run.nodes_failed} of its nodes did not succeed"
    return run.id, str(ChainRunStatus.SUCCESS), "every node ended well"


def _measure(nodes: Sequence[FinishedNode]) -> None:
    for node in nodes:
        if node.duration_sec is not None:
            metrics.CHAIN_NODE_DURATION.labels(node.type, str(node.status)).observe(node.duration_sec)


def _tell(end: ChainRunFinished) -> None:
    metrics.CHAIN_RUNS.labels(str(end.status)).inc()
    _log.info("chain_run_finished", run_id=end.run_id, chain_id=end.chain_id, status=str(end.status))
