"""Adjudge's processes in the queue benchmark, with a no-op job kind; roles as in ``adjudge_roles``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from adjudge.domain.ids import new_id
from adjudge.store import Database, Tx
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import FinishedJob, Job, NewJob
from adjudge.worker.handler import Handler, HandlerResult
from bench import adjudge_roles
from bench.queue_progress import SharedProgress, submit_on_command

KIND = "noop"


class NoopHandler:
    """The handler of jobs that do nothing."""

    def __init__(self, board: SharedProgress) -> None:
        self._board = board

    async def run(self, job: Job) -> HandlerResult:
        self._board.started(job.payload["n"])
        return HandlerResult()

    def limit_keys(self, _: Mapping[str, Any], /) -> tuple[str, ...]:
        return ()


class MarkingJobListener:
    """Marks a job as done once the transaction that ended it has committed, and not before."""

    def __init__(self, board: SharedProgress) -> None:
        self._board = board

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None: ...

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None: ...

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        numbers = [item.job.payload["n"] for item in ended]

        def mark() -> None:
            for number in numbers:
                self._board.done(number)
            self._board.count(len(numbers))

        tx.on_commit(mark)


def new_jobs(numbers: Sequence[int]) -> list[NewJob]:
    return [NewJob(id=new_id(), kind=KIND, payload={"n": number}) for number in numbers]


@asynccontextmanager
async def work(_: Database, board: SharedProgress) -> AsyncIterator[tuple[JobCommands, Mapping[str, Handler]]]:
    yield JobCommands({KIND: MarkingJobListener(board)}), {KIND: NoopHandler(board)}


async def submitter(database: Database, board: SharedProgress) -> None:
    jobs = JobCommands({})

    async def submit(numbers: list[int]) -> None:
        await database.transact(lambda tx: jobs.enqueue(tx, new_jobs(numbers)))

    await submit_on_command(board, submit)


if __name__ == "__main__":
    adjudge_roles.main(adjudge_roles.RoleSpec("bench", work, submitter))
