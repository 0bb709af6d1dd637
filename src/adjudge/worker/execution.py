"""Runs the handler of a claimed job, within the job's deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from adjudge.domain.errors import InternalFault, Unavailable
from adjudge.observe.logs import get_logger
from adjudge.store import Database
from adjudge.store.jobs.commands import NEVER_STARTED, JobCommands
from adjudge.store.jobs.models import Fence, Job
from adjudge.worker.finisher import AttemptResult
from adjudge.worker.handler import Handler, HandlerResult

_log = get_logger(__name__)


class Execution:
    """Runs one claimed job and returns the result of its attempt."""

    def __init__(
        self, database: Database, jobs: JobCommands, handlers: Mapping[str, Handler], *, lease_ms: int
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._handlers = handlers
        self._lease_ms = lease_ms

    async def run(self, job: Job, fence: Fence) -> AttemptResult:
        """Call the handler. A last attempt whose start cannot be written is not run but released."""
        if job.attempt_id >= job.max_attempts and not await self._confirm(fence):
            return AttemptResult(job, fence, reason=NEVER_STARTED)
        try:
            return AttemptResult(job, fence, completion=await self._within_deadline(job))
        except Exception as error:  # noqa: BLE001 — any exception of a handler is classified, stored and shown
            _log.warning("job_attempt_failed", stage="failed", error=repr(error))
            return AttemptResult(job, fence, error=error)

    async def _confirm(self, fence: Fence) -> bool:
        """Write that a last attempt starts: if its worker is lost before that, the attempt is refunded."""
        try:
            outcome = await self._database.transact(lambda tx: self._jobs.renew(tx, [fence], lease_ms=self._lease_ms))
        except Unavailable as error:
            _log.warning("start_unconfirmed", error=error.message)
            return False
        return bool(outcome.done)

    async def _within_deadline(self, job: Job) -> HandlerResult:
        """Call the handler; its own ``TimeoutError`` is passed on like any other error."""
        deadline = asyncio.timeout(None if job.timeout_ms is None else job.timeout_ms / 1_000)
        try:
            async with deadline:
                return await self._handlers[job.kind].run(job)
        except TimeoutError:
            if deadline.expired():
                raise InternalFault(f"The job outlived its deadline of {job.timeout_ms} ms.") from None
            raise


async def stop_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
