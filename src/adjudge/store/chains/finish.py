"""Finishes nodes with their jobs, counts them for their dependents, and starts dependents that are ready.

Workers finish attempts of nodes only by ``FINISH_NODES``. Conditions, skips, maps, waits, limits and the end of a run
are decided by the caller, in the same transaction; nodes that become ready there are started by ``START_NODES``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.domain.states import ChainRunStatus, JobStatus
from adjudge.store.chains.models import CountedNode, FinishedNode, LockedChainRun, LockedRuns, SlotState
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.rows import row_builder
from adjudge.store.engine.script import Inputs, Script, Step
from adjudge.store.jobs.models import MILLISECOND, Job, NewJob
from adjudge.store.jobs.scripts import BAND, DEAD_LETTER, FINISHED_JOB, REQUEUED, RESULT

NODE_RESULT: Final = {
    **RESULT,
    "given_run_id": "text",
    "given_node_id": "text",
    "given_node_status": "text",
    "given_node_reason": "text",
    "given_artifact": "jsonb",
    "given_digest": "text",
    "given_bytes": "bigint",
    "given_wait_on": "text",
    "given_wait_key": "text",
    "given_wait_until": "bigint",
    "given_timeout_us": "bigint",
    "given_instances": "bigint",
}
"""The result of an attempt of a node; ``given_node_status`` applies if the job succeeded."""

EDGE: Final = {
    "edge_run_id": "text",
    "edge_job_id": "text",
    "edge_to": "text",
    "edge_new_id": "text",
    "edge_worker": "text",
}
"""A dependency of a node on a finished job, and the job and lease owner the node gets if that was the last one."""

NEW_NODE_JOB: Final = {
    "new_id": "text",
    "new_run_id": "text",
    "new_node_id": "text",
    "new_max_attempts": "bigint",
    "new_priority": "bigint",
    "new_timeout_ms": "bigint",
    "new_payload": "jsonb",
    "new_trace_id": "text",
    "new_worker": "text",
}

_STATUS: Final = """
    CASE job_status WHEN 'pending' THEN 'retrying' WHEN 'failed' THEN 'failed' ELSE given_node_status END
    """.strip()
_IS_FINAL: Final = f"{_STATUS} IN ('success', 'failed', 'stopped')"
_KEEPS_ARTIFACT: Final = "job_status = 'pending' OR given_instances IS NOT NULL"

_FINISHED_NODE = Step(
    "finished_node",
    f"""
    UPDATE chain_nodes SET
        prior_status = CASE WHEN {_STATUS} = chain_nodes.status THEN prior_status ELSE chain_nodes.status END,
        status = {_STATUS}, ended_at = CASE WHEN {_IS_FINAL} THEN {{now}} ELSE ended_at END, updated_at = {{now}},
        actor = CASE WHEN {_STATUS} = 'running' THEN actor ELSE job_actor END,
        reason = CASE WHEN job_status = 'succeeded' THEN COALESCE(given_node_reason, given_reason)
            ELSE given_reason END,
        artifact = CASE WHEN {_KEEPS_ARTIFACT} THEN artifact ELSE given_artifact END,
        artifact_digest = CASE WHEN {_KEEPS_ARTIFACT} THEN artifact_digest ELSE given_digest END,
        artifact_bytes = CASE WHEN {_KEEPS_ARTIFACT} THEN artifact_bytes ELSE given_bytes END,
        slot = CASE WHEN {_IS_FINAL} OR given_instances IS NOT NULL THEN NULL ELSE slot END,
        last_error = CASE WHEN {_STATUS} = 'success' THEN NULL WHEN {_STATUS} = 'running' THEN last_error
            ELSE COALESCE(given_error, job_error_code, last_error) END,
        wait_on = COALESCE(given_wait_on, wait_on), wait_key = COALESCE(given_wait_key, wait_key),
        wait_until = CASE WHEN given_wait_on IS NULL THEN wait_until
            WHEN given_timeout_us IS NULL THEN given_wait_until
            WHEN given_wait_until IS NULL OR started_at + given_timeout_us < given_wait_until
            THEN started_at + given_timeout_us ELSE given_wait_until END,
        waiting_on = COALESCE(given_instances, waiting_on),
        deps_success = CASE WHEN given_instances IS NULL THEN deps_success ELSE 0 END,
        deps_failed = CASE WHEN given_instances IS NULL THEN deps_failed ELSE 0 END,
        deps_skipped = CASE WHEN given_instances IS NULL THEN deps_skipped ELSE 0 END
    FROM {{finished_job}}
    WHERE chain_nodes.run_id = given_run_id AND chain_nodes.node_id = given_node_id
      AND chain_nodes.job_id = finished_job.job_id AND COALESCE(chain_nodes.status, '') IN ('running', 'retrying')
    RETURNING chain_nodes.job_id AS node_job_id, chain_nodes.run_id AS run_id, chain_nodes.node_id AS node_id,
              chain_nodes.type AS type, chain_nodes.status AS node_status, chain_nodes.parent_id AS parent_id,
              CAST(chain_nodes.ended_at - chain_nodes.started_at AS double precision) / 1000000 AS duration_sec,
              chain_nodes.concurrency_pool AS pool
    """,
    ("node_job_id", "run_id", "node_id", "type", "node_status", "parent_id", "duration_sec", "pool"),
    after="requeued",
)
"""One UPDATE for every way a node's attempt ends: success, failed, stopped, retrying, waiting, expanded."""

_COUNTED_RUN = Step(
    "counted_run",
    """
    UPDATE chain_runs SET nodes_open = nodes_open - closed, nodes_failed = nodes_failed + failed, updated_at = {now}
    FROM (SELECT run_id AS counted_id,
                 sum(CASE WHEN node_status IN ('success', 'failed', 'stopped') THEN 1 ELSE 0 END) AS closed,
                 sum(CASE WHEN node_status IN ('failed', 'stopped') AND parent_id IS NULL THEN 1 ELSE 0 END) AS failed
          FROM {finished_node} WHERE node_status <> 'retrying'
          GROUP BY run_id ORDER BY run_id DESC) AS counted
    WHERE chain_runs.id = counted_id
    RETURNING chain_runs.id AS id, chain_runs.status AS run_status, chain_runs.chain_id AS chain_id,
              chain_runs.chain_version AS chain_version, chain_runs.nodes_open AS nodes_open,
              chain_runs.nodes_failed AS nodes_failed, chain_runs.trace_id AS trace_id, chain_runs.slot AS run_slot
    """,
    ("id", "run_status", "chain_id", "chain_version", "nodes_open", "nodes_failed", "trace_id", "run_slot"),
)
"""Locks the runs until the end of the transaction."""


def _starts_node(is_ready: str, worker: str) -> str:
    """The assignments for a node that gets its job: it is set to running if a worker claims the job.

    This is the only text that sets nodes to running when their dependencies finish.
    """
    is_claimed = f"{is_ready} AND {worker} IS NOT NULL"
    return f"""
        prior_status = CASE WHEN {is_claimed} THEN chain_nodes.status ELSE chain_nodes.prior_status END,
        status = CASE WHEN {is_claimed} THEN 'running' ELSE chain_nodes.status END,
        started_at = CASE WHEN {is_claimed} THEN {{now}} ELSE chain_nodes.started_at END,
        ended_at = CASE WHEN {is_claimed} THEN NULL ELSE chain_nodes.ended_at END,
        actor = CASE WHEN {is_claimed} THEN {worker} ELSE chain_nodes.actor END,
        reason = CASE WHEN {is_claimed} THEN 'claimed' ELSE chain_nodes.reason END""".strip()


_IS_READY: Final = "(waiting_on = ended AND deps_failed + bad = 0 AND deps_skipped = 0 AND new_job_id IS NOT NULL)"
_COUNTED_NODE = Step(
    "counted_node",
    f"""
    UPDATE chain_nodes SET waiting_on = waiting_on - ended, deps_success = deps_success + good,
        deps_failed = deps_failed + bad, updated_at = {{now}},
        job_id = CASE WHEN {_IS_READY} THEN new_job_id ELSE chain_nodes.job_id END,
        attempt = CASE WHEN {_IS_READY} AND new_owner IS NOT NULL THEN 1 ELSE chain_nodes.attempt END,
        {_starts_node(_IS_READY, "new_owner")}
    FROM (SELECT edge_run_id, edge_to,
                 max(CASE WHEN run_slot = 'wanted' THEN NULL ELSE edge_new_id END) AS new_job_id,
                 max(edge_worker) AS new_owner, count(*) AS ended,
                 sum(CASE WHEN node_status = 'success' THEN 1 ELSE 0 END) AS good,
                 sum(CASE WHEN node_status = 'success' THEN 0 ELSE 1 END) AS bad
          FROM {{finished_node}} JOIN {{edge}} ON edge_job_id = node_job_id
          JOIN {{counted_run}} ON id = edge_run_id AND run_status IN ('pending', 'running')
          WHERE node_status IN ('success', 'failed', 'stopped')
          GROUP BY edge_run_id, edge_to) AS counted
    WHERE chain_nodes.run_id = edge_run_id AND chain_nodes.node_id = edge_to
      AND COALESCE(chain_nodes.status, '') = 'pending'
    RETURNING chain_nodes.run_id AS run_id, chain_nodes.node_id AS node_id, chain_nodes.waiting_on AS waiting_on,
              chain_nodes.deps_success AS deps_success, chain_nodes.deps_failed AS deps_failed,
              chain_nodes.deps_skipped AS deps_skipped, chain_nodes.job_id AS ready_job_id
    """,
    ("run_id", "node_id", "waiting_on", "deps_success", "deps_failed", "deps_skipped", "ready_job_id"),
)


def _created_job(source: str) -> Step:
    """Creates the jobs of nodes: running and leased where a worker claims them, pending otherwise."""
    is_left = "CASE WHEN new_worker IS NULL THEN"
    return Step(
        "created_job",
        f"""
        INSERT INTO jobs (id, kind, chain_run_id, node_id, max_attempts, priority, timeout_ms, available_at, payload,
                          actor, trace_id, created_at, updated_at, status, prior_status, attempt_id, lease_owner,
                          lease_until, reason, started_at)
        SELECT new_id, 'node', new_run_id, new_node_id, new_max_attempts, new_priority, new_timeout_ms, {{now}},
               new_payload, COALESCE(new_worker, 'engine'), new_trace_id, {{now}}, {{now}},
               {is_left} 'pending' ELSE 'running' END, {is_left} NULL ELSE 'pending' END, {is_left} 0 ELSE 1 END,
               new_worker, {is_left} NULL ELSE {{now}} + :lease_us END, {is_left} NULL ELSE 'claimed' END,
               {is_left} NULL ELSE {{now}} END
        FROM {source} WHERE true
        RETURNING id AS job_id, status AS job_status, priority AS job_priority, lease_owner AS job_owner,
                  lease_until AS job_lease_until, started_at AS job_started_at
        """,
        ("job_id", "job_status", "job_priority", "job_owner", "job_lease_until", "job_started_at"),
    )


_LOGGED_CLAIM = Step(
    "logged_claim",
    """
    INSERT INTO job_status_log (job_id, from_status, to_status, attempt_id, actor, reason, at)
    SELECT job_id, 'pending', 'running', 1, job_owner, 'claimed', job_started_at FROM {created_job}
    WHERE job_status = 'running'
    """,
    is_output=False,
)
"""A job that is created running has no transition that a trigger could log."""

_ANNOUNCED = Step(
    "announced",
    f"""
    INSERT INTO outbox (job_id, priority, next_attempt_at, turn_at, due_at)
    SELECT job_id, {BAND.format("job_priority")}, {{now}}, {{now}}, {{now}}
    FROM {{created_job}} WHERE job_status = 'pending'
    """,
    is_output=False,
)

FINISH_NODES = Script(
    "chains.finish_nodes",
    "End attempts of nodes, count them for their dependents, and create the jobs of those that are ready.",
    {"result": NODE_RESULT, "edge": EDGE, "new_job": NEW_NODE_JOB},
    (
        FINISHED_JOB,
        REQUEUED,
        DEAD_LETTER,
        _FINISHED_NODE,
        _COUNTED_RUN,
        _COUNTED_NODE,
        _created_job("{counted_node} JOIN {new_job} ON new_id = ready_job_id"),
        _LOGGED_CLAIM,
        _ANNOUNCED,
    ),
    complete="""
        (SELECT count(*) FROM {finished_job}) = (SELECT count(*) FROM {result})
        AND NOT EXISTS (SELECT 1 FROM {counted_run} WHERE run_status <> 'running' OR nodes_open <= 0)
        AND NOT EXISTS (SELECT 1 FROM {counted_node} WHERE waiting_on = 0 AND ready_job_id IS NULL)
        """,
)

START_NODES = Script(
    "chains.start_nodes",
    "Create the jobs of ready nodes; the jobs that the worker claims are created running.",
    {
        "start": {
            "start_run_id": "text",
            "start_node_id": "text",
            "start_job_id": "text",
            "start_slot": "text",
            "start_attempt": "bigint",
            "start_worker": "text",
        },
        "new_job": NEW_NODE_JOB,
    },
    (
        Step(
            "started_node",
            f"""
            UPDATE chain_nodes SET job_id = start_job_id, slot = start_slot, updated_at = {{now}},
                attempt = CASE WHEN start_worker IS NULL THEN chain_nodes.attempt ELSE start_attempt END,
                {_starts_node("start_job_id IS NOT NULL", "start_worker")}
            FROM {{start}}
            WHERE chain_nodes.run_id = start_run_id AND chain_nodes.node_id = start_node_id
              AND COALESCE(chain_nodes.status, '') IN ('pending', 'retrying')
            RETURNING chain_nodes.job_id AS started_job_id
            """,
            ("started_job_id",),
            is_output=False,
        ),
        _created_job("{new_job}"),
        _LOGGED_CLAIM,
        _ANNOUNCED,
    ),
)


@dataclass(frozen=True, slots=True)
class NodeStart:
    """A node that gets a job, and the worker that claims the job."""

    run_id: str
    node_id: str
    job_id: str
    slot: SlotState | None
    attempt: int
    worker: str | None


@dataclass(frozen=True, slots=True)
class CreatedJob:
    """A job that was created: pending, or running if a worker claimed it."""

    id: str
    status: JobStatus
    priority: int
    lease_owner: str | None
    lease_until: int | None
    started_at: int | None

    def claimed(self, job: NewJob) -> Job:
        """The job as its claim would have returned it."""
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
            actor=self.lease_owner,
            reason="claimed",
            error_code=None,
            trace_id=job.effective_trace_id,
            lease_until=self.lease_until,
            started_at=self.started_at,
            finished_at=None,
            created_at=self.started_at or 0,
        )


@dataclass(frozen=True, slots=True)
class FinishedNodes:
    """What ``chains.finish_nodes`` has written."""

    jobs: list[Any]
    """Rows of the step ``finished_job``."""
    nodes: dict[str, FinishedNode]
    """By the finished job; also nodes that go on: retrying, waiting, expanded."""
    runs: LockedRuns
    dependents: list[CountedNode]
    created: list[CreatedJob]

    @property
    def is_complete(self) -> bool:
        """Whether no run ends or stops and no dependent is left to decide: what ``complete`` of the script says."""
        return all(run.status is ChainRunStatus.RUNNING and run.nodes_open > 0 for run in self.runs.values()) and all(
            node.job_id is not None or node.counts.waiting > 0 for node in self.dependents
        )


_build_node = row_builder(FinishedNode)
_build_run = row_builder(LockedChainRun)
_build_dependent = row_builder(CountedNode)
_build_created = row_builder(CreatedJob)


async def finish_nodes(tx: Tx, inputs: Inputs, *, lease_ms: int, is_last: bool) -> FinishedNodes:
    """End attempts of nodes, count them for their dependents, and create the jobs of those that are ready.

    ``is_last``: nothing else is left to do in the transaction if the script is complete.
    """
    rows = await tx.run(FINISH_NODES, inputs, last=is_last, lease_us=lease_ms * MILLISECOND)
    runs = [_build_run(row) for row in rows["counted_run"]]
    return FinishedNodes(
        rows["finished_job"],
        {job_id: _build_node(node) for job_id, *node in rows["finished_node"]},
        {run.id: run for run in runs},
        [_build_dependent(row) for row in rows["counted_node"]],
        [_build_created(row) for row in rows["created_job"]],
    )


async def start_nodes(
    tx: Tx, starts: Sequence[NodeStart], new_jobs: Sequence[tuple[object, ...]], *, lease_ms: int
) -> list[CreatedJob]:
    """Assign jobs to ready nodes, and create the jobs."""
    assigned = sorted((item.run_id, item.node_id, item.job_id, item.slot, item.attempt, item.worker) for item in starts)
    rows = await tx.run(START_NODES, {"start": assigned, "new_job": new_jobs}, lease_us=lease_ms * MILLISECOND)
    return [_build_created(row) for row in rows["created_job"]]


def new_job_row(job: NewJob, worker: str | None) -> tuple[object, ...]:
    """The input row of a node's job, claimed by ``worker`` if there is one."""
    return (
        job.id,
        job.chain_run_id,
        job.node_id,
        job.max_attempts,
        job.priority,
        job.timeout_ms,
        json.dumps(job.payload),
        job.effective_trace_id,
        worker,
    )
