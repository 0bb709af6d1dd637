"""Group commit for submissions: requests that arrive during a commit are inserted together by the next one.

A request that arrives alone is committed immediately. Once a full batch waits, a second writer commits it in parallel.
A request that cannot be inserted does not fail the others of its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adjudge.concurrency.batcher import Batcher
from adjudge.domain.errors import AdjudgeError, OutcomeUnknown
from adjudge.observe.logs import get_logger
from adjudge.store import Database
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.judging import queries as submission_queries
from adjudge.store.judging import submit_batch
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.submit_batch import BatchedSubmit
from adjudge.store.ops.idempotency_keys import StoredResponse

_TOGETHER: Final = 1_000
"""Maximum number of submissions per transaction; a larger request gets a transaction of its own."""

_log = get_logger(__name__)


class SubmitBatcher:
    """Inserts submissions of many requests in one transaction."""

    def __init__(self, database: Database, jobs: JobCommands) -> None:
        self._database = database
        self._submissions = SubmissionCommands(jobs)
        self._batcher: Batcher[BatchedSubmit, StoredResponse | Exception] = Batcher(
            self._write, name="submit", max_weight=_TOGETHER, weight=_submissions_of, writers=2, isolate=True
        )

    async def submit(self, order: BatchedSubmit) -> StoredResponse:
        """Insert a request and wait for the commit; a repeated idempotency key gets the stored response."""
        answer = await self._batcher.put(order)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _write(self, batch: Sequence[BatchedSubmit]) -> Sequence[StoredResponse | Exception]:
        try:
            return await self._write_batch(batch)
        except OutcomeUnknown:
            return await self._look_up(batch)

    async def _write_batch(self, batch: Sequence[BatchedSubmit]) -> Sequence[StoredResponse | Exception]:
        return await self._database.transact(lambda tx: submit_batch.submit_batch(tx, self._submissions, batch))

    async def _look_up(self, batch: Sequence[BatchedSubmit]) -> list[StoredResponse | Exception]:
        """Look up what a commit with an unknown outcome has inserted; insert the other requests one by one."""
        ids = [item.id for order in batch for item in order.submissions]
        try:
            known = await self._database.read(lambda tx: submission_queries.find_numbers(tx, ids))
        except AdjudgeError as error:
            _log.warning("submit_result_unknown", error=error.message, submissions=len(ids))
            return [OutcomeUnknown()] * len(batch)
        return [
            submit_batch.add_numbers(order.answer, known)
            if order.submissions[0].id in known
            else await self._insert_alone(order)
            for order in batch
        ]

    async def _insert_alone(self, order: BatchedSubmit) -> StoredResponse | Exception:
        try:
            return (await self._write_batch([order]))[0]
        except Exception as error:  # noqa: BLE001 — the error is passed to the caller of this request
            return error


def _submissions_of(order: BatchedSubmit) -> int:
    return len(order.submissions)
