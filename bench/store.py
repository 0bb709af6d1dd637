"""The store beside the bare drivers: enqueue → claim → finish, one by one and batched, on both databases.

The bare driver runs the very statements that the store renders, with arguments made beforehand, on one connection. What
the store adds is Python: values, explanations, callbacks, and on SQLite the hop to the writer thread. PostgreSQL runs
with fsync on, SQLite with ``synchronous=FULL``. The last rows ask whether a job costs the same under a long history.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import asyncpg

from adjudge.domain.ids import new_id
from adjudge.store import Database, migrations
from adjudge.store.engine.postgres import DATABASE_CLOCK, SESSION, PostgresDatabase
from adjudge.store.engine.sqlite import SqliteDatabase
from adjudge.store.engine.statement import Dialect, RenderedStatement, Rows, Statement, render
from adjudge.store.jobs import statements as sql
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Fence, JobResult, NewJob, finish_row, insert_row
from bench import raw_statements as raw
from bench.harness import Bench, Goal, sized
from bench.store_history import load_postgres, load_sqlite
from tests.support.server_process import ServerNotInstalled
from tests.support.servers import PostgresServer

WORKER = "bench"
LEASE_MS = 600_000
BATCHES = (1, 100, 1_000)
ROUNDS = {
    1: sized(full=1_000, quick=150, smoke=2),
    100: sized(full=60, quick=12, smoke=1),
    1_000: sized(full=16, quick=5, smoke=1),
}
WARM_UP = sized(full=6, smoke=0)
"""The first rounds prepare statements and settle PostgreSQL's choice of plan."""
HISTORY = (
    sized(full=1_000, smoke=10),
    sized(full=100_000, quick=10_000, smoke=100),
    sized(full=1_000_000, quick=100_000, smoke=1_000),
)
Cycle = Callable[[int], Awaitable[float]]


def new_jobs(count: int) -> list[NewJob]:
    return [NewJob(id=new_id(), kind="bench", payload={"n": number}) for number in range(count)]


def adjudge_cycle(database: Database) -> Cycle:
    """The store's own operations; seconds that a batch of ``count`` took from enqueue to finish."""
    jobs = JobCommands({})

    async def cycle(count: int) -> float:
        batch = new_jobs(count)
        ids = [job.id for job in batch]
        began = time.perf_counter()
        await database.transact(lambda tx: jobs.enqueue(tx, batch))
        claimed = await database.transact(lambda tx: jobs.claim(tx, ids, worker=WORKER, lease_ms=LEASE_MS))
        finishes = [JobResult(Fence(job.id, 1, WORKER), result={"ok": True}, job=job) for job in claimed.done]
        done = await database.transact(lambda tx: jobs.finish_and_claim_next(tx, finishes))
        took = time.perf_counter() - began
        assert len(done.done) == count
        return took

    return cycle


class RawDriver(Protocol):
    """A driver with nothing around it."""

    dialect: Dialect
    now: str

    async def transact(self, calls: Sequence[tuple[str, list[object]]]) -> int:
        """Run statements in one transaction; return how many rows the last one returned."""
        ...


class BareSqlite:
    dialect = Dialect.SQLITE
    now = "bench_now()"

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.row_factory = sqlite3.Row
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "cache_size=-65536"):
            self.connection.execute(f"PRAGMA {pragma}")
        self.connection.create_function("bench_now", 0, lambda: time.time_ns() // 1_000)

    async def transact(self, calls: Sequence[tuple[str, list[Any]]]) -> int:
        self.connection.execute("BEGIN IMMEDIATE")
        rows: list[Any] = []
        for text, arguments in calls:
            rows = self.connection.execute(text, arguments).fetchall()
        self.connection.execute("COMMIT")
        return len(rows)


class BarePostgres:
    dialect = Dialect.POSTGRES
    now = DATABASE_CLOCK

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        self.connection = connection

    async def transact(self, calls: Sequence[tuple[str, list[object]]]) -> int:
        rows: list[Any] = []
        async with self.connection.transaction():
            for text, arguments in calls:
                rows = await self.connection.fetch(text, *arguments)
        return len(rows)


def raw_cycle(driver: RawDriver) -> Cycle:
    """The same statements on the bare driver, their arguments made beforehand."""
    rendered: dict[str, RenderedStatement] = {}

    def call(statement: Statement[Any], rows: Rows, **parameters: object) -> tuple[str, list[object]]:
        if statement.name not in rendered:
            rendered[statement.name] = render(statement, driver.dialect, driver.now)
        text = rendered[statement.name]
        return text.sql, text.arguments(rows, parameters)

    async def cycle(count: int) -> float:
        batch = new_jobs(count)
        ids = sorted((job.id,) for job in batch)
        finishes = [JobResult(Fence(job.id, 1, WORKER), result={"ok": True}) for job in batch]
        enqueue = [
            call(raw.INSERT, [insert_row(job) for job in batch]),
            call(raw.INSERT_OUTBOX, [(job.id, job.priority, 0) for job in batch]),
        ]
        claim = [call(sql.CLAIM, ids, worker=WORKER, lease_us=LEASE_MS * 1_000)]
        finish = [call(raw.FINISH, [finish_row(item)[:8] for item in finishes])]
        began = time.perf_counter()
        await driver.transact(enqueue)
        await driver.transact(claim)
        finished = await driver.transact(finish)
        took = time.perf_counter() - began
        assert finished == count
        return took

    return cycle


async def rates(cycles: dict[str, Cycle], batch: int) -> dict[str, float]:
    """Jobs per second of each, interleaved; the median of the rounds."""
    seen: dict[str, list[float]] = {name: [] for name in cycles}
    for number in range(WARM_UP + ROUNDS[batch]):
        for name in sorted(cycles, reverse=bool(number % 2)):
            took = await cycles[name](batch)
            if number >= WARM_UP:
                seen[name].append(batch / took)
    return {name: median(figures) for name, figures in seen.items()}


async def beside_the_driver(bench: Bench, label: str, cycles: dict[str, Cycle]) -> None:
    for batch in BATCHES:
        found = await rates(cycles, batch)
        name = f"{label}, one by one" if batch == 1 else f"{label}, batches of {batch:,}"
        goal = Goal(at_least=0.5) if batch > 1 else None
        bench.compare(name, found, "ours", "bare driver", unit="jobs/s", goal=goal)


async def under_history(bench: Bench, label: str, cycles: dict[str, Cycle]) -> None:
    found = await rates(cycles, 100)
    costs = {size: 1e6 / found[size] for size in cycles}
    base, *longer = costs
    for size in longer:
        bench.add(
            f"{label}, cost per job after {size} jobs",
            costs[size],
            "us",
            against=f"after {base}: {costs[base]:.0f} us",
            ratio=costs[size] / costs[base],
            goal=Goal(limit=1.5),
        )


async def sqlite(bench: Bench, folder: Path) -> None:
    async with AsyncExitStack() as stack:
        path = folder / "plain.db"
        await migrations.upgrade(f"sqlite:///{path}")
        database = SqliteDatabase(path)
        stack.push_async_callback(database.close)
        await beside_the_driver(
            bench, "SQLite", {"ours": adjudge_cycle(database), "bare driver": raw_cycle(BareSqlite(path))}
        )
        cycles: dict[str, Cycle] = {}
        for size in HISTORY:
            grown = folder / f"history-{size}.db"
            await migrations.upgrade(f"sqlite:///{grown}")
            load_sqlite(grown, size)
            with_history = SqliteDatabase(grown)
            stack.push_async_callback(with_history.close)
            cycles[f"{size:,}"] = adjudge_cycle(with_history)
        await under_history(bench, "SQLite", cycles)


async def postgres(bench: Bench, server: PostgresServer) -> None:
    async with AsyncExitStack() as stack:
        admin = await asyncpg.connect(server.url())
        stack.push_async_callback(admin.close)

        async def created(name: str) -> str:
            await admin.execute(f"CREATE DATABASE {name}")
            await migrations.upgrade(server.url(name))
            return server.url(name)

        url = await created("plain")
        database = await PostgresDatabase.open(url)
        stack.push_async_callback(database.close)
        connection = await asyncpg.connect(url, server_settings=SESSION)
        stack.push_async_callback(connection.close)
        cycles = {"ours": adjudge_cycle(database), "bare driver": raw_cycle(BarePostgres(connection))}
        await beside_the_driver(bench, "PostgreSQL", cycles)
        grown: dict[str, Cycle] = {}
        for size in HISTORY:
            address = await created(f"history_{size}")
            await load_postgres(address, size)
            with_history = await PostgresDatabase.open(address)
            stack.push_async_callback(with_history.close)
            grown[f"{size:,}"] = adjudge_cycle(with_history)
        await under_history(bench, "PostgreSQL", grown)


async def main() -> None:
    bench = Bench("store")
    with tempfile.TemporaryDirectory(prefix="adjudge-bench-") as folder:
        await sqlite(bench, Path(folder))
    server = PostgresServer(durable=True)
    try:
        server.start()
        await postgres(bench, server)
    except ServerNotInstalled as missing:
        bench.absent("PostgreSQL", str(missing))
    finally:
        server.stop()
    bench.finish()


if __name__ == "__main__":
    asyncio.run(main())
