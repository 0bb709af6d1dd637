"""The patrol: whatever is not as it should be is noticed here, from the rows alone.

Three rounds. The *watchdog* frees running jobs whose lease has expired. The *reconciler* announces again jobs that were
queued long ago and that the stream no longer knows. The *census* counts what waits. All are continuous, none needs the
others, and any number may run at once: each takes rows that nobody else holds.
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
    """Frees the jobs of lost workers."""

    def __init__(self, database: Database, jobs: JobCommands, *, name: str) -> None:
        self._database = database
        self._jobs = jobs
        self._name = name
        self._isolation = JobIsolation(database, jobs, actor=name)

    async def run_once(self) -> int:
        """Free what has expired; return how many jobs that were. A kind whose owner fails stops no other.

        Each job is looked at once in a round, so that a batch of failing ones does not hide those behind it.
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
    """Announces again what the stream has lost."""

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
        """Put jobs whose message is gone back into the outbox; return how many.

        Whoever has waited longest is looked at in every round; of what stands behind, another part each time, so that a
        lost message is found behind any number of jobs that merely wait.
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
        """Go on from ``place`` for as long as messages are missing: how many were, and where it stopped before the end.

        A stream that was wiped is told of everything again at once. What holds that back is the pump, which announces
        no more than the stream has room for; in the outbox, waiting costs nothing.
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
    """Counts what waits: the figures that say whether the drive keeps up."""

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
    """Make the round for ever; a database or a stream that cannot serve is waited out with growing pauses."""
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
        except Exception:  # noqa: BLE001 — a fault of one round must not end the scheduler's other roles
            _log.exception("periodic_task_failed", round=name)
        await asyncio.sleep(pause_sec)


@asynccontextmanager
async def periodic_task(tick: Callable[[], Awaitable[int]], *, interval_ms: int, name: str) -> AsyncIterator[None]:
    """Make the round beside whatever else the process does, for as long as the block lasts."""
    task = asyncio.create_task(run_periodically(tick, interval_ms=interval_ms), name=name)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
