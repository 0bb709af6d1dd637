"""Between values and rows: what the statements on jobs are given and what they return."""

from __future__ import annotations

import json

from adjudge.domain.states import JobStatus
from adjudge.store.job_values import Finish, Job, NewJob, Release
from adjudge.store.statement import Row

MILLISECOND = 1_000
"""In microseconds, the unit of every moment in the database."""


def job_of(row: Row) -> Job:
    """The job as an operation left it."""
    return Job(
        id=row["id"],
        kind=row["kind"],
        status=JobStatus(row["status"]),
        prior_status=JobStatus(row["prior_status"]),
        attempt_id=row["attempt_id"],
        max_attempts=row["max_attempts"],
        priority=row["priority"],
        timeout_ms=row["timeout_ms"],
        submission_id=row["submission_id"],
        rejudge_batch_id=row["rejudge_batch_id"],
        chain_run_id=row["chain_run_id"],
        node_id=row["node_id"],
        origin_job_id=row["origin_job_id"],
        payload=json.loads(row["payload"]),
        actor=row["actor"],
        reason=row["reason"],
        error_code=row["error_code"],
        trace_id=row["trace_id"],
        lease_until=row["lease_until"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
    )


def insert_row(job: NewJob) -> tuple[object, ...]:
    """What ``jobs.insert`` is given."""
    return (
        job.id,
        job.kind,
        job.dedupe_key,
        job.submission_id,
        job.rejudge_batch_id,
        job.chain_run_id,
        job.node_id,
        job.origin_job_id,
        job.max_attempts,
        job.priority,
        job.timeout_ms,
        job.delay_ms * MILLISECOND,
        json.dumps(job.payload),
        job.actor,
        job.trace_id,
    )


def finish_row(finish: Finish) -> tuple[object, ...]:
    """What ``jobs.finish`` is given."""
    fence = finish.fence
    result = None if finish.result is None else json.dumps(finish.result)
    return (
        fence.job_id,
        fence.attempt_id,
        fence.owner,
        str(finish.status),
        result,
        finish.reason,
        finish.error_code,
        finish.error,
    )


def release_row(release: Release) -> tuple[object, ...]:
    """What ``jobs.release`` is given."""
    fence = release.fence
    free = 0 if release.uses_attempt else 1
    delay_us = release.delay_ms * MILLISECOND
    return (
        fence.job_id,
        fence.attempt_id,
        fence.owner,
        delay_us,
        free,
        release.reason,
        release.error_code,
        release.error,
    )


def exhausted_row(release: Release) -> tuple[object, ...]:
    """What ``jobs.bury`` is given for a job that could not be released because it has no attempt left."""
    fence = release.fence
    code = release.error_code or "RETRIES_EXHAUSTED"
    return (fence.job_id, fence.attempt_id, "running", fence.owner, release.reason, code, release.error)


def replay_of(letter: Row, job_id: str, actor: str) -> NewJob:
    """The job that does again what a dead letter speaks of."""
    return NewJob(
        id=job_id,
        kind=letter["kind"],
        submission_id=letter["submission_id"],
        rejudge_batch_id=letter["rejudge_batch_id"],
        chain_run_id=letter["chain_run_id"],
        node_id=letter["node_id"],
        origin_job_id=letter["id"],
        priority=letter["priority"],
        timeout_ms=letter["timeout_ms"],
        payload=json.loads(letter["payload"]),
        actor=actor,
        trace_id=letter["trace_id"],
    )
