"""Spans of jobs, recorded after the commit: the whole job, its wait for a worker, its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adjudge.domain.states import JobStatus
from adjudge.observe import tracing
from adjudge.observe.tracing import Span, SpanKind
from adjudge.store.jobs.models import Job

_NS_PER_US: Final = 1_000


def record_jobs(jobs: Sequence[Job]) -> None:
    """The spans of jobs that have ended, from their creation to their end."""
    for job in jobs:
        if job.finished_at is not None and job.trace_id is not None and tracing.is_sampled(job.trace_id):
            tracing.record(
                Span(
                    name=f"node {job.node_id}" if job.node_id is not None else f"job {job.kind}",
                    trace_id=job.trace_id,
                    span_id=tracing.job_span_id(job.id),
                    start_ns=job.created_at * _NS_PER_US,
                    end_ns=job.finished_at * _NS_PER_US,
                    parent_id=_parent_id(job),
                    attributes={
                        "adjudge.job.id": job.id,
                        "adjudge.job.kind": job.kind,
                        "adjudge.job.status": str(job.status),
                        "adjudge.job.attempts": job.attempt_id,
                        "adjudge.submission.id": job.submission_id,
                        "adjudge.chain.run.id": job.chain_run_id,
                        "adjudge.chain.node.id": job.node_id,
                    },
                    error=(job.error_code or "FAILED") if job.status is JobStatus.FAILED else None,
                )
            )


def _parent_id(job: Job) -> str | None:
    """The span of the chain run, the job or the request that created the job."""
    if job.chain_run_id is not None:
        return tracing.chain_run_span_id(job.chain_run_id)
    if (cause_id := job.payload.get("cause_job_id")) is not None:
        return tracing.job_span_id(cause_id)
    request_id = job.payload.get("request_id")
    return None if request_id is None else tracing.request_span_id(request_id)


def record_waits(jobs: Sequence[Job]) -> None:
    """The spans from the creation of jobs to their claim; a retry waits from its release, which is not stored."""
    for job in jobs:
        is_first = job.attempt_id == 1 and job.started_at is not None
        if is_first and job.trace_id is not None and tracing.is_sampled(job.trace_id):
            tracing.record(
                Span(
                    name="claim",
                    trace_id=job.trace_id,
                    span_id=tracing.derive_span_id("claim", job.id, job.attempt_id),
                    start_ns=job.created_at * _NS_PER_US,
                    end_ns=(job.started_at or 0) * _NS_PER_US,
                    parent_id=tracing.job_span_id(job.id),
                    kind=SpanKind.CONSUMER,
                    attributes={"adjudge.job.id": job.id, "adjudge.worker": job.actor},
                )
            )


def record_verdict(job: Job, verdict: str) -> None:
    """A span without duration at the time of the verdict."""
    if job.finished_at is not None and job.trace_id is not None and tracing.is_sampled(job.trace_id):
        at_ns = job.finished_at * _NS_PER_US
        tracing.record(
            Span(
                name="verdict",
                trace_id=job.trace_id,
                span_id=tracing.derive_span_id("verdict", job.id),
                start_ns=at_ns,
                end_ns=at_ns,
                parent_id=tracing.job_span_id(job.id),
                attributes={"adjudge.verdict": verdict, "adjudge.submission.id": job.submission_id},
            )
        )
