"""Advances and finishes runs when their nodes finish, and resumes nodes that wait for the run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

from adjudge.chains.advance import ChainRunAdvancer
from adjudge.chains.artifacts import inline_artifact
from adjudge.chains.dag_cache import DagCache
from adjudge.chains.executor import WaitProbe, WaitResult, never_missed
from adjudge.chains.follow_ups import FollowUps, record_finished
from adjudge.chains.node_scheduler import ReadyNode
from adjudge.domain.chain import ChainLimits, MaxRunsPolicy
from adjudge.domain.errors import ChainFull
from adjudge.domain.states import CHAIN_RUN, ChainRunStatus, NodeStatus
from adjudge.observe import metrics, tracing
from adjudge.observe.logs import get_logger
from adjudge.store.chains import commands, concurrency, waits
from adjudge.store.chains.models import (
    ChainRunFinished,
    CountedNode,
    FinishedNode,
    LockedChainRun,
    LockedRuns,
    NodeClosing,
    NodeCountDelta,
    NodeKey,
)
from adjudge.store.chains.spans import record_chain_run
from adjudge.store.chains.waits import NodeWait
from adjudge.store.engine.driver import Tx

RUN: Final = "run"
"""The kind of wait that the end of a run ends."""
WAIT_TIMER: Final = "timer"
"""The kind of wait that ends at a given time."""

_ADMIT_BATCH: Final = 100

OnRunFinished = Callable[[Tx, ChainRunFinished], Awaitable[None]]
"""Called when a run finishes, in the same transaction: chain triggers, events."""

_log = get_logger(__name__)


class ChainRunLifecycle:
    """Everything that happens to a run when one of its nodes finishes."""

    def __init__(
        self,
        advancer: ChainRunAdvancer,
        dags: DagCache,
        probes: Mapping[str, WaitProbe],
        on_run_ended: Sequence[OnRunFinished],
    ) -> None:
        self._advancer = advancer
        self._dags = dags
        self._probes = {RUN: _probe_run, WAIT_TIMER: never_missed, **probes}
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
        also = await self._advancer.advance(
            tx,
            runs,
            ended,
            ready,
            follow_ups=follow_ups or FollowUps(),
            counted=counted,
            counted_ended=counted_ended,
            yielding=yielding,
        )
        record_finished(tx, [*ended, *also])
        finished = await self._finish(tx, [run for run in runs.values() if run.nodes_open == 0])
        if admits:
            for chain_id in sorted(await self._chains_with_run_limits(tx, finished)):
                await self.admit_waiting_runs(tx, chain_id)

    async def start_runnable(
        self, tx: Tx, run: LockedChainRun, ready: Sequence[ReadyNode] = (), *, admits: bool = True
    ) -> None:
        """Decide on the pending and retried nodes of a run in its current state, and start it with ``ready`` ones."""
        decided, skipped = await self._advancer.decide_runnable(tx, run)
        runs = await commands.update_counts(tx, {run.id: NodeCountDelta(0, -len(skipped), 0)})
        await self.advance_runs(tx, runs, skipped, [*ready, *decided], admits=admits)

    async def admit_waiting_runs(self, tx: Tx, chain_id: str) -> set[str]:
        """Start waiting runs of a chain up to its limit; return which ones."""
        admitted = set[str]()
        while True:
            max_runs = (await self._dags.lock_limits(tx, chain_id)).max_runs
            runs = await concurrency.admit_runs(tx, chain_id, max_runs=max_runs, limit=_ADMIT_BATCH)
            if not runs:
                return admitted
            for run in runs:
                admitted.add(run.id)
                await self.start_runnable(tx, run, admits=False)

    async def admit_or_refuse(self, tx: Tx, run_id: str, chain_id: str, over_runs: ChainLimits) -> None:
        """Start or continue a run if it gets a slot; otherwise it waits, or is refused if the chain does not queue."""
        await self.admit_waiting_runs(tx, chain_id)
        run = await commands.lock_run(tx, run_id)
        if run.is_waiting_for_slot and over_runs.when_full is MaxRunsPolicy.REFUSE:
            raise ChainFull(
                f"Chain {chain_id!r} already has max_runs={over_runs.max_runs} active runs; retry later or stop one.",
                id=chain_id,
            )

    async def start_waiting(self, tx: Tx, chain_id: str) -> int:
        """Give free slots of a chain to waiting runs and nodes; return to how many."""
        return len(await self.admit_waiting_runs(tx, chain_id)) + await self._advancer.start_waiting_nodes(tx, chain_id)

    async def _chains_with_run_limits(self, tx: Tx, runs: Sequence[LockedChainRun]) -> set[str]:
        dags = [(run.chain_id, await self._dags.load(tx, run.chain_id, run.chain_version)) for run in runs]
        return {chain_id for chain_id, dag in dags if dag.chain_limits.max_runs is not None}

    async def on_nodes_finished(self, tx: Tx, ended: Sequence[FinishedNode]) -> None:
        """Advance the runs of nodes whose rows are finished."""
        if ended:
            await self.advance_runs(tx, await commands.count_finished(tx, ended), ended)

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
        return await self.finish_waits(tx, waiting, WaitResult(success, artifact, error), actor)

    async def finish_waits(self, tx: Tx, waiting: Sequence[NodeWait], result: WaitResult, actor: str) -> int:
        """Finish waiting nodes with the result of their wait; return how many still waited."""
        await concurrency.lock_chains(tx, [wait.pool for wait in waiting])
        await commands.lock_runs(tx, [wait.run_id for wait in waiting])
        closings = [_closing((wait.run_id, wait.node_id), (wait.kind, wait.key), result, actor) for wait in waiting]
        finished = await commands.close_nodes(tx, closings)
        await self.on_nodes_finished(tx, finished)
        return len(finished)

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
            _closing(node, wait, ended[wait], "engine") for node, wait in sorted(waits.items()) if wait in ended
        ]
        return await commands.close_nodes(tx, closings)

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
        """Finish runs without an open node, unless they are finished; return those that were not."""
        open_runs = [run for run in runs if run.status not in CHAIN_RUN.terminal]
        if open_runs:
            await commands.start_runs(tx, [run.id for run in open_runs if run.status is ChainRunStatus.PENDING])
            for run in await commands.finish_runs(tx, [(run.id, *_final_status(run)) for run in open_runs]):
                await self._on_run_finished(tx, run)
        return open_runs

    async def _on_run_finished(self, tx: Tx, run: ChainRunFinished) -> None:
        tx.on_commit(lambda: _record_run(run))
        for listener in self._on_run_ended:
            await listener(tx, run)
        result = _result_of_run(run.run_id, run.status)
        await self.resume(
            tx, on=RUN, key=run.run_id, success=result.success, artifact=result.artifact, error=result.error
        )


def _closing(node: NodeKey, wait: tuple[str, str], awaited: WaitResult, actor: str) -> NodeClosing:
    return NodeClosing(
        *node,
        status=NodeStatus.SUCCESS if awaited.success else NodeStatus.FAILED,
        reason=f"{wait[0]} ended",
        actor=actor,
        error=None if awaited.success else awaited.error or f"The {wait[0]} that it waited for failed.",
        artifact=inline_artifact(awaited.artifact),
        wait=wait,
    )


async def _probe_run(tx: Tx, key: str) -> WaitResult | None:
    status = await waits.lock_run_status(tx, key)
    if status is None:
        return WaitResult(success=False, error=f"There is no run {key!r}.")
    return _result_of_run(key, status) if status in CHAIN_RUN.terminal else None


def _result_of_run(run_id: str, status: ChainRunStatus) -> WaitResult:
    success = status is ChainRunStatus.SUCCESS
    error = None if success else f"Run {run_id} ended as {status}."
    return WaitResult(success, {"run_id": run_id, "status": str(status)}, error)


def _final_status(run: LockedChainRun) -> tuple[ChainRunStatus, str]:
    """The status of a run without an open node, and the reason."""
    if run.status is ChainRunStatus.STOPPING:
        return ChainRunStatus.STOPPED, "its last node stopped"
    if run.nodes_failed:
        return ChainRunStatus.FAILED, f"{run.nodes_failed} of its nodes did not succeed"
    return ChainRunStatus.SUCCESS, "all nodes succeeded or were skipped"


def _record_run(run: ChainRunFinished) -> None:
    metrics.CHAIN_RUNS.labels(str(run.status)).inc()
    if tracing.state.is_on:
        record_chain_run(run)
    _log.info("chain_run_finished", run_id=run.run_id, chain_id=run.chain_id, status=str(run.status))
