"""The baseline: the queue's statements and scripts, in the same batches and processes, on raw drivers.

Everything that makes the queue safe and manageable in Python is left out: leases are not kept, refusals not explained,
nothing is counted or logged, no errors are handled, and one task does one thing after another. What is left is what the
databases, Redis and their clients cost. It does nothing less than that: the same rows and triggers, the same
transactions, the clock read once a statement, and the collector set as the queue's processes set it. Roles as in
``queue_adjudge``.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sqlite3
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol

import asyncpg
import uvloop
from redis.asyncio import Redis

from adjudge.cli.wiring.process import tune_gc
from adjudge.domain.priority import BANDS
from adjudge.store.engine.notify import CHANNEL_OUTBOX
from adjudge.store.engine.postgres import DATABASE_CLOCK, SESSION
from adjudge.store.engine.statement import Dialect, Rows, Statement, StatementCache
from adjudge.store.jobs import outbox
from adjudge.store.jobs import statements as sql
from adjudge.store.jobs.models import Fence, JobResult, finish_row, insert_row
from adjudge.stream import MessageBody, codec, redis_scripts
from bench import raw_statements as raw
from bench.queue_adjudge import new_jobs
from bench.queue_progress import CONCURRENCY, SharedProgress, send_line, submit_on_command

WORKER = "raw"
LEASE_US = 15_000_000
DISPATCH_BATCH = 512
"""The batch size of the dispatcher."""
TAKING: dict[str, object] = {"base_us": 1_000_000, **dict.fromkeys(outbox.CAPACITY_PARAMETERS, DISPATCH_BATCH)}
Call = tuple[Statement[Any], Rows | None, dict[str, object]]
Step = Call | Callable[[list[list[Any]]], Call]
"""A statement, or one that depends on what the ones before it answered."""
Entry = tuple[str, str, str]
"""Entry id, job id and payload's key."""


class RawDriver(Protocol):
    """A driver with nothing around it."""

    async def transact(self, *steps: Step) -> list[list[Any]]:
        """Run statements in one transaction; return the rows of each."""
        ...

    async def take_due(self) -> list[Any]:
        """Take a batch of the outbox, as this database is asked for it."""
        ...

    async def note(self, sent: Rows) -> None:
        """Note what is in the stream."""
        ...


def _written(texts: StatementCache, step: Step, answers: list[list[Any]]) -> tuple[str, list[Any]]:
    statement, rows, parameters = step(answers) if callable(step) else step
    text = texts.get(statement, rows)
    return text.sql, text.arguments(rows, parameters)


class BarePostgres:
    """One connection."""

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        self.connection = connection
        self._texts = StatementCache(Dialect.POSTGRES, DATABASE_CLOCK)

    async def transact(self, *steps: Step) -> list[list[Any]]:
        async with self.connection.transaction() if len(steps) > 1 else nullcontext():
            answers: list[list[Any]] = []
            for step in steps:
                text, arguments = _written(self._texts, step, answers)
                answers.append(await self.connection.fetch(text, *arguments))
        return answers

    async def take_due(self) -> list[Any]:
        return (await self.transact((raw.TAKE_DUE, None, TAKING)))[0]

    async def note(self, sent: Rows) -> None:
        await self.transact((raw.MARK_DELIVERED, sent, {"actor": WORKER}))


class BareSqlite:
    """One connection, on the thread that asks."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "cache_size=-65536"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._now_us = 0
        self._connection.create_function("raw_now", 0, lambda: self._now_us, deterministic=True)
        self._texts = StatementCache(Dialect.SQLITE, "raw_now()")

    async def transact(self, *steps: Step) -> list[list[Any]]:
        self._connection.execute("BEGIN IMMEDIATE")
        answers: list[list[Any]] = []
        for step in steps:
            text, arguments = _written(self._texts, step, answers)
            self._now_us = time.time_ns() // 1_000
            answers.append(self._connection.execute(text, arguments).fetchall())
        self._connection.execute("COMMIT")
        return answers

    async def take_due(self) -> list[Any]:
        _, rows = await self.transact(
            (raw.TAKE, None, TAKING),
            lambda answers: (raw.READ_TAKEN, [(row["job_id"],) for row in answers[0]], {}),
        )
        return rows

    async def note(self, sent: Rows) -> None:
        ids = [(row[0],) for row in sent]
        await self.transact((raw.DELIVERED, sent, {}), (raw.MARK_QUEUED, ids, {"actor": WORKER}))


async def enqueue(bare: RawDriver, numbers: Sequence[int]) -> None:
    jobs = new_jobs(numbers)
    rows = [(job.id, job.priority, 0) for job in jobs]
    await bare.transact((raw.INSERT, [insert_row(job) for job in jobs], {}), (raw.INSERT_OUTBOX, rows, {}))


async def dispatch(bare: RawDriver, publish: Callable[[list[Any]], Awaitable[list[str]]]) -> int:
    """Deliver one batch: two transactions around one call."""
    rows = await bare.take_due()
    if rows:
        entries = await publish(rows)
        await bare.note(
            sorted((row["id"], entry, row["dispatch_seq"]) for row, entry in zip(rows, entries, strict=True))
        )
    return len(rows)


async def work(bare: RawDriver, board: SharedProgress, job_ids: Sequence[str]) -> None:
    """Claim and finish one batch."""
    ids = sorted((job_id,) for job_id in job_ids)
    (claimed,) = await bare.transact((sql.CLAIM, ids, {"worker": WORKER, "lease_us": LEASE_US}))
    numbers = [json.loads(row["payload"])["n"] for row in claimed]
    for number in numbers:
        board.started(number)
    finishes = sorted(finish_row(JobResult(Fence(row["id"], row["attempt_id"], WORKER)))[:8] for row in claimed)
    await bare.transact((raw.FINISH, finishes, {}))
    for number in numbers:
        board.done(number)


class DistributedBaseline:
    """The roles on PostgreSQL and Redis, a process each."""

    def __init__(self, bare: BarePostgres, redis: Redis, board: SharedProgress) -> None:
        self._bare, self._redis, self._board = bare, redis, board
        self._keys = [f"raw:jobs:{band}" for band in BANDS]
        self._publish = redis.register_script(redis_scripts.PUBLISH)
        self._take = redis.register_script(redis_scripts.READ)
        self._ack = redis.register_script(redis_scripts.ACK)

    async def submitter(self) -> None:
        async def submit(numbers: list[int]) -> None:
            await enqueue(self._bare, numbers)
            await self._bare.connection.execute("SELECT pg_notify($1, '')", CHANNEL_OUTBOX)

        await submit_on_command(self._board, submit)

    async def scheduler(self, listener: asyncpg.Connection[asyncpg.Record]) -> None:
        rung = asyncio.Event()
        await listener.add_listener(CHANNEL_OUTBOX, lambda *_: rung.set())
        send_line("ready")
        while True:
            rung.clear()
            if await dispatch(self._bare, self.publish) < DISPATCH_BATCH:
                await rung.wait()

    async def publish(self, rows: list[Any]) -> list[str]:
        arguments: list[Any] = []
        for row in rows:
            hint = MessageBody(row["id"], row["priority"], row["kind"], row["trace_id"], json.loads(row["payload"]))
            ref = f"raw:payload:{row['id']}:{secrets.token_hex(4)}"
            timestamp = time.time_ns() // 1_000_000
            arguments += (hint.band + 1, hint.job_id, timestamp, ref, hint.priority, codec.encode(hint))
        answers: list[str] = await self._publish(keys=self._keys, args=[200_000, 86_400, *arguments])
        return answers

    async def worker(self) -> None:
        send_line("ready")
        while True:
            entries = await self.take()
            await work(self._bare, self._board, [job_id for _, job_id, _ in entries])
            rows = [value for entry_id, _, ref in entries for value in (3, entry_id, ref)]
            await self._ack(keys=self._keys, args=[WORKER, *rows])

    async def take(self) -> list[Entry]:
        rows: list[Any] = await self._take(keys=self._keys, args=[WORKER, WORKER, CONCURRENCY, 0, 0, 0, 0])
        if rows:
            return [(row[1], row[5], row[9]) for row in rows]
        streams: dict[Any, Any] = dict.fromkeys(self._keys, ">")
        while True:
            reply: Any = await self._redis.xreadgroup(WORKER, WORKER, streams, count=1, block=1_000)
            if reply:
                return [(entry_id, body["job_id"], body["payload_ref"]) for entry_id, body in reply[0][1]]


async def distributed(role: str, board: SharedProgress, url: str, redis_url: str) -> None:
    bare = BarePostgres(await asyncpg.connect(url, server_settings=SESSION))
    redis = Redis.from_url(redis_url, decode_responses=True)
    roles = DistributedBaseline(bare, redis, board)
    if role == "scheduler":
        await roles.scheduler(await asyncpg.connect(url))
    else:
        await (roles.worker() if role == "worker" else roles.submitter())


async def embedded(board: SharedProgress, path: str) -> None:
    """One thing after another on one thread: submit, deliver, work."""
    bare, stream, number = BareSqlite(path), deque[str](), 0

    async def publish(rows: list[Any]) -> list[str]:
        nonlocal number
        stream.extend(row["id"] for row in rows)
        number += len(rows)
        return [f"{number}-{at}" for at in range(len(rows))]

    async def submit(numbers: list[int]) -> None:
        await enqueue(bare, numbers)
        await dispatch(bare, publish)
        while stream:
            await work(bare, board, [stream.popleft() for _ in range(min(CONCURRENCY, len(stream)))])

    await submit_on_command(board, submit)


async def main(role: str, board_path: str, url: str, redis_url: str = "") -> None:
    board = SharedProgress(Path(board_path))
    tune_gc()
    if role == "embedded":
        await embedded(board, url.removeprefix("sqlite:///"))
    else:
        await distributed(role, board, url, redis_url)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(*sys.argv[1:]))
