"""What is said of jobs once it is committed: figures, and a log line when one is created."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.store.driver import Tx
from adjudge.store.job_values import Job, NewJob

_log = get_logger(__name__)
_SECOND = 1_000_000


def tell_enqueued(tx: Tx, jobs: Sequence[NewJob]) -> None:
    """Count and log jobs that were created."""

    def tell() -> None:
        for kind, count in Counter(job.kind for job in jobs).items():
            metrics.JOBS_ENQUEUED.labels(kind).inc(count)
        for job in jobs:
            _log.info(
                "job_enqueued",
                stage="enqueued",
                job_id=job.id,
                trace_id=job.trace,
                kind=job.kind,
                submission_id=job.submission_id,
                user_id=job.payload.get("user_id"),
                language=job.payload.get("language"),
            )

    if jobs:
        tx.on_commit(tell)


def count_started(tx: Tx, jobs: Sequence[Job]) -> None:
    """Count attempts that began."""

    def count() -> None:
        for kind, number in Counter(job.kind for job in jobs).items():
            metrics.JOBS_STARTED.labels(kind).inc(number)

    if jobs:
        tx.on_commit(count)


def count_transitions(tx: Tx, jobs: Sequence[Job]) -> None:
    """Count the transitions of judge runs, and time those that ended, once they are committed."""
    runs = [job for job in jobs if job.kind == "judge"]
    if not runs:
        return

    def count() -> None:
        for job in runs:
            metrics.JUDGE_RUN_TRANSITIONS.labels(str(job.prior_status), str(job.status)).inc()
            if job.started_at is not None and job.finished_at is not None:
                seconds = (job.finished_at - job.started_at) / _SECOND
                metrics.JUDGE_RUN_DURATION.labels(str(job.status)).observe(seconds)

    tx.on_commit(count)
