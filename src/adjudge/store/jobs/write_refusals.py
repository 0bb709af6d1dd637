"""Explains, logs and counts refused writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adjudge.domain.errors import RefusalReason
from adjudge.domain.states import JOB, JobStatus
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.store.engine.driver import Tx
from adjudge.store.jobs.models import Fence, JobState, RefusedWrite

_log = get_logger(__name__)


def explain_fenced_write(row: JobState | None, fence: Fence) -> RefusalReason:
    if row is None:
        return RefusalReason.NOT_FOUND
    if row.attempt_id > fence.attempt_id:
        return RefusalReason.STALE_ATTEMPT
    if row.status in JOB.terminal:
        return RefusalReason.ALREADY_FINISHED
    if row.status is not JobStatus.RUNNING:
        return RefusalReason.NOT_IN_EXPECTED_STATE
    return RefusalReason.LEASE_LOST_OR_OWNER_MISMATCH


def explain_claim(row: JobState | None) -> RefusalReason:
    if row is None:
        return RefusalReason.NOT_FOUND
    if row.status in JOB.terminal:
        return RefusalReason.ALREADY_FINISHED
    if row.status is JobStatus.RUNNING and (row.lease_until or 0) > row.now:
        return RefusalReason.LEASE_STILL_VALID
    if row.attempt_id >= row.max_attempts:
        return RefusalReason.ATTEMPTS_EXHAUSTED
    if row.status is not JobStatus.RUNNING and row.available_at > row.now:
        return RefusalReason.NOT_DUE
    return RefusalReason.NOT_IN_EXPECTED_STATE


def log_refusals(
    tx: Tx, refused: Sequence[RefusedWrite], found: Mapping[str, JobState], attempts: Mapping[str, int] | None = None
) -> None:
    """Log and count refused writes after the transaction; ``attempts`` are those of the callers."""
    if not refused:
        return

    def tell() -> None:
        for item in refused:
            row = found.get(item.job_id)
            if row is not None and row.kind == "judge":
                metrics.JUDGE_RUN_CONFLICTS.inc()
            _log.info(
                "job_write_refused",
                job_id=item.job_id,
                attempt_id=(attempts or {}).get(item.job_id),
                reason=str(item.reason),
                trace_id=row and row.trace_id,
                db_status=row and row.status,
                db_attempt_id=row and row.attempt_id,
                db_lease_owner=row and row.lease_owner,
                db_lease_until=row and row.lease_until,
            )

    tx.on_commit(tell)
