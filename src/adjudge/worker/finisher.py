"""Writes the results of attempts: everything that finished during one transaction is written by the next one.

A follow-up job (the next node of a chain) may be claimed in the same transaction if the worker has reserved a slot for
it. It is returned to the caller, which starts it without a message.

If the database is unavailable, the write is retried until the lease is lost. If the reply to a commit was lost, the
write is sent again: the fence accepts it once. Jobs that such a commit claimed do not start; their leases expire
without a heartbeat, and the attempts are refunded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from adjudge.concurrency.batcher import Batcher
from adjudge.domain.errors import RefusalReason, Unavailable
from adjudge.domain.states import JobStatus
from adjudge.observe import metrics
from adjudge.observe.logs import context, get_logger
from adjudge.observe.outages import Outage
from adjudge.store import Database
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.metrics import job_ids_fields, log_fields, record_failed_attempt
from adjudge.store.jobs.models import Capacity, Fence, FinishReport, Job, JobResult
from adjudge.worker.handler import FollowUpHandler, Handler
from adjudge.worker.slots import Claim, Reservation, Slots, StartRateLimiter
from adjudge.worker.worker_settings import WorkerOptions

_log = get_logger(__name__)
_BATCH = 256
_LONGEST_PAUSE_SEC = 5.0
"""Maximum delay between two attempts to write while the database is unavailable: well within a lease."""
_WRITTEN = {
    status: metrics.WORKER_FINALIZE.labels(str(status))
    for status in (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.PENDING)
}
_FOLLOW_UP = metrics.WORKER_CLAIM.labels("won", "handed_on")


class FinishOutcome(NamedTuple):
    """What became of a result."""

    refused: RefusalReason | None = None
    """Why the fence refused it, if it did."""
    claimed: tuple[Claim, ...] = ()
    """Follow-up jobs that the worker is to start."""
    is_withdrawn: bool = False
    """Whether it was not written, because its lease was lost."""
    status: JobStatus | None = None
    """The status of the job after the write."""


_WITHDRAWN = FinishOutcome(is_withdrawn=True)


@dataclass(eq=False, slots=True)
class _PendingResult:
    job: Job
    result: JobResult
    outcome: FinishOutcome | None = None
    error: Exception | None = None
    """Why the result cannot be written, if it cannot."""
    is_withdrawn: bool = False

    @property
    def is_settled(self) -> bool:
        return self.outcome is not None or self.error is not None


class Finisher:
    """Writes results, many of one kind in one transaction."""

    def __init__(
        self,
        database: Database,
        jobs: JobCommands,
        handlers: Mapping[str, Handler],
        settings: WorkerOptions,
        slots: Slots,
        *,
        clock: Callable[[], float],
        random_unit: Callable[[], float],
        rate: StartRateLimiter | None = None,
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._follow_up_handlers = {
            kind: handler for kind, handler in handlers.items() if isinstance(handler, FollowUpHandler)
        }
        self._slots = slots
        self._settings = settings
        self._clock = clock
        self._rate = rate
        self._outage = Outage(_log, "finish_retrying", longest_sec=_LONGEST_PAUSE_SEC, random_unit=random_unit)
        self._batchers: dict[str, Batcher[_PendingResult, None]] = {}
        self._pending: dict[Fence, _PendingResult] = {}
        self._may_claim = True

    async def finish(self, job: Job, result: JobResult) -> FinishOutcome:
        """Wait until the result of a job is written, refused or withdrawn."""
        batcher = self._batchers.get(job.kind)
        if batcher is None:
            batcher = Batcher(self._write, name=f"finisher-{job.kind}", max_weight=_BATCH)
            self._batchers[job.kind] = batcher
        pending = self._pending[result.fence] = _PendingResult(job, result)
        try:
            await batcher.put(pending)
        finally:
            self._pending.pop(result.fence, None)
        if pending.error is not None:
            raise pending.error
        return pending.outcome or _WITHDRAWN

    def withdraw(self, fence: Fence) -> None:
        """Do not send a result again, because its lease is lost; a transaction in progress runs to its end."""
        if (pending := self._pending.get(fence)) is not None:
            pending.is_withdrawn = True

    def stop_claiming(self) -> None:
        """Claim no more follow-up jobs."""
        self._may_claim = False

    async def close(self) -> None:
        """Stop writing; a transaction in progress is rolled back."""
        for batcher in self._batchers.values():
            await batcher.close()

    async def _write(self, batch: Sequence[_PendingResult]) -> list[None]:
        """Write results; retry while the database is unavailable, until each is written or withdrawn."""
        left = [*batch]
        while left := [pending for pending in left if not pending.is_settled and not pending.is_withdrawn]:
            try:
                await self._write_batch(left)
            except Unavailable as error:
                metrics.WORKER_FINALIZE_ERRORS.inc()
                await asyncio.sleep(self._outage.failed(error, **job_ids_fields([pending.job.id for pending in left])))
        return [None] * len(batch)

    async def _write_batch(self, batch: list[_PendingResult]) -> None:
        started = asyncio.get_running_loop().time()
        try:
            report, claimed = await self._send(batch)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 — one result that cannot be written must not fail the others
            await self._write_separately(batch, error)
            return
        self._outage.over()
        metrics.WORKER_FINALIZE_LATENCY.observe(asyncio.get_running_loop().time() - started)
        reasons = {item.job_id: item.reason for item in report.refused}
        statuses = {job.id: job.status for job in report.done}
        for pending in batch:
            job_id = pending.job.id
            refused = reasons.get(job_id)
            status = None if refused is not None else statuses.get(job_id)
            pending.outcome = FinishOutcome(refused, claimed.get(job_id, ()), status=status)
            _count(pending.job, pending.result, pending.outcome)

    async def _send(self, batch: list[_PendingResult]) -> tuple[FinishReport, dict[str, tuple[Claim, ...]]]:
        """Write results in one transaction; return its report and the claimed follow-up jobs by finished job."""
        handler = self._follow_up_handlers.get(batch[0].job.kind)
        reserved = Reservation() if handler is None else self._reserve()
        capacity = None if handler is None or not reserved.slots else self._capacity(handler, reserved)
        claimed: dict[str, tuple[Claim, ...]] = {}
        claimed_at = self._clock()
        try:
            report = await self._database.transact(
                lambda tx: self._jobs.finish_and_claim_next(tx, [pending.result for pending in batch], capacity)
            )
            claimed = {
                job_id: tuple(self._claim(job, claimed_at) for job in jobs) for job_id, jobs in report.claimed.items()
            }
        finally:
            self._slots.settle(reserved, [claim.needs for claims in claimed.values() for claim in claims])
        if handler is not None:
            handler.committed([pending.result for pending in batch if pending.job.id in report.counted])
        return report, claimed

    def _reserve(self) -> Reservation:
        """Reserve slots for follow-up jobs: as many as are free, and as there are permits."""
        if not self._may_claim:
            return Reservation()
        return self._slots.reserve(self._slots.total if self._rate is None else self._rate.permits)

    def _capacity(self, handler: FollowUpHandler, reserved: Reservation) -> Capacity:
        return Capacity(
            self._settings.name,
            self._settings.lease_ms,
            reserved.slots,
            limits=reserved.limits,
            limit_keys=lambda job: self._slots.needs(handler, job.kind, job.payload),
            is_instant=lambda job: handler.is_instant(job.payload),
        )

    def _claim(self, job: Job, claimed_at: float) -> Claim:
        _FOLLOW_UP.inc()
        needs = self._slots.needs(self._follow_up_handlers[job.kind], job.kind, job.payload)
        return Claim(job, Fence(job.id, job.attempt_id, self._settings.name), claimed_at, needs)

    async def _write_separately(self, batch: list[_PendingResult], error: Exception) -> None:
        """Write each result alone, to find the one that cannot be written; only that one gets the error."""
        if len(batch) > 1:
            for pending in batch:
                await self._write_batch([pending])
            return
        with context(**log_fields(batch[0].job)):
            _log.error("finish_failed", stage="refused", error=repr(error))
        batch[0].error = error


def _count(job: Job, result: JobResult, outcome: FinishOutcome) -> None:
    """Count what was written: a retry without an attempt left is a failure."""
    if outcome.status is not None:
        _WRITTEN[outcome.status].inc()
        if result.error_code is not None:
            record_failed_attempt(job.kind, result.error_code)
    elif outcome.refused is not None:
        metrics.WORKER_FINALIZE_REJECTED.labels(str(outcome.refused)).inc()
        if outcome.refused is RefusalReason.STALE_ATTEMPT:
            metrics.WORKER_STALE_ATTEMPT.inc()
