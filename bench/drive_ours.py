"""The drive's own processes in its benchmark, with a kind of job that does nothing; roles as in ``ours``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from adjudge.domain.ids import new_id
from adjudge.store import Database, Tx
from adjudge.store.job_values import Ended, Job, NewJob
from adjudge.store.jobs import Jobs
from adjudge.worker.handler import Completion, Handler
from bench import ours
from bench.drive_board import Board, submit_on_command

KIND = "noop"


class Noop:
    """The handler of jobs that do nothing."""

    def __init__(self, board: Board) -> None:
        self._board = board

    async def run(self, job: Job) -> Completion:
        self._board.started(job.payload["n"])
        return Completion()

    def needs(self, _: Mapping[str, Any], /) -> tuple[str, ...]:
        return ()


class Owner:
    """Marks a job as done once the transaction that ended it has committed, and not before."""

    def __init__(self, board: Board) -> None:
        self._board = board

    async def started(self, tx: Tx, jobs: Sequence[Job]) -> None: ...

    async def released(self, tx: Tx, jobs: Sequence[Job]) -> None: ...

    async def ended(self, tx: Tx, ended: Sequence[Ended]) -> None:
        numbers = [item.job.payload["n"] for item in ended]

        def mark() -> None:
            for number in numbers:
                self._board.done(number)
            self._board.count(len(numbers))

        tx.on_commit(mark)


def new_jobs(numbers: Sequence[int]) -> list[NewJob]:
    return [NewJob(id=new_id(), kind=KIND, payload={"n": number}) for number in numbers]


@asynccontextmanager
async def work(_: Database, board: Board) -> AsyncIterator[tuple[Jobs, Mapping[str, Handler]]]:
    yield Jobs({KIND: Owner(board)}), {KIND: Noop(board)}


async def submitter(database: Database, board: Board) -> None:
    jobs = Jobs({})

    async def submit(numbers: list[int]) -> None:
        await database.transact(lambda tx: jobs.enqueue(tx, new_jobs(numbers)))

    await submit_on_command(board, submit)


if __name__ == "__main__":
    ours.main(ours.House("bench", work, submitter))
