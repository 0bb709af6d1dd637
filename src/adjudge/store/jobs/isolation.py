"""Prevents one job whose listener fails from failing an operation on many.

An operation on jobs calls their listeners in its transaction, so a listener that raises rolls it back for all of them.
It is then retried for each job alone. A job that keeps failing alone gets a dead letter with the error, without a call
of its listener. If every job fails, the cause is probably not the jobs: it is logged, and the caller retries later.
Jobs get dead letters for that only after many such failures, because several faulty jobs may remain alone in a batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.store.engine.driver import Database, Operation, Tx
from adjudge.store.jobs.commands import LISTENER_FAILED, JobCommands
from adjudge.store.jobs.metrics import job_ids_fields

T = TypeVar("T")
BatchOperation = Callable[[Tx, Sequence[str]], Awaitable[Sequence[T]]]

TRIES: Final = 3
"""How often a job may fail while others succeed, or as the only one, before it gets a dead letter."""
ROUNDS_ALL_FAILED: Final = 20
"""How often a job may fail together with all others of its batch before it gets a dead letter."""
_REMEMBERED: Final = 10_000
_ERROR_CHARACTERS: Final = 2_000

_log = get_logger(__name__)


def _alone(operation: BatchOperation[T], job_id: str) -> Operation[Sequence[T]]:
    return lambda tx: operation(tx, [job_id])


class JobIsolation:
    """Runs operations on jobs, and counts the failures of each job."""

    def __init__(self, database: Database, jobs: JobCommands, *, actor: str) -> None:
        self._database = database
        self._jobs = jobs
        self._actor = actor
        self._failures: Counter[str] = Counter()
        self._failures_with_all: Counter[str] = Counter()
        """Counted separately: failures of all jobs together must not bring a job closer to ``TRIES``."""

    async def run(self, job_ids: Sequence[str], operation: BatchOperation[T]) -> list[T]:
        """Run ``operation`` on all the jobs in one transaction, or on each in its own; return what it returned."""
        try:
            results = list(await self._database.transact(lambda tx: operation(tx, job_ids)))
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 — each job is tried alone below
            _log.warning("batch_failed", error=repr(error), **job_ids_fields(job_ids))
            return await self.one_by_one(job_ids, operation)
        if self._failures or self._failures_with_all:
            self._forget(job_ids)
        return results

    async def one_by_one(self, job_ids: Sequence[str], operation: BatchOperation[T]) -> list[T]:
        """Run ``operation`` on each of the jobs in a transaction of its own."""
        results: list[T] = []
        failed: dict[str, Exception] = {}
        for job_id in job_ids:
            try:
                results += await self._database.transact(_alone(operation, job_id))
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001 — counted, logged and stored with the job
                failed[job_id] = error
            else:
                self._forget([job_id])
        all_failed = len(failed) == len(job_ids) > 1
        if all_failed:
            _log.error("every_job_failed", **job_ids_fields(list(failed)), error=repr(next(iter(failed.values()))))
        for job_id, cause in failed.items():
            await self._failed(job_id, cause, all_failed=all_failed)
        return results

    def _forget(self, job_ids: Sequence[str]) -> None:
        for job_id in job_ids:
            self._failures.pop(job_id, None)
            self._failures_with_all.pop(job_id, None)

    async def _failed(self, job_id: str, error: Exception, *, all_failed: bool) -> None:
        """Count a failure of a job; write a dead letter if there were too many."""
        failures, limit = (self._failures_with_all, ROUNDS_ALL_FAILED) if all_failed else (self._failures, TRIES)
        failures[job_id] += 1
        if failures[job_id] < limit:
            if not all_failed:
                _log.warning("job_listener_failed", job_id=job_id, tries=failures[job_id], error=repr(error))
            if len(failures) > _REMEMBERED:
                failures.clear()
            return
        text = repr(error)[:_ERROR_CHARACTERS].encode(errors="replace").decode().replace("\0", "")
        await self._database.transact(lambda tx: self._jobs.set_aside(tx, [job_id], actor=self._actor, error=text))
        self._forget([job_id])
        _log.error("job_quarantined", stage="poisoned", job_id=job_id, reason=LISTENER_FAILED, error=repr(error))
