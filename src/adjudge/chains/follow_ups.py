"""Plans how nodes are finished: the results of jobs, the dependents to count, the follow-up jobs to claim.

Planning is pure: it reads DAGs and results, no rows. The rows decide whether a dependent is ready
(``store.chains.finish``); the plan contains a job for each dependent that may become ready.
``tests/unit/chains/test_follow_ups.py`` compares it with an engine that looks at all nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from adjudge.domain.chain import Dag, Node, is_instance
from adjudge.domain.ids import IdFactory, trace_id_from
from adjudge.domain.states import JobStatus, NodeStatus
from adjudge.observe.metrics import CHAIN_NODE_DURATION
from adjudge.store.chains.finish import CreatedJob, new_job_row
from adjudge.store.chains.models import (
    JOB_KIND_NODE,
    NO_ARTIFACT,
    FinishedNode,
    NodeDone,
    NodeExpanded,
    NodeStopped,
    NodeSuspended,
)
from adjudge.store.chains.queries import CHANGED
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.notify import CHANNEL_OUTBOX
from adjudge.store.engine.script import Inputs
from adjudge.store.jobs import metrics
from adjudge.store.jobs.models import MILLISECOND, Capacity, Job, JobResult, NewJob, finish_row

HAS_CROSS_RUN_LIMITS: Final = "shares"
"""In the payload of jobs whose chain has limits over its runs: the chain is locked before they finish."""

NODE_TIMEOUT_MS: Final = 3_600_000
"""Default timeout of an attempt of a node without ``timeout_ms``."""
_TIMEOUT_MARGIN_MS: Final = 10_000
"""A node's own deadline is kept by its handler; the worker's net hangs this much lower."""


class FollowUps:
    """The follow-up jobs of one execution of a transaction: which may be claimed, and which were.

    A finished job gets one follow-up job while another reserved slot is left for other jobs. Instant jobs use every
    reserved slot: they finish before a message about them could be read.
    """

    def __init__(self, capacity: Capacity | None = None, finished: Sequence[Job] = ()) -> None:
        self.capacity = capacity
        self.claimed: dict[str, list[Job]] = {}
        """By the finished job."""
        self._followed: set[str] = set()
        self._finished = {} if capacity is None or not capacity.slots else _by_run(finished)
        self._slots_left = 0 if capacity is None else capacity.slots
        self._limits_left = {} if capacity is None else dict(capacity.limits)

    def reserve(self, job: NewJob, after: Job | None = None) -> str | None:
        """The finished job that ``job`` follows if the worker claims it, else None.

        Without ``after``, it may follow any finished job of its run.
        """
        capacity = self.capacity
        if capacity is None or self._slots_left <= 0 or job.delay_ms:
            return None
        candidates = self._finished.get(job.chain_run_id, ()) if after is None else (after,)
        unfollowed = next((item.id for item in candidates if item.id not in self._followed), None)
        is_ordinary = unfollowed is not None and self._slots_left > 1
        if not candidates or not (is_ordinary or capacity.is_instant(job)):
            return None
        keys = capacity.limit_keys(job)
        if any(self._limits_left[key] <= 0 for key in keys):
            return None
        for key in keys:
            self._limits_left[key] -= 1
        self._slots_left -= 1
        follows = candidates[0].id if unfollowed is None else unfollowed
        self._followed.add(follows)
        return follows

    def record_created(
        self, tx: Tx, new_jobs: Mapping[str, NewJob], created: Sequence[CreatedJob], follows: Mapping[str, str]
    ) -> None:
        """Record which jobs were created, and which of them the worker has claimed."""
        jobs, claimed = [new_jobs[item.id] for item in created], list[Job]()
        for item in created:
            if item.id in follows and item.status is JobStatus.RUNNING:
                job = item.claimed(new_jobs[item.id])
                claimed.append(job)
                self.claimed.setdefault(follows[job.id], []).append(job)
        if len(claimed) < len(jobs):
            tx.notify(CHANNEL_OUTBOX)
        tx.on_commit(lambda: metrics.record_enqueued(jobs))
        tx.on_commit(lambda: metrics.record_started(claimed))


def record_finished(tx: Tx, nodes: Sequence[FinishedNode]) -> None:
    """Measure finished nodes and notify who watches runs, once the transaction has committed."""
    tx.on_commit(lambda: _measure(nodes))
    tx.notify(CHANGED)


def _measure(nodes: Sequence[FinishedNode]) -> None:
    for node in nodes:
        if node.duration_sec is not None:
            CHAIN_NODE_DURATION.labels(node.type, str(node.status)).observe(node.duration_sec)


def _by_run(jobs: Sequence[Job]) -> dict[str | None, list[Job]]:
    """Group jobs by their run."""
    groups: dict[str | None, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.chain_run_id, []).append(job)
    return groups


@dataclass
class FinishPlan:
    """The input rows of ``chains.finish_nodes``, and the data to interpret its result."""

    results: list[tuple[object, ...]] = field(default_factory=list)
    edges: list[tuple[object, ...]] = field(default_factory=list)
    new_jobs: dict[str, NewJob] = field(default_factory=dict)
    """By id: one for each dependent that may become ready."""
    follows: dict[str, str] = field(default_factory=dict)
    """The finished job, by the id of the claimed follow-up job."""
    is_last: bool = True
    """Whether the rows can decide everything: only successes, DAGs without limits, dependents that need only success.
    """

    def inputs(self, worker: str | None) -> Inputs:
        """The input rows of the script."""
        new = [new_job_row(job, worker if job.id in self.follows else None) for job in self.new_jobs.values()]
        return {"result": self.results, "edge": self.edges, "new_job": new}


class FollowUpPlanner:
    """Plans the finish of nodes."""

    def __init__(self, new_id: IdFactory, node_timeout_ms: int) -> None:
        self._new_id = new_id
        self._node_timeout_ms = node_timeout_ms

    def plan(
        self,
        results: Sequence[tuple[JobResult, Job, str | None]],
        dags: Mapping[str, Dag],
        follow_ups: FollowUps,
    ) -> FinishPlan:
        """Plan for results with their jobs and dead letter ids; without the DAG of a run, no dependents are counted."""
        plan, targets, planned = FinishPlan(), dict[tuple[str, str], str | None](), set[str]()
        for result, job, letter_id in sorted(results, key=lambda item: item[0].fence):
            plan.results.append(_result_row(result, job, letter_id))
            dag = dags.get(job.chain_run_id or "")
            dependents = _dependents(dag, job)
            plan.is_last &= dag is not None and _is_decided_by_rows(result, job, dag, dependents)
            if _stays_open(result) or job.id in planned:  # of two attempts of one job, the fence accepts at most one
                continue
            planned.add(job.id)
            for node_id in dependents if dag is not None else ():
                key = (job.chain_run_id or "", node_id)
                if key not in targets and dag is not None and result.status is JobStatus.SUCCEEDED:
                    targets[key] = self._follow_up(plan, key, job, dag, follow_ups)
                new_id = targets.get(key)
                worker = follow_ups.capacity.worker if follow_ups.capacity and new_id in plan.follows else None
                plan.edges.append((key[0], job.id, node_id, new_id, worker))
        return plan

    def _follow_up(
        self, plan: FinishPlan, key: tuple[str, str], job: Job, dag: Dag, follow_ups: FollowUps
    ) -> str | None:
        node = dag.by_id[key[1]]
        if not node.needs_only_success or dag.has_concurrency_limits:
            return None
        trace_id = None if job.trace_id == trace_id_from(job.id) else job.trace_id
        chain = (job.payload["chain_id"], job.payload["chain_version"])
        new = node_job(
            self._new_id(),
            key,
            node,
            chain,
            trace_id,
            shares=dag.has_cross_run_limits,
            default_timeout_ms=self._node_timeout_ms,
        )
        plan.new_jobs[new.id] = new
        if (finished := follow_ups.reserve(new, after=job)) is not None:
            plan.follows[new.id] = finished
        return new.id


def _dependents(dag: Dag | None, job: Job) -> Sequence[str]:
    """The dependents that the node is counted for; none for instances, which are counted for their mapped node."""
    node_id = job.node_id or ""
    return () if dag is None or is_instance(node_id) else dag.dependents.get(node_id, ())


def _stays_open(result: JobResult) -> bool:
    """Whether the node does not finish with its job, because it waits or was expanded."""
    is_open = isinstance(result.typed_result, NodeSuspended | NodeExpanded)
    return result.status is JobStatus.SUCCEEDED and is_open


def _is_decided_by_rows(result: JobResult, job: Job, dag: Dag, dependents: Sequence[str]) -> bool:
    return (
        result.status is JobStatus.SUCCEEDED
        and isinstance(result.typed_result, NodeDone)
        and HAS_CROSS_RUN_LIMITS not in job.payload
        and not dag.has_concurrency_limits
        and bool(dependents)
        and all(dag.by_id[node_id].needs_only_success for node_id in dependents)
    )


def _result_row(result: JobResult, job: Job, letter_id: str | None) -> tuple[object, ...]:
    outcome = result.typed_result if result.status is JobStatus.SUCCEEDED else None
    status, reason, artifact = NodeStatus.SUCCESS, None, NO_ARTIFACT
    wait: tuple[object, ...] = (None, None, None, None)
    instances = None
    if isinstance(outcome, NodeDone):
        artifact = outcome.artifact
    elif isinstance(outcome, NodeStopped):
        status, reason = NodeStatus.STOPPED, outcome.reason
    elif isinstance(outcome, NodeExpanded):
        status, reason, instances = NodeStatus.RUNNING, "mapped", len(outcome.items)
    elif isinstance(outcome, NodeSuspended):
        status, reason, artifact = NodeStatus.RUNNING, f"waits for {outcome.wait_kind}", outcome.artifact
        wait = (outcome.wait_kind, outcome.wait_key, _us(outcome.until_ms), _us(outcome.timeout_ms))
    return (
        *finish_row(result, letter_id),
        job.chain_run_id or "",
        job.node_id or "",
        str(status),
        reason,
        artifact.text,
        artifact.digest,
        artifact.size_bytes,
        *wait,
        instances,
    )


def _us(ms: int | None) -> int | None:
    return None if ms is None else ms * MILLISECOND


def node_job(
    job_id: str,
    key: tuple[str, str],
    node: Node,
    chain: tuple[str, str],
    trace_id: str | None,
    *,
    attempts_before: int = 0,
    shares: bool = False,
    default_timeout_ms: int = NODE_TIMEOUT_MS,
) -> NewJob:
    """The job of a node of a chain in some version; its id in the run is, for an instance, not that of ``node``."""
    run_id, node_id = key
    return NewJob(
        id=job_id,
        kind=JOB_KIND_NODE,
        chain_run_id=run_id,
        node_id=node_id,
        max_attempts=node.retry.max_attempts,
        priority=node.priority,
        timeout_ms=default_timeout_ms if node.timeout_ms is None else node.timeout_ms + _TIMEOUT_MARGIN_MS,
        payload={
            "run_id": run_id,
            "node_id": node_id,
            "type": node.type,
            "chain_id": chain[0],
            "chain_version": chain[1],
            "attempts_before": str(attempts_before),
            "backoff_ms": str(node.retry.backoff_ms),
            **({} if node.deps else {"is_root": "yes"}),
            **({HAS_CROSS_RUN_LIMITS: "yes"} if shares else {}),
        },
        actor="engine",
        trace_id=trace_id,
    )
