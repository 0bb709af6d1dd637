"""Steps: the short way from nodes that ended well to those that follow, for what needs nothing looked up.

A node takes it if it succeeded, everything that depends on it asks for no more than success, and its DAG has no limits.
Whether the rows agree is for the statement to find out (``store.chain_steps``); if not, the long way is there
(``owner.NodeOwner.ended``), and it decides.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from adjudge.chains.dag_cache import DagCache
from adjudge.chains.node_jobs import HAS_CROSS_RUN_LIMITS, node_job
from adjudge.domain.chain import Dag, Node
from adjudge.domain.ids import IdFactory, trace_id_from
from adjudge.domain.states import JobStatus, NodeStatus
from adjudge.observe import metrics
from adjudge.store.chains import advance
from adjudge.store.chains.advance import AdvanceResult, FinishedStep, FollowUpNode
from adjudge.store.chains.advance_statements import EDGES_MAX
from adjudge.store.chains.models import NodeDone
from adjudge.store.chains.queries import CHANGED
from adjudge.store.engine.driver import Tx
from adjudge.store.jobs import metrics as job_metrics
from adjudge.store.jobs.models import FollowUpSlots, Job, JobResult, NewJob, StepTaken

_SECOND_US = 1_000_000


@dataclass(eq=False)
class Step:
    """Ends that one statement can write, with what may follow from them."""

    room: FollowUpSlots
    types: dict[str, str] = field(default_factory=dict)
    """Of the nodes that end, by job."""
    ends: list[FinishedStep] = field(default_factory=list)
    followers: list[FollowUpNode] = field(default_factory=list)
    places: dict[tuple[str, str], int] = field(default_factory=dict)
    """Of the followers in their list, by run and node."""
    after: dict[str, str] = field(default_factory=dict)
    """Which ended job a follower's job goes on from, for those that a worker takes on."""

    async def take(self, tx: Tx) -> StepTaken:
        """Write it, as the whole of a transaction."""
        stepped = await advance.finish_and_claim_next(tx, self.ends, self.followers, lease_ms=self.room.lease_ms)
        born = [follower.job for follower in self.followers if follower.job.id in stepped.born]
        taken = tuple(_claimed(job, stepped, self.room.worker) for job in born if job.id in self.after)
        tx.notify(CHANGED)
        counted = frozenset(job_id for job_id, timestamps in stepped.ended.items() if timestamps.ended_at is not None)
        return StepTaken(frozenset(stepped.ended), counted, taken, lambda: self._tell(stepped, born, taken))

    def _tell(self, stepped: AdvanceResult, born: Sequence[NewJob], taken: Sequence[Job]) -> None:
        job_metrics.record_enqueued(born)
        job_metrics.record_started(taken)
        for job_id, timestamps in stepped.ended.items():
            if timestamps.started_at is not None and timestamps.ended_at is not None:
                seconds = (timestamps.ended_at - timestamps.started_at) / _SECOND_US
                metrics.CHAIN_NODE_DURATION.labels(self.types[job_id], str(NodeStatus.SUCCESS)).observe(seconds)


class Stepper:
    """Finds what can go the short way."""

    def __init__(self, dags: DagCache, new_id: IdFactory, node_timeout_ms: int) -> None:
        self._dags = dags
        self._new_id = new_id
        self._node_timeout_ms = node_timeout_ms

    def plan(self, finishes: Sequence[JobResult], room: FollowUpSlots) -> Step | None:
        """A step of those of the ends that can take one; ``room`` says what the worker goes on with."""
        step = Step(room)
        for finish in finishes:
            job, outcome = finish.job, finish.typed_result
            found = self._plain(finish)
            if found is None or job is None or not isinstance(outcome, NodeDone):
                continue
            dag, node = found
            run_id, artifact = job.chain_run_id or "", outcome.artifact
            follows = tuple(self._follow(step, job, dag, dependent) for dependent in dag.dependents[node.id])
            step.types[job.id] = node.type
            step.ends.append(
                FinishedStep(finish, run_id, node.id, artifact.text, artifact.digest, artifact.size_bytes, follows)
            )
        fits = len(step.ends) * len(step.followers) <= EDGES_MAX
        return step if step.ends and fits else None

    def _plain(self, finish: JobResult) -> tuple[Dag, Node] | None:
        job = finish.job
        if job is None or finish.status is not JobStatus.SUCCEEDED or HAS_CROSS_RUN_LIMITS in job.payload:
            return None
        dag = self._dags.get(job.payload["chain_id"], int(job.payload["chain_version"]))
        if (
            dag is None
            or dag.has_concurrency_limits
            or (node := dag.by_id.get(job.node_id or "")) is None
            or node.map_spec is not None
        ):
            return None
        dependents = [dag.by_id[node_id] for node_id in dag.dependents[node.id]]
        return (dag, node) if dependents and all(dependent.needs_only_success for dependent in dependents) else None

    def _follow(self, step: Step, ended: Job, dag: Dag, node_id: str) -> int:
        """The place of a dependent among the step's followers, as one of which it is put down if it is new."""
        key = (ended.chain_run_id or "", node_id)
        if key not in step.places:
            trace_id = None if ended.trace_id == trace_id_from(ended.id) else ended.trace_id
            payload = ended.payload
            chain = (payload["chain_id"], payload["chain_version"])
            job = node_job(
                self._new_id(), key, dag.by_id[node_id], chain, trace_id, default_timeout_ms=self._node_timeout_ms
            )
            worker = step.room.worker if step.room.reserve(ended, job) else None
            if worker is not None:
                step.after[job.id] = ended.id
            step.places[key] = len(step.followers)
            step.followers.append(FollowUpNode(job, json.dumps(job.payload), worker))
        return step.places[key]


def _claimed(job: NewJob, stepped: AdvanceResult, worker: str) -> Job:
    """A job that was born running, as its claim would have returned it."""
    born = stepped.born[job.id]
    return Job(
        id=job.id,
        kind=job.kind,
        status=JobStatus.RUNNING,
        prior_status=JobStatus.PENDING,
        attempt_id=1,
        max_attempts=job.max_attempts or 1,
        priority=job.priority,
        timeout_ms=job.timeout_ms,
        submission_id=None,
        rejudge_batch_id=None,
        chain_run_id=job.chain_run_id,
        node_id=job.node_id,
        origin_job_id=None,
        payload=job.payload,
        actor=worker,
        reason="claimed",
        error_code=None,
        trace_id=job.effective_trace_id,
        lease_until=born.lease_until,
        started_at=born.started_at,
        finished_at=None,
    )
