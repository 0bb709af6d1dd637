"""Reads messages for the free slots of a worker, validates them, and starts the jobs that they name.

An expired payload, a missing field or an unknown kind in a message says nothing about the job: missing data is read
from the job's row. Only a job whose row is invalid gets a dead letter, with an error code, and it never delays other
jobs.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from adjudge.domain.errors import Unavailable
from adjudge.observe import metrics
from adjudge.observe.health_server import LoopHeartbeat
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.store import Database, Tx
from adjudge.store.jobs import outbox
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.isolation import JobIsolation
from adjudge.store.jobs.metrics import job_ids_fields
from adjudge.store.jobs.models import PoisonJob
from adjudge.stream.driver import Message, MessageBody, Stream
from adjudge.worker.acknowledger import Acknowledger
from adjudge.worker.claimer import Claimer, ClaimReport
from adjudge.worker.runner import Runner
from adjudge.worker.slots import Slots, StartRateLimiter
from adjudge.worker.worker_settings import WorkerOptions

_log = get_logger(__name__)
_UNKNOWN_KIND = "unknown_kind"
_LONGEST_PAUSE_SEC = 5.0
"""Maximum delay between two attempts to read while the stream or the database is unavailable."""


class MessageReader:
    """Reads and reclaims alternately, never both at once, so that no slot is used twice."""

    def __init__(
        self,
        stream: Stream,
        settings: WorkerOptions,
        slots: Slots,
        *,
        validator: MessageValidator,
        claimer: Claimer,
        runner: Runner,
        acknowledger: Acknowledger,
        rate: StartRateLimiter | None = None,
        random_unit: Callable[[], float] = random.random,
    ) -> None:
        self._stream = stream
        self._validator = validator
        self._claimer = claimer
        self._runner = runner
        self._acknowledger = acknowledger
        self._slots = slots
        self._settings = settings
        self._consumer = settings.consumer or settings.name
        self._rate = rate
        self._random_unit = random_unit
        self.heartbeat = LoopHeartbeat("reader")
        self._tasks: list[asyncio.Task[None]] = []
        self._interruptible: set[asyncio.Task[Any]] = set()
        self._is_stopping = False

    async def run(self) -> None:
        """Read until stopped; an unexpected error in one of the loops is raised."""
        loops: dict[str, Coroutine[Any, Any, None]] = {"read": self._read_forever()}
        if self._slots.has_limits and self._rate is None:  # under a rate limit each read claims parked jobs, too
            loops["unpark"] = self._unpark_forever()
        self._tasks = [asyncio.create_task(loop, name=name) for name, loop in loops.items()]
        try:
            ended, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in ended:
                if not task.cancelled():
                    task.result()
        finally:
            await stop_all(self._tasks)

    async def stop(self, deadline: float) -> None:
        """Stop reading. A claim that has been sent runs to its end, and its jobs start.

        It takes longer than until ``deadline`` only if the database does not respond at all; it is then abandoned, and
        its jobs wait for expired leases.
        """
        self._is_stopping = True
        for task in tuple(self._interruptible):
            task.cancel()
        if not self._tasks:
            return
        left_sec = max(0.0, deadline - asyncio.get_running_loop().time())
        _, claiming = await asyncio.wait(self._tasks, timeout=left_sec)
        if claiming:
            _log.warning("claim_abandoned", reason="drain_grace_over")
            await stop_all([*claiming])

    @contextmanager
    def _may_be_interrupted(self) -> Iterator[None]:
        """``stop`` cancels a task only in such a block: while it reads or waits, not while it claims."""
        task = asyncio.current_task()
        if task is None or self._is_stopping:
            raise asyncio.CancelledError
        self._interruptible.add(task)
        try:
            yield
        finally:
            self._interruptible.discard(task)

    async def _read_forever(self) -> None:
        clock, interval = asyncio.get_running_loop().time, self._settings.reclaim_interval_ms / 1_000
        next_reclaim = clock() + interval
        outage = Outage(_log, "reader_retrying", longest_sec=_LONGEST_PAUSE_SEC, random_unit=self._random_unit)
        while True:
            self.heartbeat.pause()
            with self._may_be_interrupted():
                await self._slots.wait_free()
            self.heartbeat.beat()
            try:
                if clock() >= next_reclaim:
                    next_reclaim = clock() + interval
                    await self.reclaim()
                else:
                    await self.claim_messages(await self._read(next_reclaim - clock()))
                    outage.over()
            except Unavailable as error:  # nothing is acknowledged: the messages stay pending and are delivered again
                with self._may_be_interrupted():
                    await asyncio.sleep(outage.failed(error))

    async def _read(self, wait_sec: float) -> Sequence[Message]:
        """Read no more messages than jobs may start, for at most ``wait_sec``."""
        ends_at = asyncio.get_running_loop().time() + wait_sec
        with self._may_be_interrupted():
            limit = self._slots.free
            if self._rate is not None:
                limit = await self._rate.acquire(limit, wait_sec=max(0.001, wait_sec))
            left_ms = max(1, round((ends_at - asyncio.get_running_loop().time()) * 1_000))
            return await self._stream.read(
                consumer=self._consumer, limit=limit, wait_ms=min(self._settings.read_wait_ms, left_ms)
            )

    async def claim_messages(self, messages: Sequence[Message]) -> bool:
        """Claim the jobs of messages, and parked ones that fit, and start them; return whether any was claimed."""
        report = await self._claimer.claim(await self._usable(messages))
        await self._start(report)
        return bool(report.claimed)

    async def _start(self, report: ClaimReport) -> None:
        self._runner.start(report.claimed)
        await self._acknowledger.ack(report.to_acknowledge)

    async def _usable(self, messages: Sequence[Message]) -> dict[str, Message]:
        """The messages that can be processed, by job; the others are acknowledged or stay pending."""
        validated = await self._validator.validate(messages)
        await self._acknowledger.ack(validated.to_acknowledge)
        return validated.usable

    async def _unpark_forever(self) -> None:
        """Claim parked jobs whenever a slot becomes free; an error other than an outage ends the worker."""
        while True:
            with self._may_be_interrupted():
                await self._slots.wait_released()
            try:
                while self._claimer.parked and not self._is_stopping and await self.claim_messages([]):
                    pass
            except Unavailable as error:  # the messages stay pending and are delivered again
                parked = job_ids_fields(list(self._claimer.parked))
                _log.warning("claim_retrying", reason=error.code, error=error.message, **parked)
            except Exception:
                _log.exception("unpark_failed", worker=self._settings.name)
                raise

    async def reclaim(self) -> None:
        """Read messages that other consumers left unacknowledged for too long; reclaim jobs with expired leases."""
        settings = self._settings
        limit = min(settings.reclaim_count, self._slots.free)
        if limit <= 0:
            return
        started = asyncio.get_running_loop().time()
        idle_ms = settings.lease_ms + settings.reclaim_grace_ms
        with self._may_be_interrupted():
            messages = await self._stream.autoclaim(consumer=self._consumer, idle_ms=idle_ms, limit=limit)
        await self.take_over(messages)
        metrics.WORKER_RECLAIM_LATENCY.observe(asyncio.get_running_loop().time() - started)

    async def take_over(self, messages: Sequence[Message]) -> None:
        """Claim and start the jobs of messages of other consumers, unless their leases are valid."""
        await self._start(await self._claimer.take_over(await self._usable(messages)))


async def stop_all(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class ValidatedMessages:
    """The result of validating a batch of messages."""

    usable: dict[str, Message] = field(default_factory=dict)
    """By job, one message each, with everything that a worker needs."""
    to_acknowledge: list[Message] = field(default_factory=list)
    """To be acknowledged: poison jobs with a dead letter, messages without a job, and duplicates."""


class MessageValidator:
    """Validates messages, and writes dead letters for jobs that no worker can run."""

    def __init__(self, database: Database, jobs: JobCommands, kinds: Collection[str], *, actor: str) -> None:
        self._database = database
        self._jobs = jobs
        self._kinds = kinds
        self._actor = actor
        self._isolation = JobIsolation(database, jobs, actor=actor)

    async def validate(self, messages: Sequence[Message]) -> ValidatedMessages:
        """Validate each message; for incomplete ones, read the row."""
        result, suspects = ValidatedMessages(), {}
        for message in messages:
            if message.job_id is None:
                metrics.WORKER_CLAIM.labels("poison", str(message.defect)).inc()
                result.to_acknowledge.append(message)
            elif message.job_id in result.usable or message.job_id in suspects:
                result.to_acknowledge.append(message)
            elif message.body is not None and message.body.kind in self._kinds:
                result.usable[message.job_id] = message
            else:
                suspects[message.job_id] = message
        if suspects:
            await self._look_up(suspects, result)
        return result

    async def _look_up(self, suspects: dict[str, Message], result: ValidatedMessages) -> None:
        rows = await self._database.read(lambda tx: outbox.load_messages(tx, list(suspects)))
        poison_jobs, traces = dict[str, PoisonJob](), {row.job_id: row.trace_id for row in rows}
        for row in rows:
            message = suspects[row.job_id]
            problem = str(message.defect or _UNKNOWN_KIND)
            try:
                hint = MessageBody(row.job_id, row.priority, row.kind, row.trace_id, dict(json.loads(row.payload)))
            except (TypeError, ValueError) as error:
                why = f"The job's payload is not an object: {error}"
                poison_jobs[row.job_id] = PoisonJob(row.job_id, problem.upper(), why)
                continue
            if row.kind not in self._kinds:
                why = f"No handler is registered for jobs of kind {row.kind!r}."
                poison_jobs[row.job_id] = PoisonJob(row.job_id, _UNKNOWN_KIND.upper(), why)
                continue
            metrics.WORKER_CLAIM.labels("restored", problem).inc()
            _log.warning("message_payload_recovered", job_id=row.job_id, reason=problem, trace_id=row.trace_id)
            result.usable[row.job_id] = replace(message, body=hint, defect=None)
        for poison_job in poison_jobs.values():
            metrics.WORKER_CLAIM.labels("poison", poison_job.error_code.lower()).inc()
            _log.warning(
                "job_dead_lettered",
                stage="poisoned",
                job_id=poison_job.job_id,
                trace_id=traces[poison_job.job_id],
                reason=poison_job.error_code,
                error=poison_job.error,
            )
        left = set(poison_jobs) - set(await self._dead_letter(poison_jobs)) if poison_jobs else set()
        kept = left.union(result.usable)  # without a dead letter the message stays pending and is delivered again
        result.to_acknowledge.extend(message for job_id, message in suspects.items() if job_id not in kept)

    async def _dead_letter(self, poison_jobs: Mapping[str, PoisonJob]) -> list[str]:
        """Write dead letters; return the jobs that are finished. A job whose listener fails stops no other."""

        async def dead_letter(tx: Tx, job_ids: Sequence[str]) -> Sequence[str]:
            await self._jobs.dead_letter(tx, [poison_jobs[job_id] for job_id in job_ids], actor=self._actor)
            return job_ids

        return await self._isolation.run(list(poison_jobs), dead_letter)
