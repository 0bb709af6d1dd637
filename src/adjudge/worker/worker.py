"""The worker: reads no more jobs than it can run, runs only jobs it has claimed, acknowledges only after the commit."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adjudge.domain.errors import RefusalReason, Unavailable
from adjudge.domain.states import JobStatus
from adjudge.observe import metrics
from adjudge.observe.health_server import LoopHeartbeat
from adjudge.observe.logs import context, get_logger
from adjudge.observe.outages import Outage
from adjudge.store import Database
from adjudge.store.engine.notify import CHANNEL_CANCELED
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.metrics import log_fields
from adjudge.store.jobs.models import Fence, Job, NewJob
from adjudge.stream.driver import Message, Stream
from adjudge.worker.acknowledger import Acknowledger
from adjudge.worker.claimer import Claimer
from adjudge.worker.execution import Execution, stop_all
from adjudge.worker.finisher import REASON_WORKER_DRAINED, AttemptResult, Finisher
from adjudge.worker.follow_up_slots import WorkerFollowUpSlots
from adjudge.worker.handler import Handler, InputCaching, with_cached_inputs
from adjudge.worker.leases import LeaseKeeper
from adjudge.worker.message_validation import MessageValidator, without_alive
from adjudge.worker.parking import Parking
from adjudge.worker.rate_limit import StartRateLimiter
from adjudge.worker.slots import Slots
from adjudge.worker.worker_settings import WorkerOptions

_log = get_logger(__name__)
_SECOND_US = 1_000_000
_LONGEST_PAUSE_SEC = 5.0
"""Maximum delay between two attempts to read while the stream or the database is unavailable."""
_UNCLAIMED = ("unclaimed", "not_in_expected_state")
"""How a message is counted whose reader was lost before the claim."""
_FOLLOW_UP = metrics.WORKER_CLAIM.labels("won", "handed_on")


class Worker:
    """One worker process, or one of several in a process."""

    def __init__(
        self,
        database: Database,
        jobs: JobCommands,
        stream: Stream,
        handlers: Mapping[str, Handler],
        settings: WorkerOptions,
        *,
        keeper: LeaseKeeper | None = None,
        pace: StartRateLimiter | None = None,
        random_unit: Callable[[], float] = random.random,
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._stream = stream
        self._handlers = handlers
        self._input_caching = {kind: handler for kind, handler in handlers.items() if isinstance(handler, InputCaching)}
        self._settings = settings
        self._consumer = settings.consumer or settings.name
        self._slots = Slots(settings.slots, settings.limits)
        self._keeper = keeper or LeaseKeeper(
            database,
            jobs,
            lease_ms=settings.lease_ms,
            heartbeat_ms=settings.heartbeat_ms,
            clock=asyncio.get_running_loop().time,
        )
        self._keeps_own_leases = keeper is None
        self._claimer = Claimer(database, jobs, handlers, name=settings.name, lease_ms=settings.lease_ms)
        self._execution = Execution(database, jobs, handlers, lease_ms=settings.lease_ms)
        self._validator = MessageValidator(database, jobs, handlers, actor=settings.name)
        self._pace = pace
        self._random_unit = random_unit
        self.heartbeat = LoopHeartbeat("reader")
        self._finisher = Finisher(database, jobs, policy=settings.retry, random_unit=random_unit, places=self)
        self._acknowledger = Acknowledger(stream)
        self._running: dict[Fence, asyncio.Task[None]] = {}
        self._working: dict[Fence, tuple[str, ...]] = {}
        self._lost: dict[Fence, RefusalReason] = {}
        self._writing: set[Fence] = set()
        self._parking = Parking(database, jobs, self._slots, self._needs_of, self._keeper.clock, actor=settings.name)
        self._may_unpark = asyncio.Event()
        self._claiming = asyncio.Lock()
        """Held by the reader from a claim to the start of its jobs; stopping the reader waits for it."""
        self._draining = asyncio.Event()
        self._is_releasing = False

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def is_draining(self) -> bool:
        """Whether it reads no more messages."""
        return self._draining.is_set()

    def drain(self) -> None:
        """Read no more messages and finish the running jobs. A second call releases the running jobs."""
        if self._draining.is_set():
            self._release_running()
        self._draining.set()

    async def run(self) -> None:
        background = [
            asyncio.create_task(self._unpark_forever(), name="unpark"),
            *([asyncio.create_task(self._keeper.run(), name="keeper")] if self._keeps_own_leases else []),
        ]
        reader = asyncio.create_task(self._read_forever(), name="reader")
        unlisten = self._database.listen(CHANNEL_CANCELED, self._keeper.request_cancel_check)
        try:
            await self._until_drained([reader, *background])
            deadline = asyncio.get_running_loop().time() + self._settings.drain_grace_ms / 1_000
            await self._stop_reading(reader, deadline)
            await self._acknowledger.ack(await self._parking.release_all())
            await self._finish_running(deadline)
            await self._acknowledger.flush()
        finally:
            unlisten()
            await stop_all([reader, *background])
            await stop_all([*self._running.values()])  # a canceled worker leaves no task running
            await self._finisher.close()
            await self._acknowledger.close()

    async def _until_drained(self, loops: Sequence[asyncio.Task[None]]) -> None:
        """Wait for the call of ``drain``; an unexpected error in a loop is raised and ends the worker."""
        drained = asyncio.create_task(self._draining.wait())
        await asyncio.wait([drained, *loops], return_when=asyncio.FIRST_COMPLETED)
        drained.cancel()
        for task in loops:
            if task.done():
                task.result()

    async def _stop_reading(self, reader: asyncio.Task[None], deadline: float) -> None:
        """Stop the reader, but not between a claim and the start of its jobs, which would wait for expired leases.

        A claim takes longer than the grace period only if the database does not respond at all.
        """
        try:
            async with asyncio.timeout_at(deadline):
                await self._claiming.acquire()
        except TimeoutError:
            _log.warning("claim_abandoned", reason="drain_grace_over")
        await stop_all([reader])

    async def _finish_running(self, deadline: float) -> None:
        """Wait until nothing runs, also jobs claimed during the drain; release what still runs at the deadline."""
        clock = asyncio.get_running_loop().time
        while self._running and clock() < deadline:
            await asyncio.wait(set(self._running.values()), timeout=deadline - clock())
        if self._running:
            self._release_running()
        while self._running:
            await asyncio.wait(set(self._running.values()))

    def _release_running(self) -> None:
        self._is_releasing = True
        for fence in self._running:
            self._release_soon(fence)

    def _release_soon(self, fence: Fence) -> None:
        """Stop a job to release it, once its task has started: a task canceled earlier could not write the release."""

        def stop() -> None:
            task = self._running.get(fence)
            if task is not None and fence not in self._writing:  # a result that is being written is kept
                task.cancel()

        asyncio.get_running_loop().call_soon(stop)

    # Reading.

    async def _read_forever(self) -> None:
        """Read and reclaim alternately, never both at once, so that no slot is used twice."""
        clock, interval = asyncio.get_running_loop().time, self._settings.reclaim_interval_ms / 1_000
        next_reclaim = clock() + interval
        outage = Outage(_log, "reader_retrying", longest_sec=_LONGEST_PAUSE_SEC, random_unit=self._random_unit)
        while not self.is_draining:
            self.heartbeat.pause()
            await self._slots.wait_free()
            self.heartbeat.beat()
            try:
                if clock() >= next_reclaim:
                    next_reclaim = clock() + interval
                    async with self._claiming:
                        await self.reclaim()
                    continue
                limit = await self._may_start(next_reclaim - clock())
                left_ms = max(1, round((next_reclaim - clock()) * 1_000))
                messages = await self._stream.read(
                    consumer=self._consumer,
                    limit=limit,
                    wait_ms=min(self._settings.read_wait_ms, left_ms),
                )
                async with self._claiming:
                    await self.claim_messages(messages)
                outage.over()
            except Unavailable as error:  # nothing is acknowledged: the messages stay pending and are delivered again
                await asyncio.sleep(outage.failed(error))

    async def _may_start(self, wait_sec: float) -> int:
        free = self._slots.free
        return free if self._pace is None else await self._pace.acquire(free, wait_sec=max(0.001, wait_sec))

    async def claim_messages(self, messages: Sequence[Message]) -> bool:
        """Claim the jobs of messages and start them; return whether there was a job to claim."""
        ready = await self._fitting(await self._usable(messages))
        if not ready:
            return False
        claimed_at = self._keeper.clock()
        try:
            outcome = await self._claimer.claim(list(ready))
        except Unavailable:
            metrics.WORKER_CLAIM.labels("failed", "db_error").inc(len(ready))
            raise
        metrics.WORKER_CLAIM.labels("won", "ok").inc(len(outcome.done))
        for job in outcome.done:
            self._start(job, ready[job.id], claimed_at)
        for refused in outcome.refused:
            metrics.WORKER_CLAIM.labels("refused", str(refused.reason)).inc()
        await self._acknowledger.ack([ready[refused.job_id] for refused in outcome.refused])
        return True

    async def _usable(self, messages: Sequence[Message]) -> dict[str, Message]:
        """The messages that can be processed, by job; the others are acknowledged or stay pending."""
        validated = await self._validator.validate(messages)
        await self._acknowledger.ack(validated.to_acknowledge)
        return validated.usable

    async def _fitting(self, usable: dict[str, Message]) -> dict[str, Message]:
        """The messages whose jobs have a free slot; the others are parked or returned to the outbox."""
        if not self._slots.has_limits:
            return usable
        ready, returned = await self._parking.admit(usable)
        await self._acknowledger.ack(returned)
        return ready

    def _unpark_soon(self) -> None:
        """Claim parked jobs that fit now. Under a rate limit the next read does it, with its permits."""
        if len(self._parking) and self._pace is None and not self.is_draining:
            self._may_unpark.set()

    async def _unpark_forever(self) -> None:
        """Claim parked jobs whenever a slot becomes free; an error other than an outage ends the worker."""
        while True:
            await self._may_unpark.wait()
            self._may_unpark.clear()
            try:
                async with self._claiming:
                    while await self.claim_messages([]):
                        pass
            except Unavailable as error:  # the messages stay pending and are delivered again
                _log.warning("claim_retrying", reason=error.code, error=error.message)
            except Exception:
                _log.exception("unpark_failed", worker=self._settings.name)
                raise

    def _needs_of(self, message: Message) -> tuple[str, ...]:
        return () if message.body is None else self._needs(message.body.kind, message.body.payload)

    def _needs(self, kind: str, payload: Mapping[str, Any]) -> tuple[str, ...]:
        return (f"kind:{kind}", *self._handlers[kind].limit_keys(payload)) if self._slots.has_limits else ()

    # Running.

    def _start(self, job: Job, message: Message | None, claimed_at: float) -> None:
        fence = Fence(job.id, job.attempt_id, self._settings.name)
        needs = self._needs(job.kind, job.payload)
        self._slots.acquire(needs)
        self._working[fence] = needs
        if self._pace is not None:
            self._pace.consume()
        loop = asyncio.get_running_loop()
        fields = log_fields(job)
        task = loop.create_task(self._run(job, fence, message, fields), name=f"job-{job.id}")
        self._running[fence] = task

        def lose(reason: RefusalReason) -> None:
            if not task.done():  # otherwise the renewal was refused because the result had just been written
                self._lost[fence] = reason
                task.cancel()

        def over(_: object) -> None:
            self._keeper.remove(fence)
            del self._running[fence]
            self._lost.pop(fence, None)
            self._free_slot(fence)  # no effect if already called; a task may be canceled before its first step
            self._slots.job_written()

        def on_lost(reason: RefusalReason) -> None:
            loop.call_soon_threadsafe(lose, reason)  # the lease keeper may run on its own thread

        self._keeper.add(fence, on_lost, claimed_at=claimed_at, fields=fields)
        task.add_done_callback(over)
        if self._is_releasing:
            self._release_soon(fence)
        if message is not None and job.started_at is not None and message.enqueued_at_ms is not None:
            metrics.QUEUE_WAIT.observe(max(0, job.started_at / _SECOND_US - message.enqueued_at_ms / 1_000))

    async def _run(self, job: Job, fence: Fence, message: Message | None, fields: Mapping[str, object]) -> None:
        with context(**fields):
            _log.info("job_started", stage="started", worker=self._settings.name)
            try:
                end = await self._execution.run(job, fence)
                if not self._may_keep_slot(end):
                    self._free_slot(fence)
                end, refused = await self._write(end)
                self._free_slot(fence)
            except asyncio.CancelledError:
                if not await self._on_canceled(job, fence, message):
                    raise
                return
            if refused is not None:
                _log.warning("finish_refused", stage="refused", reason=str(refused))
            else:
                _log.info("job_finished", stage="finished", status=str(end.status))
            if message is not None:
                self._acknowledger.offer([message])  # written, or refused for good: nothing is left to do

    def _free_slot(self, fence: Fence) -> None:
        """Free the slot while the result is written: waiting for a commit uses no processor."""
        if (needs := self._working.pop(fence, None)) is not None:
            self._slots.release(needs)
            self._unpark_soon()

    async def _write(self, end: AttemptResult) -> tuple[AttemptResult, RefusalReason | None]:
        """Write the result; if that is impossible, write the error, so that the job need not wait for its lease."""
        self._writing.add(end.fence)
        try:
            return end, await self._finisher.finish(end)
        except Exception as error:
            if end.error is not None:
                raise
            instead = AttemptResult(end.job, end.fence, error=error)
            return instead, await self._finisher.finish(instead)
        finally:
            self._writing.discard(end.fence)

    # Follow-up jobs: the next node of a chain runs in the slot of the previous one.

    def _may_keep_slot(self, end: AttemptResult) -> bool:
        """Whether to keep the slot for a follow-up job: only while another slot is free for other jobs."""
        return end.completion is not None and end.completion.may_spawn_followups and self._slots.free > 0

    def now(self) -> float:
        """The time on the clock that measures leases."""
        return self._keeper.clock()

    def room(self, ends: Sequence[AttemptResult]) -> WorkerFollowUpSlots:
        """The slots for follow-up jobs: those of these results and, for instant jobs, every free one."""
        stays = self.is_draining or self._pace is not None
        held = {} if stays else {end.fence.job_id: self._working.get(end.fence) for end in ends}
        return WorkerFollowUpSlots(self._settings, self._slots, self._handlers, self._is_instant, held)

    def _is_instant(self, job: NewJob) -> bool:
        handler = self._input_caching.get(job.kind)
        return handler is not None and handler.is_instant(job.payload)

    def preload_cached(self, jobs: Sequence[Job], ends: Sequence[AttemptResult]) -> Sequence[Job]:
        """The follow-up jobs with their preloaded data, as far as it follows from these results."""
        return with_cached_inputs(
            self._input_caching, jobs, [(end.job, end.completion.typed_result) for end in ends if end.completion]
        )

    def start_follow_up(self, end: AttemptResult, job: Job, claimed_at: float) -> None:
        """Run a job that was claimed when it was created, in the slot of the finished job."""
        _FOLLOW_UP.inc()
        self._free_slot(end.fence)
        self._start(job, None, claimed_at)

    async def _on_canceled(self, job: Job, fence: Fence, message: Message | None) -> bool:
        """Handle a canceled task: write nothing if the attempt is lost, otherwise release the job."""
        lost, messages = self._lost.get(fence), [] if message is None else [message]
        if lost is None and self._is_releasing:
            _, refused = await self._write(AttemptResult(job, fence))
            _log.info("job_released", stage="handed_back", reason=str(refused or REASON_WORKER_DRAINED))
            await self._acknowledger.ack(messages)
        elif lost is RefusalReason.ALREADY_FINISHED:
            await self._acknowledger.ack(messages)  # the job was canceled: nothing is left to run
        return lost is not None or self._is_releasing

    # Reclaiming.

    async def reclaim(self) -> None:
        """Read messages that other consumers left unacknowledged for too long; reclaim jobs with expired leases."""
        settings = self._settings
        limit = min(settings.reclaim_count, self._slots.free)
        if limit <= 0:
            return
        idle_ms = settings.lease_ms + settings.reclaim_grace_ms
        started = asyncio.get_running_loop().time()
        messages = await self._stream.autoclaim(consumer=self._consumer, idle_ms=idle_ms, limit=limit)
        usable = await self._usable(messages)
        if fitting := self._parking.fitting(usable) if self._slots.has_limits else usable:
            await self._take_over(fitting)  # the others stay pending: the watchdog releases lost jobs
        metrics.WORKER_RECLAIM_LATENCY.observe(asyncio.get_running_loop().time() - started)

    async def _take_over(self, usable: dict[str, Message]) -> None:
        claimed_at = self._keeper.clock()
        try:
            outcome = await self._claimer.claim(list(usable))
        except Unavailable:
            metrics.WORKER_RECLAIM.labels("failed", "db_error").inc(len(usable))
            raise
        for job in outcome.done:
            decision = ("claimed", "lease_expired") if job.prior_status is JobStatus.RUNNING else _UNCLAIMED
            metrics.WORKER_RECLAIM.labels(*decision).inc()
            self._start(job, usable[job.id], claimed_at)
            metrics.WORKER_RECLAIM_INFLIGHT.inc()
            task = self._running[Fence(job.id, job.attempt_id, self._settings.name)]
            task.add_done_callback(lambda _: metrics.WORKER_RECLAIM_INFLIGHT.dec())
        await self._acknowledger.ack(without_alive(outcome.refused, usable))
