"""Between values and rows: what the statements on jobs are given and what they return."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from adjudge.domain.retry import RetryPolicy
from adjudge.domain.states import JobStatus
from adjudge.store.engine.statement import Row
from adjudge.store.jobs.models import Job, JobRelease, JobResult, NewJob

MILLISECOND = 1_000
"""In microseconds, the unit of every moment in the database."""


_USUAL_ATTEMPTS = RetryPolicy().max_attempts
_STATUS = {str(status): status for status in JobStatus}
_DECODE = json.JSONDecoder().raw_decode
_AT_STATUS, _AT_PRIOR, _AT_PAYLOAD = (Job._fields.index(name) for name in ("status", "prior_status", "payload"))


def job_from_row(row: Iterable[Any]) -> Job:
    """The job as an operation left it.

    By position, because looking twenty names up in every row was a third of what a batch cost on SQLite; statements
    return the columns in the order of ``Job``'s fields, which a test holds.
    """
    values = list(row)
    values[_AT_STATUS] = _STATUS[values[_AT_STATUS]]
    values[_AT_PRIOR] = _STATUS[values[_AT_PRIOR]]
    values[_AT_PAYLOAD] = _DECODE(values[_AT_PAYLOAD])[0]
    return Job(*values)


def insert_row(job: NewJob, usual_attempts: int = _USUAL_ATTEMPTS) -> tuple[object, ...]:
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
        usual_attempts if job.max_attempts is None else job.max_attempts,
        job.priority,
        job.timeout_ms,
        job.delay_ms * MILLISECOND,
        json.dumps(job.payload),
        job.actor,
        job.effective_trace_id,
    )


def finish_row(finish: JobResult) -> tuple[object, ...]:
    """What ``jobs.finish`` is given."""
    fence = finish.fence
    result = None if finish.result is None else json.dumps(finish.result)
    return (
        fence.job_id,
        fence.attempt_id,
        fence.lease_owner,
        str(finish.status),
        result,
        finish.reason,
        finish.error_code,
        finish.error,
    )


def release_row(release: JobRelease) -> tuple[object, ...]:
    """What ``jobs.release`` is given."""
    fence = release.fence
    free = 0 if release.uses_attempt else 1
    delay_us = release.delay_ms * MILLISECOND
    return (
        fence.job_id,
        fence.attempt_id,
        fence.lease_owner,
        delay_us,
        free,
        release.reason,
        release.error_code,
        release.error,
    )


def dead_letter_row(release: JobRelease) -> tuple[object, ...]:
    """What ``jobs.bury`` is given for a job that could not be released because it has no attempt left."""
    fence = release.fence
    code = release.error_code or "RETRIES_EXHAUSTED"
    return (fence.job_id, fence.attempt_id, "running", fence.lease_owner, release.reason, code, release.error)


def replay_job(letter: Row, job_id: str, actor: str) -> NewJob:
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
