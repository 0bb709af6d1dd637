"""Writing ends: whatever finished while the last transaction was under way goes into the next one.

A job that follows from one that ended (the next node of a chain) may be claimed in the same transaction by a worker
that has a place for it: it then begins as soon as the commit is known, with no message in between. Where the owner of
the jobs knows a short way for both (``job_values.Step``), that is taken first, in a transaction of its own.

Only after the commit are messages acknowledged. A database that is away is tried again for as long as the lease may
hold; whether a commit whose answer was lost happened is found out by sending it again: the fence lets it through once.
What such a commit claimed never starts; its lease expires without a heartbeat, and the attempt is refunded.
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
"""Between two tries to write while the database cannot serve: well within a lease."""
_ERROR_CHARACTERS = 2_000
REASON_WORKER_DRAINED = "worker_drained"
_WRITTEN = {
    status: metrics.WORKER_FINALIZE.labels(str(status))
    for status in (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.PENDING)
}


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How one attempt ended: with a completion, with an error, or released."""

    job: Job
    fence: Fence
    completion: HandlerResult | None = None
    error: BaseException | None = None
    reason: str = REASON_WORKER_DRAINED
    """Why it was released, if it was."""

    @property
    def status(self) -> JobStatus:
        """What the job becomes by it, unless it has no attempt left."""
        if self.completion is not None:
            return self.completion.status
        return JobStatus.FAILED if _is_final(self.error) else JobStatus.PENDING


class Places(Protocol):
    """Where jobs that follow from ended ones can run: the worker itself."""

    def room(self, ends: Sequence[AttemptResult]) -> FollowUpSlots:
        """What can be gone on with after all of these."""
        ...

    def preload_cached(self, jobs: Sequence[Job], ends: Sequence[AttemptResult]) -> Sequence[Job]:
        """Jobs that follow from these ends with what they need to know, as far as the ends tell."""
        ...

    def start_follow_up(self, end: AttemptResult, job: Job, claimed_at: float) -> None:
        """Run a job that was claimed in the transaction that wrote ``end``, which has committed."""
        ...

    def now(self) -> float:
        """The clock that leases are held by."""
        ...


@dataclass(eq=False, slots=True)
class _PendingResult:
    end: AttemptResult
    reason: RefusalReason | None = None
    """Why the fence refused the end, if it did."""
    error: Exception | None = None
    """Why the end cannot be written, if it cannot."""
    is_written: bool = False
    """Whether it is done with: written, refused or impossible."""
    is_withdrawn: bool = False
    """Nobody waits for it any more: its lease is lost."""


class Finisher:
    """Turns ends into rows, many of one kind in one transaction."""

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
        """Wait until the end is written; the reason when the fence refused it.

        The caller may be canceled when the lease is lost: nobody waits for such an end any more, and it is not written.
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
        """Write no more: what is under way is undone."""
        for batcher in self._batchers.values():
            await batcher.close()

    async def _write(self, batch: Sequence[_PendingResult]) -> list[None]:
        """Write ends; again and again while the database is away, until each is written or withdrawn."""
        left = [*batch]
        while left:
            left = [waiting for waiting in left if not waiting.is_withdrawn]
            left = await self._write_once(left)
        return [None] * len(batch)

    async def _write_once(self, batch: list[_PendingResult]) -> list[_PendingResult]:
        """Try to write ends; after a pause, return those that are to be tried again."""
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
        except Exception as error:  # noqa: BLE001 — one end that cannot be written must not take the others along
            await self._write_apart(batch, error)
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
            _settle(waiting, reasons.get(waiting.end.fence.job_id))

    async def _write_apart(self, batch: list[_PendingResult], error: Exception) -> None:
        """Find the end that cannot be written, by writing each alone; only its future gets the error."""
        if len(batch) > 1:
            for waiting in batch:
                await self._write_batch([waiting])
            return
        with context(**log_fields(batch[0].end.job)):
            _log.error("finish_failed", stage="refused", error=repr(error))
        batch[0].error, batch[0].is_written = error, True

    def _finish(self, end: AttemptResult) -> JobResult:
        """How the attempt ends: as its handler says, by its error, or by its release."""
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
    """The pauses that the job itself asks for, as a chain's node may, or the usual ones."""
    base_ms = job.payload.get("backoff_ms")
    return replace(usual, base_ms=int(base_ms)) if base_ms is not None else usual


def error_code(error: BaseException) -> str:
    """The stable name of an error."""
    return str(getattr(error, "code", type(error).__name__))


def _text(error: BaseException) -> str:
    """What is kept of an error; whatever it says, every database can hold it."""
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


def _settle(waiting: _PendingResult, reason: RefusalReason | None) -> None:
    if reason is None:
        _WRITTEN[waiting.end.status].inc()
    else:
        metrics.WORKER_FINALIZE_REJECTED.labels(str(reason)).inc()
        if reason is RefusalReason.STALE_ATTEMPT:
            metrics.WORKER_STALE_ATTEMPT.inc()
    waiting.reason, waiting.is_written = reason, True
