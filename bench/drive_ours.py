"""The drive's own processes in its benchmark: put together as the commands do it, with a kind of job that does nothing.

Roles: ``scheduler``, ``worker`` and ``submitter`` on PostgreSQL and Redis, and ``embedded``, all in one process.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

from adjudge.cli.parts import schedule
from adjudge.domain.ids import new_id
from adjudge.observe import logs
from adjudge.settings import Settings, load
from adjudge.store import Database, Tx, open_database
from adjudge.store.job_values import Ended, Job, NewJob
from adjudge.store.jobs import Jobs
from adjudge.stream import MemoryStream, Stream
from adjudge.stream.redis import RedisStream
from adjudge.worker.handler import Completion
from adjudge.worker.lease_thread import leases_kept_apart
from adjudge.worker.loop import Worker, WorkerSettings
from bench.drive_board import CONCURRENCY, Board, say, submit_on_command

KIND = "noop"
ENVIRONMENT = "bench"


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
async def open_worker(url: str, database: Database, stream: Stream, board: Board) -> AsyncIterator[Worker]:
    """As the command's own, with its keeper of leases apart, but for the sandbox, which nothing here needs."""
    jobs = Jobs({KIND: Owner(board)})
    wanted = WorkerSettings(f"bench-{new_id()}", slots=CONCURRENCY)
    async with leases_kept_apart(
        lambda: open_database(url, migrate=False, max_connections=2),
        jobs,
        lease_ms=wanted.lease_ms,
        heartbeat_ms=wanted.heartbeat_ms,
    ) as keeper:
        yield Worker(database, jobs, stream, {KIND: Noop(board)}, wanted, keeper=keeper)


async def submitter(database: Database, board: Board) -> None:
    jobs = Jobs({})

    async def submit(numbers: list[int]) -> None:
        await database.transact(lambda tx: jobs.enqueue(tx, new_jobs(numbers)))

    await submit_on_command(board, submit)


async def embedded(settings: Settings, url: str, database: Database, board: Board) -> None:
    stream = MemoryStream()
    async with open_worker(url, database, stream, board) as worker, asyncio.TaskGroup() as roles:
        tasks = [
            roles.create_task(schedule(settings, database, stream, "scheduler")),
            roles.create_task(worker.run()),
        ]
        await submitter(database, board)
        for task in tasks:
            task.cancel()


async def main(role: str, board_path: str, url: str, redis_url: str = "") -> None:
    logs.configure()
    board, settings = Board(Path(board_path)), load()
    async with open_database(url, migrate=False) as database:
        if role == "submitter":
            await submitter(database, board)
        elif role == "embedded":
            await embedded(settings, url, database, board)
        else:
            stream = RedisStream(redis_url, environment=ENVIRONMENT)
            if role == "scheduler":
                say("ready")
                await schedule(settings, database, stream, "scheduler")
            else:
                async with open_worker(url, database, stream, board) as worker:
                    say("ready")
                    await worker.run()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(*sys.argv[1:]))
