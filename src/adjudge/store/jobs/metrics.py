"""Metrics and log lines of jobs, written after the commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.domain.failure_class import classify_failed_job
from adjudge.domain.states import JobStatus
from adjudge.observe import metrics, tracing
from adjudge.observe.logs import get_logger
from adjudge.store.chains.models import node_attempt
from adjudge.store.engine.driver import Tx
from adjudge.store.jobs import spans
from adjudge.store.jobs.models import Job, NewJob

_log = get_logger(__name__)
_SECOND = 1_000_000
_IDS_LOGGED = 20
_CODES_MAX = 100
_codes: set[str] = set()
COUNTED_KINDS = frozenset({"judge"})
"""Kinds of jobs whose every transition is counted."""


def log_fields(job: Job) -> dict[str, object]:
    """The fields of every log line about an attempt."""
    return {
        "job_id": job.id,
        "attempt_id": job.attempt_id,
        "trace_id": job.trace_id,
        "kind": job.kind,
        **_about(job),
        **({} if job.chain_run_id is None else {"node_attempt": node_attempt(job)}),
    }


def _about(job: Job | NewJob) -> dict[str, object]:
    """What the job belongs to: a node of a run, or what its payload names."""
    if job.chain_run_id is not None:
        return {"run_id": job.chain_run_id, "node_id": job.node_id}
    return request_fields(job.payload)


def request_fields(payload: Mapping[str, Any]) -> dict[str, object]:
    """The user and the object of the request that created the job, if its payload names them."""
    get = payload.get
    fields = {"submission_id": get("submission_id"), "user_id": get("user_id"), "language": get("language")}
    if (request_id := get("request_id")) is not None:
        fields["request_id"] = request_id
    return fields


def record_enqueued(jobs: Sequence[NewJob]) -> None:
    """Count and log jobs that were created."""
    for kind, count in _kinds(jobs).items():
        metrics.JOBS_ENQUEUED.labels(kind).inc(count)
    _log.info_many(
        "job_enqueued",
        (
            {
                "stage": "enqueued",
                "job_id": job.id,
                "trace_id": job.effective_trace_id,
                "kind": job.kind,
                **_about(job),
            }
            for job in jobs
        ),
    )


def record_started(jobs: Sequence[Job]) -> None:
    """Count jobs that were claimed, and how long each waited for its first start since it was created."""
    for kind, count in _kinds(jobs).items():
        metrics.JOBS_STARTED.labels(kind).inc(count)
    if tracing.state.is_on:
        spans.record_waits(jobs)
    for job in jobs:
        if job.attempt_id == 1 and job.started_at is not None:
            metrics.QUEUE_WAIT.labels(job.kind).observe(_seconds(job.created_at, job.started_at))


def record_failed_attempt(kind: str, code: str) -> None:
    """Count an attempt that ended with an error. Codes of plug-ins are not bounded, the label is."""
    if len(_codes) < _CODES_MAX:
        _codes.add(code)
    metrics.JOB_ATTEMPT_FAILURES.labels(kind, code if code in _codes else "other").inc()


def job_ids_fields(job_ids: Sequence[str]) -> dict[str, object]:
    """The fields of a log line about several jobs: how many, and the ids of the first."""
    return {"jobs": len(job_ids), "job_ids": list(job_ids[:_IDS_LOGGED])}


def _seconds(start_us: int, end_us: int) -> float:
    """The time between two timestamps; the clock of the database may have been set back in between."""
    return max(0, end_us - start_us) / _SECOND


def _kinds(jobs: Sequence[Job | NewJob]) -> dict[str, int]:
    """Count jobs by kind; without ``Counter``, because there is mostly one job."""
    found: dict[str, int] = {}
    for job in jobs:
        found[job.kind] = found.get(job.kind, 0) + 1
    return found


def count_queued(tx: Tx, kinds: Sequence[str]) -> None:
    """Count judge runs whose message is in the stream, once that is committed."""
    if number := sum(kind in COUNTED_KINDS for kind in kinds):
        counter = metrics.JUDGE_RUN_TRANSITIONS.labels(str(JobStatus.PENDING), str(JobStatus.QUEUED))
        tx.on_commit(lambda: counter.inc(number))


def record_transitions(tx: Tx, jobs: Sequence[Job]) -> None:
    """Count failures and the transitions of judge runs, and time those that ended, once they are committed."""
    failed = [job for job in jobs if job.status is JobStatus.FAILED]
    runs = [job for job in jobs if job.kind in COUNTED_KINDS]
    if not runs and not failed and not tracing.state.is_on:
        return

    def count() -> None:
        if tracing.state.is_on:
            spans.record_jobs(jobs)
        for job in failed:
            metrics.JOB_FAILURES.labels(job.kind, classify_failed_job(job.kind, job.reason, job.error_code)).inc()
        for job in runs:
            metrics.JUDGE_RUN_TRANSITIONS.labels(str(job.prior_status), str(job.status)).inc()
            _time_run(job)

    tx.on_commit(count)


def _time_run(job: Job) -> None:
    """Time a judge run that ended: its last attempt, if it was running, and the whole time to its verdict."""
    if job.finished_at is None:
        return
    if job.started_at is not None and job.prior_status is JobStatus.RUNNING:
        metrics.JUDGE_RUN_DURATION.labels(str(job.status)).observe(_seconds(job.started_at, job.finished_at))
    if job.status is not JobStatus.CANCELED and job.rejudge_batch_id is None:
        metrics.VERDICT_LATENCY.observe(_seconds(job.created_at, job.finished_at))
