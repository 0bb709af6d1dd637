"""Detects and repairs lost jobs and lost messages, from the rows alone.

The *watchdog* releases running jobs whose lease has expired. The *reconciler* requeues jobs that were queued long ago
and have no message in the stream. The third task counts waiting jobs for the metrics. All are independent periodic
tasks, and any number may run at once: each locks rows that no other holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from adjudge.domain.errors import Unavailable
from adjudge.domain.states import JobStatus
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import LONGEST_SEC, Outage
from adjudge.store import Database
from adjudge.store.jobs import dead_letters, outbox
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.isolation import JobIsolation
from adjudge.store.jobs.metrics import log_fields
from adjudge.store.jobs.models import QueuedJob
from adjudge.stream.driver import Stream

_log = get_logger(__name__)
_BATCH = 500
_Place = tuple[int, str]
_FRONT: Final[_Place] = (0, "")


class Watchdog:
    """Releases the jobs of lost workers."""

    def __init__(self, database: Database, jobs: JobCommands, *, name: str) -> None:
        self._database = database
        self._jobs = jobs
        self._name = name
        self._isolation = JobIsolation(database, jobs, actor=name)

    async def run_once(self) -> int:
        """Release expired jobs; return how many. A kind whose listener fails stops no other.

        Each job is tried once per pass, so that a batch of failing jobs does not hide those behind it.
        """
        freed, after = 0, ""
        while True:
            operation = partial(self._jobs.expired, limit=_BATCH, after=after)
            found = await self._database.read(operation)
            freed += sum([await self._free(job_ids) for job_ids in found.values()])
            looked_at = sorted(job_id for job_ids in found.values() for job_id in job_ids)
            if len(looked_at) < _BATCH:
                return freed
            after = looked_at[-1]

    async def _free(self, job_ids: Sequence[str]) -> int:
        batch = await self._isolation.run(
            job_ids, lambda tx, ids: self._jobs.release_expired(tx, ids, actor=self._name)
        )
        for job in batch:
            dead_lettered = job.status is JobStatus.FAILED
            _log.warning("job_lease_expired", stage="lost", dead_lettered=dead_lettered, **log_fields(job))
        metrics.STALLED.inc(len(batch))
        return len(batch)


class Reconciler:
    """Requeues jobs whose message was lost."""

    def __init__(
        self,
        database: Database,
        jobs: JobCommands,
        stream: Stream,
        *,
        name: str,
        older_than_ms: int = 10_000,
        batch: int = _BATCH,
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._stream = stream
        self._name = name
        self._older_ms = older_than_ms
        self._batch = batch
        self._place = _FRONT
        self._isolation = JobIsolation(database, jobs, actor=name)

    async def run_once(self) -> int:
        """Return jobs whose message is lost to the outbox; return how many.

        The oldest jobs are checked in every pass; of the others, a different part each time, so that a lost message is
        found behind any number of jobs that merely wait.
        """
        restored, place = await self._walk(_FRONT)
        if place is not None:
            more, place = await self._walk(max(place, self._place))
            restored += more
        self._place = place or _FRONT
        if restored:
            _log.warning("stream_messages_lost", jobs=restored)
        return restored

    async def _walk(self, place: _Place) -> tuple[int, _Place | None]:
        """Continue from ``place`` while messages are missing; return their number and where it stopped before the end.

        After a loss of all stream data, every job is requeued at once. The dispatcher limits the rate, because it
        publishes no more than the stream has capacity for; waiting in the outbox costs nothing.
        """
        restored = 0
        while True:
            queued, lost = await self._look(place)
            restored += await self._requeue(lost) if lost else 0
            if len(queued) < self._batch:
                return restored, None
            place = queued[-1].scan_position
            if not lost:
                return restored, place

    async def _look(self, place: _Place) -> tuple[list[QueuedJob], list[str]]:
        queued = await self._database.read(
            lambda tx: self._jobs.find_long_queued(tx, older_than_ms=self._older_ms, limit=self._batch, after=place)
        )
        known = await self._stream.find_existing([(job.priority, job.entry_id) for job in queued]) if queued else set()
        return queued, [job.job_id for job in queued if (job.priority, job.entry_id) not in known]

    async def _requeue(self, lost: Sequence[str]) -> int:
        return len(await self._isolation.run(lost, lambda tx, ids: self._jobs.requeue(tx, ids, actor=self._name)))


class QueueGauges:
    """Counts waiting jobs, for the queue metrics."""

    def __init__(self, database: Database, stream: Stream) -> None:
        self._database = database
        self._stream = stream

    async def run_once(self) -> int:
        """Count once; return how many jobs wait."""
        metrics.OUTBOX_PENDING.set(await self._database.read(outbox.count_pending))
        metrics.DEAD_LETTERS.set(await self._database.read(dead_letters.count_open))
        depth = await self._stream.depths()
        for band, waiting in depth.items():
            metrics.QUEUE_DEPTH.labels(str(band)).set(waiting)
        return sum(depth.values())


async def run_periodically(tick: Callable[[], Awaitable[int]], *, interval_ms: int) -> None:
    """Run forever; an unavailable database or stream is retried with growing delays."""
    interval_sec = interval_ms / 1_000
    outage = Outage(_log, "periodic_task_retrying", first_sec=interval_sec, longest_sec=max(LONGEST_SEC, interval_sec))
    name = getattr(tick, "__qualname__", "tick")
    while True:
        pause_sec = interval_sec
        try:
            await tick()
            outage.over()
        except Unavailable as error:
            pause_sec = outage.failed(error, round=name)
        except Exception:  # noqa: BLE001 — one failed pass must not end the scheduler's other tasks
            _log.exception("periodic_task_failed", round=name)
        await asyncio.sleep(pause_sec)


@asynccontextmanager
async def periodic_task(tick: Callable[[], Awaitable[int]], *, interval_ms: int, name: str) -> AsyncIterator[None]:
    """Run in the background while the block runs."""
    task = asyncio.create_task(run_periodically(tick, interval_ms=interval_ms), name=name)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
