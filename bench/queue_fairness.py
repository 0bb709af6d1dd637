"""How long one job of a user waits behind the many of another, in one process with the roles of the product.

Each job takes a fixed time in a few slots, as judging does. The wait is that from the commit of the one job to its
start, with all jobs of the other user created just before; the comparison is the same job on an idle queue.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from adjudge.cli.wiring.scheduler import run_scheduler
from adjudge.domain.ids import new_id
from adjudge.settings import load
from adjudge.store import Database, open_database
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Job, NewJob
from adjudge.stream import MemoryStream, Stream
from adjudge.stream.redis import RedisStream
from adjudge.worker.handler import HandlerResult
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions

KIND = "noop"
JOB_SEC = 0.02
SLOTS = 2


class _SleepingHandler:
    """Takes a fixed time for each job and notes when each began."""

    def __init__(self) -> None:
        self.started: dict[str, asyncio.Future[float]] = {}

    async def run(self, job: Job) -> HandlerResult:
        if (noted := self.started.get(job.id)) is not None and not noted.done():
            noted.set_result(time.perf_counter())
        await asyncio.sleep(JOB_SEC)
        return HandlerResult()

    def limit_keys(self, _: Mapping[str, Any], /) -> tuple[str, ...]:
        return ()


async def _wait_ms(database: Database, stream: Stream, others: int) -> float:
    jobs, handler = JobCommands({}), _SleepingHandler()
    worker = Worker(database, jobs, stream, {KIND: handler}, WorkerOptions(f"bench-{new_id()}", slots=SLOTS))
    roles = [
        asyncio.create_task(run_scheduler(load(), database, stream, "scheduler")),
        asyncio.create_task(worker.run()),
    ]
    try:
        await _start_one(database, jobs, handler, "first")  # everything has connected
        if others:
            await _enqueue(database, jobs, "many", [new_id() for _ in range(others)])
            await asyncio.sleep(JOB_SEC * 10)  # the stream holds what it will hold
        return await _start_one(database, jobs, handler, "one")
    finally:
        for role in roles:
            role.cancel()
        for role in roles:
            with suppress(asyncio.CancelledError):
                await role


async def _start_one(database: Database, jobs: JobCommands, handler: _SleepingHandler, owner: str) -> float:
    """Create a job; return the milliseconds until it starts."""
    job_id = new_id()
    handler.started[job_id] = asyncio.get_running_loop().create_future()
    await _enqueue(database, jobs, owner, [job_id])
    committed = time.perf_counter()
    async with asyncio.timeout(120):
        return max(0.0, (await handler.started[job_id]) - committed) * 1e3


async def _enqueue(database: Database, jobs: JobCommands, owner: str, job_ids: Sequence[str]) -> None:
    new = [NewJob(id=job_id, kind=KIND, actor=owner) for job_id in job_ids]
    await database.transact(lambda tx: jobs.enqueue(tx, new))


async def wait_ms(url: str, redis_url: str | None, others: int) -> float:
    """The milliseconds that one job waits behind ``others`` of another user, on a database of its own."""
    async with open_database(url, migrate=False) as database:
        stream = MemoryStream() if redis_url is None else RedisStream(redis_url, environment="fairness")
        try:
            return await _wait_ms(database, stream, others)
        finally:
            await stream.close()
