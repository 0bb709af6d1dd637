"""The watchdog: releases running jobs whose lease has expired, from the rows alone.

Any number may run at once: each locks rows that no other holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from adjudge.domain.states import JobStatus
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.store import Database
from adjudge.store.jobs.commands import WORKER_LOST, JobCommands
from adjudge.store.jobs.isolation import JobIsolation
from adjudge.store.jobs.metrics import log_fields, record_failed_attempt

_log = get_logger(__name__)
_BATCH = 500


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
            record_failed_attempt(job.kind, WORKER_LOST)
            _log.warning("job_lease_expired", stage="lost", dead_lettered=dead_lettered, **log_fields(job))
        metrics.STALLED.inc(len(batch))
        return len(batch)
