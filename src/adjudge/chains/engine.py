"""The interface of the chain engine, for services, triggers and executors: everything that changes a run.

Every operation takes the transaction of its caller. Definitions are saved by ``store.chains.definitions`` (validate the
DAG with ``dag_cache.check_dag`` first); runs are read by ``store.chains.queries``.

>>> engine = ChainEngine()
>>> jobs = JobCommands({JOB_KIND_NODE: engine.job_listener, ...})
>>> new = NewChainRun(chain_id, {"problem": "sum"}, actor=user_id)
>>> started = await database.transact(lambda tx: engine.start(tx, new))
>>> await database.transact(lambda tx: engine.retry(tx, started.run_id, "verify", actor=user_id, reason="disk full"))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.chains.advance import ChainRunAdvancer
from adjudge.chains.control import ChainRunControl
from adjudge.chains.dag_cache import DagCache
from adjudge.chains.executor import WaitProbe
from adjudge.chains.follow_ups import NODE_TIMEOUT_MS, FollowUpPlanner
from adjudge.chains.job_listener import NodeJobListener
from adjudge.chains.node_scheduler import NodeScheduler
from adjudge.chains.run_lifecycle import ChainRunLifecycle, OnRunFinished
from adjudge.chains.start_run import ChainRunStarter
from adjudge.domain.authority import Authority
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.states import ChainRunStatus
from adjudge.store.chains.models import NO_ARTIFACT, Artifact, ChainNodeRow, NewChainRun, StartedChainRun
from adjudge.store.engine.driver import Tx
from adjudge.store.jobs.commands import JobCommands


class ChainEngine:
    """Starts, advances and controls runs. It has no state except cached DAGs: the state is in the rows."""

    def __init__(
        self,
        *,
        probes: Mapping[str, WaitProbe] | None = None,
        on_run_ended: Sequence[OnRunFinished] = (),
        dags: DagCache | None = None,
        new_id: IdFactory = new_id,
        node_timeout_ms: int = NODE_TIMEOUT_MS,
    ) -> None:
        unowned = JobCommands({}, new_id=new_id)  # the engine writes the nodes of its own jobs itself
        self.dags = dags or DagCache()
        advancer = ChainRunAdvancer(self.dags, NodeScheduler(self.dags, new_id, node_timeout_ms), new_id)
        self.lifecycle = ChainRunLifecycle(advancer, self.dags, probes or {}, on_run_ended)
        self._starter = ChainRunStarter(self.dags, self.lifecycle, new_id)
        self._control = ChainRunControl(self.lifecycle, self.dags, unowned, new_id)
        planner = FollowUpPlanner(new_id, node_timeout_ms)
        self.job_listener = NodeJobListener(
            self.lifecycle, self._control, planner=planner, dags=self.dags, jobs=unowned, new_id=new_id
        )

    async def start(self, tx: Tx, wanted: NewChainRun) -> StartedChainRun:
        """Start a chain; a disabled one is refused (``ChainDisabled``), a known key returns its run."""
        return await self._starter.start(tx, wanted)

    async def rerun(
        self,
        tx: Tx,
        run_id: str,
        *,
        actor: str,
        reason: str = "",
        from_node: str | None = None,
        idempotency_key: str | None = None,
        authority: Authority | None = None,
    ) -> StartedChainRun:
        """Rerun the snapshot of a run as a new run: from the start, or from one node, copying unaffected nodes."""
        return await self._starter.rerun(
            tx,
            run_id,
            actor=actor,
            reason=reason,
            from_node=from_node,
            idempotency_key=idempotency_key,
            authority=authority,
        )

    async def stop(self, tx: Tx, run_id: str, *, actor: str, reason: str = "") -> ChainRunStatus:
        """Ask a run to stop; returns ``stopping``, or ``stopped`` if nothing was running."""
        return await self._control.stop(tx, run_id, actor=actor, reason=reason)

    async def retry(self, tx: Tx, run_id: str, node_id: str, *, actor: str, reason: str = "") -> ChainNodeRow:
        """Run a failed or stopped node again; any other is refused (``WrongNodeState``)."""
        return await self._control.retry(tx, run_id, node_id, actor=actor, reason=reason)

    async def complete(
        self, tx: Tx, run_id: str, node_id: str, *, actor: str, artifact: Artifact = NO_ARTIFACT, reason: str = ""
    ) -> ChainNodeRow:
        """Mark a failed, stopped or running node as success; any other is refused (``WrongNodeState``)."""
        return await self._control.complete(tx, run_id, node_id, actor=actor, artifact=artifact, reason=reason)

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
        """Finish the nodes that wait for an object, in the transaction that finished it; return how many there were."""
        return await self.lifecycle.resume(
            tx, on=on, key=key, success=success, artifact=artifact, error=error, actor=actor
        )
