"""Claims the jobs that messages name.

A claim whose commit is unknown is not looked up: its jobs never start here, their leases expire without a heartbeat,
and the watchdog refunds the attempts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.store import Database, Tx
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.isolation import JobIsolation
from adjudge.store.jobs.models import BatchResult, Job
from adjudge.worker.handler import Handler, with_preloaded

_log = get_logger(__name__)


class Claimer:
    """Claims jobs for one worker."""

    def __init__(
        self, database: Database, jobs: JobCommands, handlers: Mapping[str, Handler], *, name: str, lease_ms: int
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._handlers = handlers
        self._name = name
        self._lease_ms = lease_ms
        self._isolation = JobIsolation(database, jobs, actor=name)

    async def claim(self, job_ids: Sequence[str]) -> BatchResult[Job]:
        """Claim jobs that wait or whose lease has expired, each with its preloaded data."""
        try:
            return await self._database.transact(lambda tx: self._claim(tx, job_ids))
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 — one job that cannot be claimed must not stop the others
            _log.warning("claim_failed", error=repr(error), jobs=len(job_ids))
            return await self._claim_apart(job_ids)

    async def _claim(self, tx: Tx, job_ids: Sequence[str]) -> BatchResult[Job]:
        outcome = await self._jobs.claim(tx, job_ids, worker=self._name, lease_ms=self._lease_ms)
        return replace(outcome, done=await with_preloaded(tx, self._handlers, outcome.done))

    async def _claim_apart(self, job_ids: Sequence[str]) -> BatchResult[Job]:
        """Claim each job alone. A job that fails alone stays pending, and finally gets a dead letter."""

        async def claim(tx: Tx, ids: Sequence[str]) -> list[BatchResult[Job]]:
            return [await self._claim(tx, ids)]

        found = await self._isolation.one_by_one(job_ids, claim)
        done = tuple(job for outcome in found for job in outcome.done)
        return BatchResult(done, tuple(refused for outcome in found for refused in outcome.refused))
