"""Runs claimed jobs, one task each: calls the handler, passes its result to the finisher, starts follow-up jobs.

A task is canceled only while its handler runs. A result that is being written is never interrupted: if the lease is
lost meanwhile, the result is not sent again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from adjudge.domain.errors import InternalFault, RefusalReason, Unavailable
from adjudge.domain.failure_class import FAILED
from adjudge.domain.states import JobStatus
from adjudge.observe import metrics, tracing
from adjudge.observe.logs import context, get_logger
from adjudge.observe.tracing import Span
from adjudge.store import Database
from adjudge.store.jobs.commands import NEVER_STARTED, JobCommands
from adjudge.store.jobs.metrics import log_fields
from adjudge.store.jobs.models import Fence, Job, JobResult
from adjudge.worker.acknowledger import Acknowledger
from adjudge.worker.failures import failed_result
from adjudge.worker.finisher import Finisher, FinishOutcome
from adjudge.worker.handler import Handler, HandlerResult
from adjudge.worker.leases import LeaseKeeper
from adjudge.worker.slots import Claim, Slots, StartRateLimiter
from adjudge.worker.worker_settings import WorkerOptions

_log = get_logger(__name__)
REASON_WORKER_DRAINED: Final = "worker_drained"


@dataclass(eq=False, slots=True)
class _Attempt:
    """An attempt that this process runs."""

    claim: Claim
    task: asyncio.Task[None] = field(init=False)
    lost: RefusalReason | None = None
    """Why its lease is lost: nothing of it may be written any more."""
    is_released: bool = False
    """Whether it is to be released, because the worker stops."""
    in_handler: bool = False
    has_failed: bool = False
    """Whether its result is an error."""
    has_slot: bool = True

    @property
    def is_stopped(self) -> bool:
        return self.lost is not None or self.is_released

    def stop(self) -> None:
        """Cancel the handler. A transaction is not interrupted; a handler that is not called yet will not be."""
        if self.in_handler:
            self.task.cancel()


class Runner:
    """Runs the claimed jobs of one worker."""

    def __init__(
        self,
        database: Database,
        jobs: JobCommands,
        handlers: Mapping[str, Handler],
        settings: WorkerOptions,
        slots: Slots,
        *,
        finisher: Finisher,
        acknowledger: Acknowledger,
        keeper: LeaseKeeper,
        rate: StartRateLimiter | None = None,
        random_unit: Callable[[], float] = random.random,
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._handlers = handlers
        self._finisher = finisher
        self._acknowledger = acknowledger
        self._keeper = keeper
        self._slots = slots
        self._settings = settings
        self._rate = rate
        self._random_unit = random_unit
        self._attempts: dict[Fence, _Attempt] = {}
        self._is_releasing = False

    def __len__(self) -> int:
        """The number of running jobs."""
        return len(self._attempts)

    def start(self, claims: Sequence[Claim]) -> None:
        """Run claimed jobs."""
        for claim in claims:
            self._start(claim)

    async def drain(self, deadline: float) -> None:
        """Wait until nothing runs; what still runs at the deadline is released."""
        clock = asyncio.get_running_loop().time
        while self._attempts and clock() < deadline:
            await asyncio.wait(self._tasks(), timeout=deadline - clock())
        if self._attempts:
            self.release_all()
        while self._attempts:
            await asyncio.wait(self._tasks())

    def release_all(self) -> None:
        """Stop running jobs and release them, also those that start from now on; results being written are kept."""
        self._is_releasing = True
        for attempt in self._attempts.values():
            attempt.is_released = True
            attempt.stop()

    async def close(self) -> None:
        """Cancel every task at once, also one that writes: only for a worker that is itself canceled."""
        tasks = self._tasks()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [attempt.task for attempt in self._attempts.values()]

    def _start(self, claim: Claim) -> None:
        fence, loop = claim.fence, asyncio.get_running_loop()
        attempt = self._attempts[fence] = _Attempt(claim, is_released=self._is_releasing)
        fields = log_fields(claim.job)
        attempt.task = loop.create_task(self._run(attempt, fields), name=f"job-{claim.job.id}")
        attempt.task.add_done_callback(lambda _: self._end(attempt))
        if self._rate is not None:
            self._rate.consume()

        def on_lost(reason: RefusalReason) -> None:
            with suppress(RuntimeError):  # the event loop is closed, and the job has ended with it
                loop.call_soon_threadsafe(self._lose, fence, reason)  # the lease keeper may run on its own thread

        self._keeper.add(fence, on_lost, claimed_at=claim.claimed_at, fields=fields)
        if claim.is_takeover:
            metrics.WORKER_RECLAIM_INFLIGHT.inc()

    def _end(self, attempt: _Attempt) -> None:
        self._keeper.remove(attempt.claim.fence)
        del self._attempts[attempt.claim.fence]
        self._free_slot(attempt)
        self._slots.record_written()
        if attempt.claim.is_takeover:
            metrics.WORKER_RECLAIM_INFLIGHT.dec()

    def _lose(self, fence: Fence, reason: RefusalReason) -> None:
        """Stop an attempt whose lease is lost; one that has just ended is no longer known."""
        if (attempt := self._attempts.get(fence)) is not None:
            attempt.lost = reason
            attempt.stop()
            self._finisher.withdraw(fence)

    def _free_slot(self, attempt: _Attempt) -> None:
        """Free the slot once, when the handler has returned: waiting for a commit uses no processor."""
        if attempt.has_slot:
            attempt.has_slot = False
            self._slots.release(attempt.claim.needs)

    async def _run(self, attempt: _Attempt, fields: Mapping[str, object]) -> None:
        with context(**fields):
            _log.info("job_started", stage="started", worker=self._settings.name)
            started_ns = time.time_ns()
            result = await self._execute(attempt)
            if tracing.state.is_on and tracing.is_sampled(attempt.claim.job.trace_id):
                self._record_span(attempt, result, started_ns)
            self._free_slot(attempt)
            outcome = FinishOutcome(is_withdrawn=True)
            if attempt.lost is None:
                result, outcome = await self._write(attempt, result)
            self.start(outcome.claimed)
            if outcome.is_withdrawn:
                self._acknowledge_lost(attempt)
                return
            _log_outcome(result, outcome)
            self._acknowledge(attempt)  # written, or refused for good: nothing is left to do

    def _record_span(self, attempt: _Attempt, result: JobResult, started_ns: int) -> None:
        """The span of the call of the handler."""
        job = attempt.claim.job
        tracing.record(
            Span(
                name=f"attempt {job.attempt_id}",
                trace_id=job.trace_id or "",
                span_id=tracing.attempt_span_id(job.id, job.attempt_id),
                start_ns=started_ns,
                end_ns=time.time_ns(),
                parent_id=tracing.job_span_id(job.id),
                attributes={"adjudge.job.id": job.id, "adjudge.worker": self._settings.name},
                error=result.error_code,
            )
        )

    def _acknowledge(self, attempt: _Attempt) -> None:
        if attempt.claim.message is not None:
            self._acknowledger.offer([attempt.claim.message])

    def _acknowledge_lost(self, attempt: _Attempt) -> None:
        if attempt.lost is RefusalReason.ALREADY_FINISHED:  # the job was canceled: nothing is left to run
            self._acknowledge(attempt)

    async def _execute(self, attempt: _Attempt) -> JobResult:
        """Call the handler. A last attempt whose start cannot be written is not run but released."""
        job, fence = attempt.claim.job, attempt.claim.fence
        if job.attempt_id >= job.max_attempts and not await self._confirm(fence):
            return _released(job, fence, NEVER_STARTED)
        try:
            completion = None if attempt.is_stopped else await self._call_handler(attempt)
        except Exception as error:  # noqa: BLE001 — any exception of a handler is classified, stored and shown
            _log.warning("job_attempt_failed", stage="failed", error=repr(error))
            attempt.has_failed = True
            return self._failed(job, fence, error)
        return _released(job, fence) if completion is None else _completed(job, fence, completion)

    async def _confirm(self, fence: Fence) -> bool:
        """Write that a last attempt starts: if its worker is lost before that, the attempt is refunded."""
        try:
            outcome = await self._database.transact(
                lambda tx: self._jobs.renew(tx, [fence], lease_ms=self._settings.lease_ms)
            )
        except Unavailable as error:
            _log.warning("start_unconfirmed", error=error.message)
            return False
        return bool(outcome.done)

    async def _call_handler(self, attempt: _Attempt) -> HandlerResult | None:
        """Call the handler within the deadline of the job; return None if it was stopped."""
        job = attempt.claim.job
        timeout_ms = min(job.timeout_ms or self._settings.deadline_ms, self._settings.deadline_ms)
        deadline = asyncio.timeout(timeout_ms / 1_000)
        attempt.in_handler = True
        try:
            async with deadline:
                return await self._handlers[job.kind].run(job)
        except asyncio.CancelledError:
            if not attempt.is_stopped:
                raise
            attempt.task.uncancel()
            return None
        except TimeoutError:  # its own is passed on like any other error
            if deadline.expired():
                raise InternalFault(f"The job outlived its deadline of {timeout_ms} ms.") from None
            raise
        finally:
            attempt.in_handler = False

    async def _write(self, attempt: _Attempt, result: JobResult) -> tuple[JobResult, FinishOutcome]:
        """Write the result; if that is impossible, write the error, so that the job need not wait for its lease."""
        job = attempt.claim.job
        try:
            return result, await self._finisher.finish(job, result)
        except Exception as error:
            if attempt.has_failed:
                raise
            instead = self._failed(job, attempt.claim.fence, error)
            return instead, await self._finisher.finish(job, instead)

    def _failed(self, job: Job, fence: Fence, error: Exception) -> JobResult:
        return failed_result(job, fence, error, self._settings.retry, self._random_unit())


def _released(job: Job, fence: Fence, reason: str = REASON_WORKER_DRAINED) -> JobResult:
    return JobResult(fence, JobStatus.PENDING, reason=reason, refund=True, job=job)


def _completed(job: Job, fence: Fence, completion: HandlerResult) -> JobResult:
    if completion.status is JobStatus.SUCCEEDED:
        return JobResult(fence, result=completion.result, typed_result=completion.typed_result, job=job)
    return JobResult(
        fence,
        completion.status,
        completion.result,
        completion.typed_result,
        FAILED,
        completion.error_code or "FAILED",
        completion.error,
        dead_letter=completion.dead_letter,
        job=job,
    )


def _log_outcome(result: JobResult, outcome: FinishOutcome) -> None:
    if result.refund:
        _log.info("job_released", stage="released", reason=str(outcome.refused or result.reason))
    elif outcome.refused is not None:
        _log.warning("finish_refused", stage="refused", reason=str(outcome.refused))
    elif outcome.status is JobStatus.PENDING:
        _log.info("job_retry_scheduled", stage="retrying", error_code=result.error_code, delay_ms=result.delay_ms)
    else:
        is_dead = outcome.status is JobStatus.FAILED and (result.dead_letter or result.status is JobStatus.PENDING)
        log = _log.warning if is_dead else _log.info
        log("job_finished", stage="finished", status=str(outcome.status), dead_lettered=is_dead)
