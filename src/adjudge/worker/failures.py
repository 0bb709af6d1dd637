"""Decides what is written for an attempt that failed: a final failure, or a retry after a delay.

An attempt whose worker is lost has no result; ``JobCommands.release_expired`` (``store/jobs/commands.py``) decides it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from adjudge.domain.failure_class import FAILED
from adjudge.domain.retry import RetryClass, RetryPolicy, classify
from adjudge.domain.states import JobStatus
from adjudge.store.jobs.models import Fence, Job, JobResult

_ERROR_CHARACTERS: Final = 2_000


def failed_result(job: Job, fence: Fence, error: Exception, policy: RetryPolicy, random_unit: float) -> JobResult:
    """The result of an attempt whose handler raised ``error``.

    A retry of the last attempt becomes a failure with a dead letter when it is written: only the row knows whether an
    attempt is left.
    """
    code, text = str(getattr(error, "code", type(error).__name__)), _error_text(error)
    if classify(error) is RetryClass.FINAL:
        return JobResult(fence, JobStatus.FAILED, reason=FAILED, error_code=code, error=text, job=job)
    delay_ms = _policy_of_job(job, policy).delay_ms(fence.attempt_id, random_unit)
    return JobResult(fence, JobStatus.PENDING, reason="retry", error_code=code, error=text, delay_ms=delay_ms, job=job)


def _policy_of_job(job: Job, policy: RetryPolicy) -> RetryPolicy:
    """The policy of the worker, with the first delay of the job if its payload has one, as that of a chain node has."""
    base_ms = job.payload.get("backoff_ms")
    return policy if base_ms is None else replace(policy, base_ms=int(base_ms))


def _error_text(error: BaseException) -> str:
    """The text stored for an error, limited to characters that every database can store."""
    text = f"{type(error).__name__}: {error}"[:_ERROR_CHARACTERS]
    return text.encode(errors="replace").decode().replace("\0", "␀")
