"""The reconciler: requeues jobs that were queued long ago and have no message in the stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adjudge.observe.logs import get_logger
from adjudge.store import Database
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.isolation import JobIsolation
from adjudge.store.jobs.metrics import job_ids_fields
from adjudge.store.jobs.models import QueuedJob
from adjudge.stream.driver import Stream

_log = get_logger(__name__)
_BATCH = 500
_Position = tuple[int, str]
_FRONT: Final[_Position] = (0, "")


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
        self._position = _FRONT
        self._isolation = JobIsolation(database, jobs, actor=name)

    async def run_once(self) -> int:
        """Return jobs whose message is lost to the outbox; return how many.

        The oldest jobs are checked in every pass; of the others, a different part each time, so that a lost message is
        found behind any number of jobs that merely wait.
        """
        restored, position = await self._walk(_FRONT)
        if position is not None:
            more, position = await self._walk(max(position, self._position))
            restored += more
        self._position = position or _FRONT
        if restored:
            _log.warning("stream_messages_lost", **job_ids_fields(restored))
        return len(restored)

    async def _walk(self, position: _Position) -> tuple[list[str], _Position | None]:
        """Continue from ``position`` while messages are missing; return their jobs, and where it stopped early.

        After a loss of all stream data, every job is requeued at once. The dispatcher limits the rate, because it
        publishes no more than the stream has capacity for; waiting in the outbox costs nothing.
        """
        restored: list[str] = []
        while True:
            queued, lost = await self._look(position)
            restored += await self._requeue(lost) if lost else []
            if len(queued) < self._batch:
                return restored, None
            position = queued[-1].scan_position
            if not lost:
                return restored, position

    async def _look(self, position: _Position) -> tuple[list[QueuedJob], list[str]]:
        queued = await self._database.read(
            lambda tx: self._jobs.find_long_queued(tx, older_than_ms=self._older_ms, limit=self._batch, after=position)
        )
        known = await self._stream.find_existing([(job.priority, job.entry_id) for job in queued]) if queued else set()
        return queued, [job.job_id for job in queued if (job.priority, job.entry_id) not in known]

    async def _requeue(self, lost: Sequence[str]) -> list[str]:
        jobs = await self._isolation.run(lost, lambda tx, ids: self._jobs.requeue(tx, ids, actor=self._name))
        return [job.id for job in jobs]
