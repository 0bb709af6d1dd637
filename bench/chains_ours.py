"""Runs our side of the chains' benchmark: ``scheduler``, ``worker`` and ``submitter``, or ``embedded``, all in one.

The parts are those of the commands, but for the sandbox, which nothing here needs. A run's number travels as its actor,
so that the worker, which sees runs end, can mark them.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop

from adjudge.blobs.directory import DirectoryBlobs
from adjudge.chains.awaiting import PROBES, run_ended
from adjudge.chains.engine import Engine
from adjudge.chains.executor import NodeContext, NodeResult
from adjudge.chains.executors.basic import Noop
from adjudge.cli.parts import schedule
from adjudge.domain.ids import new_id
from adjudge.observe import logs
from adjudge.settings import Settings, load
from adjudge.store import Database, Tx, chains, open_database
from adjudge.store.chain_values import NODE, NewRun, RunEnded
from adjudge.store.jobs import Jobs
from adjudge.stream import MemoryStream, Stream
from adjudge.stream.redis import RedisStream
from adjudge.worker.lease_thread import leases_kept_apart
from adjudge.worker.loop import Worker, WorkerSettings
from adjudge.worker.node import NodeHandler
from bench.chains_board import FIRST, document, start_on_command
from bench.drive_board import CONCURRENCY, Board, say

ENVIRONMENT = "bench-chains"


class Marked(Noop):
    """Our ``noop``, with a mark where a run's first node runs."""

    def __init__(self, board: Board) -> None:
        self._board = board

    async def execute(self, context: NodeContext) -> NodeResult:
        if context.node_id == FIRST:
            self._board.started(int(context.actor))
        return await super().execute(context)


def marking_engine(board: Board) -> Engine:
    """The engine as every role has it, which marks a run once its end is committed, and not before."""

    async def mark(tx: Tx, end: RunEnded) -> None:
        number = int(end.started_by or -1)
        tx.on_commit(lambda: board.done(number))

    return Engine(probes=PROBES, on_run_ended=[run_ended, mark])


@asynccontextmanager
async def open_worker(url: str, database: Database, stream: Stream, board: Board) -> AsyncIterator[Worker]:
    engine = marking_engine(board)
    jobs = Jobs({NODE: engine.owner})
    wanted = WorkerSettings(f"bench-{new_id()}", slots=CONCURRENCY)
    with tempfile.TemporaryDirectory(prefix="adjudge-bench-") as folder:
        handler = NodeHandler(database, DirectoryBlobs(Path(folder)), {Noop.type: Marked(board)}, engine.dags)
        async with leases_kept_apart(
            lambda: open_database(url, migrate=False, max_connections=2),
            jobs,
            lease_ms=wanted.lease_ms,
            heartbeat_ms=wanted.heartbeat_ms,
        ) as keeper:
            yield Worker(database, jobs, stream, {NODE: handler}, wanted, keeper=keeper)


async def submitter(database: Database, board: Board) -> None:
    """Defines a chain of a shape when it is first asked for, and starts it."""
    engine, known = Engine(), dict[tuple[str, int], str]()

    async def start(shape: str, number: int, size: int) -> None:
        if (shape, size) not in known:
            dag = document(shape, size)
            name = f"{shape}-{size}-{new_id()}"
            made = await database.transact(lambda tx: chains.create(tx, name=name, dag=dag, actor="bench"))
            known[shape, size] = made.id
            board.committed(number)  # what defining took is no part of starting
        wanted = NewRun(known[shape, size], {}, actor=str(number))
        await database.transact(lambda tx: engine.start(tx, wanted))

    await start_on_command(board, start)


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
