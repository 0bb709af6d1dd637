"""Adjudge's processes in the queue and chain benchmarks, wired as the commands wire them.

Roles: ``scheduler``, ``worker`` and ``submitter`` on PostgreSQL and Redis, and ``embedded``, all in one process. The
worker has its keeper of leases apart, as the command's; only the sandbox is missing, which nothing here needs.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop

from adjudge.cli.wiring.process import tune_gc
from adjudge.cli.wiring.scheduler import run_scheduler
from adjudge.domain.ids import new_id
from adjudge.observe import logs
from adjudge.settings import load
from adjudge.store import Database, open_database
from adjudge.store.jobs.commands import JobCommands
from adjudge.stream import MemoryStream, Stream
from adjudge.stream.redis import RedisStream
from adjudge.worker.handler import Handler
from adjudge.worker.leases import lease_keeper_thread
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions
from bench.queue_progress import CONCURRENCY, SharedProgress, send_line

Work = Callable[[Database, SharedProgress], AbstractAsyncContextManager[tuple[JobCommands, Mapping[str, Handler]]]]
"""Opens what a worker needs: jobs with their owners, and handlers."""


@dataclass(frozen=True)
class RoleSpec:
    """What one benchmark runs: its own Redis streams, its jobs and handlers, and how work is submitted."""

    environment: str
    work: Work
    submit: Callable[[Database, SharedProgress], Awaitable[None]]


@asynccontextmanager
async def _worker(
    role_spec: RoleSpec, url: str, database: Database, stream: Stream, board: SharedProgress
) -> AsyncIterator[Worker]:
    wanted = WorkerOptions(f"bench-{new_id()}", slots=CONCURRENCY)
    async with (
        role_spec.work(database, board) as (jobs, handlers),
        lease_keeper_thread(
            lambda: open_database(url, migrate=False, max_connections=2),
            jobs,
            lease_ms=wanted.lease_ms,
            heartbeat_ms=wanted.heartbeat_ms,
        ) as keeper,
    ):
        yield Worker(database, jobs, stream, handlers, wanted, keeper=keeper)


async def _embedded(role_spec: RoleSpec, url: str, database: Database, board: SharedProgress) -> None:
    stream = MemoryStream()
    async with _worker(role_spec, url, database, stream, board) as worker, asyncio.TaskGroup() as roles:
        tasks = [
            roles.create_task(run_scheduler(load(), database, stream, "scheduler")),
            roles.create_task(worker.run()),
        ]
        await role_spec.submit(database, board)
        for task in tasks:
            task.cancel()


async def _role(role_spec: RoleSpec, role: str, board_path: str, url: str, redis_url: str = "") -> None:
    logs.configure("warning")  # as for the peers
    board = SharedProgress(Path(board_path))
    tune_gc()
    async with open_database(url, migrate=False) as database:
        if role == "submitter":
            await role_spec.submit(database, board)
        elif role == "embedded":
            await _embedded(role_spec, url, database, board)
        else:
            stream = RedisStream(redis_url, environment=role_spec.environment)
            if role == "scheduler":
                send_line("ready")
                await run_scheduler(load(), database, stream, "scheduler")
            else:
                async with _worker(role_spec, url, database, stream, board) as worker:
                    send_line("ready")
                    await worker.run()


def main(role_spec: RoleSpec) -> None:
    """Be the role that the command line asks for: ROLE BOARD DATABASE [REDIS]."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_role(role_spec, *sys.argv[1:]))
