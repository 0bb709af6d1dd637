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

from adjudge.chains.advance import ChainRunAdvancer
from adjudge.chains.control import ChainRunControl
from adjudge.chains.dag_cache import DagCache
from adjudge.chains.executor import WaitProbe
from adjudge.chains.follow_ups import FollowUpPlanner
from adjudge.chains.job_listener import NodeJobListener
from adjudge.chains.node_jobs import NODE_TIMEOUT_MS
from adjudge.chains.node_scheduler import NodeScheduler
from adjudge.chains.run_lifecycle import ChainRunLifecycle, OnRunFinished
from adjudge.chains.start_run import ChainRunStarter
from adjudge.domain.ids import IdFactory, new_id
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
        starter = ChainRunStarter(self.dags, self.lifecycle, new_id)
        control = ChainRunControl(self.lifecycle, self.dags, unowned, new_id)
        planner = FollowUpPlanner(new_id, node_timeout_ms)
        self.job_listener = NodeJobListener(
            self.lifecycle, control, planner=planner, dags=self.dags, jobs=unowned, new_id=new_id
        )
        self.start, self.rerun = starter.start, starter.rerun
        self.stop, self.retry, self.complete = control.stop, control.retry, control.complete
        self.resume = self.lifecycle.resume
