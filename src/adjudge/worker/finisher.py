"""Writes the results of attempts: everything that finished during one transaction is written by the next one.

A follow-up job (the next node of a chain) may be claimed in the same transaction by a worker that has a free slot for
it. It then starts as soon as the commit is confirmed, without a message.

Messages are acknowledged only after the commit. If the database is unavailable, the write is retried until the lease is
lost. If the reply to a commit was lost, the write is sent again: the fence accepts it once. Jobs that such a commit
claimed do not start; their leases expire without a heartbeat, and the attempts are refunded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from adjudge.concurrency.batcher import Batcher
from adjudge.domain.errors import RefusalReason, Unavailable
from adjudge.domain.retry import RetryClass, RetryPolicy, classify
from adjudge.domain.states import JobStatus
from adjudge.observe import metrics
from adjudge.observe.logs import context, get_logger
from adjudge.observe.outages import Outage
from adjudge.store import Database
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.metrics import log_fields
from adjudge.store.jobs.models import Fence, FollowUpSlots, Job, JobResult
from adjudge.worker.handler import HandlerResult

_log = get_logger(__name__)
_BATCH = 256
_LONGEST_PAUSE_SEC = 5.0
"""Maximum delay between two attempts to write while the database is unavailable: well within a lease."""
_ERROR_CHARACTERS = 2_000
REASON_WORKER_DRAINED = "worker_drained"
_WRITTEN = {
    status: metrics.WORKER_FINALIZE.labels(str(status))
    for status in (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.PENDING)
}


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How one attempt ended: with the result of its handler, with an error, or released."""

    job: Job
    fence: Fence
    completion: HandlerResult | None = None
    error: BaseException | None = None
    reason: str = REASON_WORKER_DRAINED
    """Why the job was released, if it was."""

    @property
    def status(self) -> JobStatus:
        """The status that the job gets, unless it has no attempt left."""
        if self.completion is not None:
            return self.completion.status
        return JobStatus.FAILED if _is_final(self.error) else JobStatus.PENDING


class Places(Protocol):
    """Starts follow-up jobs of finished jobs. Implemented by the worker."""

    def room(self, ends: Sequence[AttemptResult]) -> FollowUpSlots:
        """The slots that are available for follow-up jobs of these results."""
        ...

    def preload_cached(self, jobs: Sequence[Job], ends: Sequence[AttemptResult]) -> Sequence[Job]:
        """The follow-up jobs with their preloaded data, as far as it follows from these results."""
        ...

    def start_follow_up(self, end: AttemptResult, job: Job, claimed_at: float) -> None:
        """Run a job that was claimed in the transaction that wrote ``end``, which has committed."""
        ...

    def now(self) -> float:
        """The time on the clock that measures leases."""
        ...


@dataclass(eq=False, slots=True)
class _PendingResult:
    end: AttemptResult
    reason: RefusalReason | None = None
    """Why the fence refused the result, if it did."""
    error: Exception | None = None
    """Why the result cannot be written, if it cannot."""
    is_written: bool = False
    """Whether it needs no further write: it was written, refused, or cannot be written."""
    is_withdrawn: bool = False
    """The caller no longer waits for it, because its lease is lost."""


class Finisher:
    """Writes results, many of one kind in one transaction."""

    def __init__(
        self,
        database: Database,
        jobs: JobCommands,
        *,
        policy: RetryPolicy,
        random_unit: Callable[[], float],
        places: Places,
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._policy = policy
        self._random_unit = random_unit
        self._places = places
        self._outage = Outage(_log, "finish_retrying", longest_sec=_LONGEST_PAUSE_SEC, random_unit=random_unit)
        self._batchers: dict[str, Batcher[_PendingResult, None]] = {}

    async def finish(self, end: AttemptResult) -> RefusalReason | None:
        """Wait until the result is written; return the reason if the fence refused it.

        The caller may be canceled because the lease is lost; the result is then not written.
        """
        batcher = self._batchers.get(end.job.kind)
        if batcher is None:
            batcher = Batcher(self._write, name=f"finisher-{end.job.kind}", max_weight=_BATCH)
            self._batchers[end.job.kind] = batcher
        waiting = _PendingResult(end)
        try:
            await batcher.put(waiting)
        finally:
            waiting.is_withdrawn = True
        if waiting.error is not None:
            raise waiting.error
        return waiting.reason

    async def close(self) -> None:
        """Stop writing; a transaction in progress is rolled back."""
        for batcher in self._batchers.values():
            await batcher.close()

    async def _write(self, batch: Sequence[_PendingResult]) -> list[None]:
        """Write results; retry while the database is unavailable, until each is written or withdrawn."""
        left = [*batch]
        while left:
            left = [waiting for waiting in left if not waiting.is_withdrawn]
            left = await self._write_once(left)
        return [None] * len(batch)

    async def _write_once(self, batch: list[_PendingResult]) -> list[_PendingResult]:
        """Try to write results; after a failure, wait and return those to be retried."""
        try:
            if batch:
                await self._write_batch(batch)
        except Unavailable as error:
            metrics.WORKER_FINALIZE_ERRORS.inc()
            await asyncio.sleep(self._outage.failed(error, jobs=len(batch)))
            return [waiting for waiting in batch if not waiting.is_written]
        return []

    async def _write_batch(self, batch: list[_PendingResult]) -> None:
        started, claimed_at = asyncio.get_running_loop().time(), self._places.now()
        ends = [waiting.end for waiting in batch]
        try:
            report = await self._database.transact(
                lambda tx: self._jobs.finish_and_claim_next(
                    tx, [self._finish(end) for end in ends], self._places.room(ends)
                )
            )
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 — one result that cannot be written must not fail the others
            await self._write_separately(batch, error)
            return
        self._outage.over()
        metrics.WORKER_FINALIZE_LATENCY.observe(asyncio.get_running_loop().time() - started)
        by_job = {end.fence.job_id: end for end in ends}
        follow_ups = {job.id: by_job[job_id] for job_id, jobs in report.claimed.items() for job in jobs}
        known = [by_job[job_id] for job_id in report.counted]
        for job in self._places.preload_cached([job for jobs in report.claimed.values() for job in jobs], known):
            self._places.start_follow_up(follow_ups[job.id], job, claimed_at)
        reasons = {item.job_id: item.reason for item in report.refused}
        for waiting in batch:
            _record_written(waiting, reasons.get(waiting.end.fence.job_id))

    async def _write_separately(self, batch: list[_PendingResult], error: Exception) -> None:
        """Write each result alone, to find the one that cannot be written; only that one gets the error."""
        if len(batch) > 1:
            for waiting in batch:
                await self._write_batch([waiting])
            return
        with context(**log_fields(batch[0].end.job)):
            _log.error("finish_failed", stage="refused", error=repr(error))
        batch[0].error, batch[0].is_written = error, True

    def _finish(self, end: AttemptResult) -> JobResult:
        """How the attempt ends: by the result of its handler, by its error, or released."""
        job, fence, error = end.job, end.fence, end.error
        if end.completion is not None:
            return _completed(end, end.completion)
        if error is None:
            return JobResult(fence, JobStatus.PENDING, reason=end.reason, refund=True, job=job)
        code, text = error_code(error), _text(error)
        if classify(error) is RetryClass.FINAL:
            return JobResult(fence, JobStatus.FAILED, reason="failed", error_code=code, error=text, job=job)
        delay_ms = _policy_of(job, self._policy).delay_ms(fence.attempt_id, self._random_unit())
        return JobResult(
            fence, JobStatus.PENDING, reason="retry", error_code=code, error=text, delay_ms=delay_ms, job=job
        )


def _policy_of(job: Job, usual: RetryPolicy) -> RetryPolicy:
    """The retry policy with the delay that the job defines (as a chain node may), or the default."""
    base_ms = job.payload.get("backoff_ms")
    return replace(usual, base_ms=int(base_ms)) if base_ms is not None else usual


def error_code(error: BaseException) -> str:
    return str(getattr(error, "code", type(error).__name__))


def _text(error: BaseException) -> str:
    """The text stored for an error, limited to characters that every database can store."""
    words = f"{type(error).__name__}: {error}"[:_ERROR_CHARACTERS]
    return words.encode(errors="replace").decode().replace("\0", "␀")


def _completed(end: AttemptResult, completion: HandlerResult) -> JobResult:
    if completion.status is JobStatus.SUCCEEDED:
        return JobResult(end.fence, result=completion.result, typed_result=completion.typed_result, job=end.job)
    return JobResult(
        end.fence,
        completion.status,
        completion.result,
        completion.typed_result,
        "failed",
        completion.error_code or "FAILED",
        completion.error,
        dead_letter=completion.dead_letter,
        job=end.job,
    )


def _is_final(error: BaseException | None) -> bool:
    return error is not None and classify(error) is RetryClass.FINAL


def _record_written(waiting: _PendingResult, reason: RefusalReason | None) -> None:
    if reason is None:
        _WRITTEN[waiting.end.status].inc()
    else:
        metrics.WORKER_FINALIZE_REJECTED.labels(str(reason)).inc()
        if reason is RefusalReason.STALE_ATTEMPT:
            metrics.WORKER_STALE_ATTEMPT.inc()
    waiting.reason, waiting.is_written = reason, True
