"""The patrol: whatever is not as it should be is noticed here, from the rows alone.

Three rounds. The *watchdog* frees running jobs whose lease has expired. The *reconciler* announces again jobs that were
queued long ago and that the stream no longer knows. The *census* counts what waits. All are continuous, none needs the
others, and any number may run at once: each takes rows that nobody else holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from adjudge.domain.errors import Unavailable
from adjudge.domain.states import JobStatus
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.store import Database, Tx, dead_letters, outbox
from adjudge.store.jobs import Jobs
from adjudge.stream.driver import Stream

_log = get_logger(__name__)
_BATCH = 500


class Watchdog:
    """Frees the jobs of lost workers."""

    def __init__(self, database: Database, jobs: Jobs, *, name: str) -> None:
        self._database = database
        self._jobs = jobs
        self._name = name

    async def tick(self) -> int:
        """Free what has expired; return how many jobs that were."""
        freed = 0
        while True:
            batch = await self._database.transact(lambda tx: self._jobs.expire(tx, actor=self._name, at_most=_BATCH))
            for job in batch:
                buried = job.status is JobStatus.FAILED
                _log.warning(
                    "worker_lost", job_id=job.id, attempt_id=job.attempt_id, buried=buried, trace_id=job.trace_id
                )
            metrics.STALLED.inc(len(batch))
            freed += len(batch)
            if len(batch) < _BATCH:
                return freed


class Reconciler:
    """Announces again what the stream has lost."""

    def __init__(self, database: Database, jobs: Jobs, stream: Stream, *, name: str, older_ms: int = 10_000) -> None:
        self._database = database
        self._jobs = jobs
        self._stream = stream
        self._name = name
        self._older_ms = older_ms

    async def tick(self) -> int:
        """Put jobs whose message is gone back into the outbox; return how many."""
        stuck = await self._database.read(
            lambda tx: self._jobs.queued_long(tx, older_ms=self._older_ms, at_most=_BATCH)
        )
        if not stuck:
            return 0
        known = await self._stream.holds([(job.priority, job.entry_id) for job in stuck])
        lost = [job.job_id for job in stuck if (job.priority, job.entry_id) not in known]

        async def requeue(tx: Tx) -> int:
            return len(await self._jobs.requeue(tx, lost, actor=self._name))

        count = await self._database.transact(requeue) if lost else 0
        if count:
            _log.warning("messages_lost", jobs=count)
        return count


class Census:
    """Counts what waits: the figures that say whether the drive keeps up."""

    def __init__(self, database: Database, stream: Stream) -> None:
        self._database = database
        self._stream = stream

    async def tick(self) -> int:
        """Count once; return how many jobs wait."""
        metrics.OUTBOX_PENDING.set(await self._database.read(outbox.count_pending))
        metrics.DEAD_LETTERS.set(await self._database.read(dead_letters.count_open))
        depth = await self._stream.depth()
        for band, waiting in depth.items():
            metrics.QUEUE_DEPTH.labels(str(band)).set(waiting)
        return sum(depth.values())


async def patrol(tick: Callable[[], Awaitable[int]], *, every_ms: int) -> None:
    """Make the round for ever; a database or a stream that is away is tried again at the next one."""
    while True:
        try:
            await tick()
        except Unavailable as error:
            _log.warning("patrol_waits", reason=error.code, error=error.message)
        except Exception:  # noqa: BLE001 — a fault of one round must not end the scheduler's other roles
            _log.exception("patrol_failed")
        await asyncio.sleep(every_ms / 1_000)
