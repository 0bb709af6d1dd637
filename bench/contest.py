"""Scoreboards: from a verdict to open scoreboards, and what an update, a page and a board in memory cost.

Two contests are compared, 10,000 teams on 15 problems with 100,000 submissions and 100 teams with 1,000, each in a
database of its own. An update is the transaction that ends a judge job, with the refold of its cell, and the board in
memory that reads it from the log. The way to an open scoreboard is measured from before that transaction until an event
arrives at a reader in another process; on PostgreSQL the judge is in a third process, on SQLite in that of the server.

PostgreSQL runs with fsync on, SQLite with ``synchronous=FULL``. The small and the large contest take turns.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import asyncpg
import httpx

from adjudge.services.scoreboard_feed import BoardKey, BoardTopic, ScoreboardFeed
from adjudge.services.scoreboard_rows import encode_change
from adjudge.store import open_database
from adjudge.store.contests.scoreboard import PUBLIC
from bench.api_fixture import SETTINGS, BenchProcess
from bench.api_load_generator import request
from bench.contest_fixture import SLUG, ContestSeed, ContestSize, seed_contest
from bench.contest_judge import ContestJudge
from bench.harness import Bench, Goal, sized
from bench.queue_systems import quantile
from tests.support.servers import PostgresServer

LARGE = ContestSize(sized(full=10_000, smoke=40), 15, sized(full=100_000, smoke=80))
SMALL = ContestSize(sized(full=100, smoke=20), 15, sized(full=1_000, smoke=40))
UPDATES = sized(full=300, quick=100, smoke=3)
VERDICTS = sized(full=200, quick=60, smoke=2)
READERS = sized(full=1_000, quick=1_000, smoke=10)
VERDICTS_TO_ALL = sized(full=40, quick=15, smoke=2)
PAGES = sized(full=60, quick=20, smoke=2)
WARM_UP = sized(full=20, smoke=1)
PAGE_PATH = f"/contests/{SLUG}/scoreboard"
API_PATH = f"/api/v1/contests/{SLUG}/scoreboard"


@dataclass(frozen=True, slots=True)
class ContestDatabases:
    """The two contests on one kind of database."""

    label: str
    large: ContestSeed
    small: ContestSeed


@dataclass(frozen=True, slots=True)
class UpdateCost:
    """What one verdict took, in milliseconds."""

    transaction: float
    live: float
    """The board in memory: reading the log, the rank, the event."""

    @property
    def both(self) -> float:
        return self.transaction + self.live


class UpdatedBoard:
    """A contest whose public board is in memory."""

    def __init__(self, judge: ContestJudge, feed: ScoreboardFeed) -> None:
        self._judge, self._feed = judge, feed

    @classmethod
    async def open(cls, seed: ContestSeed, updates: int, stack: AsyncExitStack) -> UpdatedBoard:
        """Read the board and submit what is judged later."""
        database = await stack.enter_async_context(open_database(seed.url, migrate=False))
        judge, feed = ContestJudge(database, seed), ScoreboardFeed(database, encode_change)
        await judge.prepare(updates)
        stack.push_async_callback(feed.close)
        topic = BoardTopic(BoardKey(seed.contest_id, PUBLIC, is_complete=False))
        await stack.enter_async_context(feed.subscribe([topic]))
        return cls(judge, feed)

    async def update(self) -> UpdateCost:
        """Judge one submission and bring the board up to date."""
        began = time.perf_counter()
        await self._judge.judge()
        committed = time.perf_counter()
        await self._feed.catch_up()
        return UpdateCost((committed - began) * 1_000, (time.perf_counter() - committed) * 1_000)


async def measure_updates(found: ContestDatabases) -> tuple[list[UpdateCost], list[UpdateCost]]:
    """Updates of the large and of the small contest, in turns."""
    async with AsyncExitStack() as stack:
        boards = [await UpdatedBoard.open(seed, UPDATES + WARM_UP, stack) for seed in (found.large, found.small)]
        costs: tuple[list[UpdateCost], list[UpdateCost]] = ([], [])
        for number in range(UPDATES + WARM_UP):
            for which in (0, 1) if number % 2 else (1, 0):
                cost = await boards[which].update()
                if number >= WARM_UP:
                    costs[which].append(cost)
    return costs


def add_updates(bench: Bench, found: ContestDatabases) -> None:
    """What a verdict costs in a large contest beside a small one."""
    large, small = asyncio.run(measure_updates(found))
    parts: dict[str, Callable[[UpdateCost], float]] = {
        "one update, transaction and board in memory": lambda cost: cost.both,
        "one update, transaction alone": lambda cost: cost.transaction,
        "one update, board in memory alone": lambda cost: cost.live,
    }
    for name, part in parts.items():
        figures = {str(LARGE): median(map(part, large)), str(SMALL): median(map(part, small))}
        bench.compare(f"{found.label}: {name}", figures, str(LARGE), str(SMALL), unit="ms", goal=Goal(limit=1.5))


class ContestTarget:
    """The server of the large contest, and the process that judges."""

    def __init__(self, found: ContestDatabases, folder: Path, stack: ExitStack) -> None:
        self.label = found.label
        settings = SETTINGS | {"DATABASE_URL": found.large.url, "DATA_DIR": str(folder / f"{found.label}-data")}
        environment = {f"ADJUDGE_{name}": value for name, value in settings.items()}
        if found.large.url.startswith("sqlite"):
            self.server = BenchProcess(f"{found.label}-up", ["bench.contest_server"], folder, stack, **environment)
            self.server.tell(asdict(found.large))
            self._judge = self.server
        else:
            argv = ["adjudge", "api", "--port", "0"]
            self.server = BenchProcess(f"{found.label}-api", argv, folder, stack, **environment)
            self._judge = BenchProcess(f"{found.label}-judge", ["bench.contest_judge"], folder, stack)
            self._judge.ask(**asdict(found.large))
        self.port = self.server.port()

    def delays(self, listeners: BenchProcess, readers: int, verdicts: int) -> tuple[list[float], list[float]]:
        """Milliseconds from a verdict to the first and to the last of the open scoreboards, in order of size."""
        asked = request("GET", f"{API_PATH}/events").decode()
        listeners.ask(do="watch", port=self.port, requests=[asked] * readers, event="row")
        submitted = self._judge.ask(do="prepare", count=verdicts)["participants"]
        listeners.ask(do="arrivals", total=submitted)
        firsts, lasts = [], []
        for number in range(1, verdicts + 1):
            began_ns = self._judge.ask(do="judge")["began_ns"]
            heard = listeners.ask(do="arrivals", total=submitted + number)["heard_ns"]
            firsts.append((min(heard) - began_ns) / 1_000_000)
            lasts.append((max(heard) - began_ns) / 1_000_000)
        assert listeners.ask(do="leave")["open"] == readers
        return sorted(firsts), sorted(lasts)


def add_pages(bench: Bench, target: ContestTarget) -> None:
    """The first page of the scoreboard, for people and for programs, and what the board takes in memory."""
    before_mb = target.server.memory_mb
    with httpx.Client(base_url=f"http://127.0.0.1:{target.port}", timeout=60) as client:
        client.get(f"/contests/{SLUG}").raise_for_status()
        began = time.perf_counter()
        client.get(PAGE_PATH).raise_for_status()
        cold_ms = (time.perf_counter() - began) * 1_000
        bench.add(f"{target.label}: first request, which reads {LARGE} into memory", cold_ms, "ms")
        bench.add(f"{target.label}: memory of the server, with the board", target.server.memory_mb, "MB")
        bench.add(f"{target.label}: memory of the board", target.server.memory_mb - before_mb, "MB")
        for name, path in (("first page", PAGE_PATH), ("first API page", API_PATH)):
            answer, waits = client.get(path), []
            wire_bytes = int(answer.headers["Content-Length"])
            bench.add(f"{target.label}: {name}, bytes over the wire", wire_bytes / 1_000, "kB")
            bench.add(f"{target.label}: {name}, bytes", len(answer.content) / 1_000, "kB")
            for _ in range(PAGES):
                began = time.perf_counter()
                client.get(path).raise_for_status()
                waits.append((time.perf_counter() - began) * 1_000)
            bench.add(f"{target.label}: {name}, time", median(waits), "ms")


def add_delays(bench: Bench, target: ContestTarget, listeners: BenchProcess) -> None:
    """From a verdict to open scoreboards."""
    alone, _ = target.delays(listeners, 1, VERDICTS)
    for part in (0.5, 0.99):
        bench.add(f"{target.label}: verdict to an open scoreboard, p{part * 100:.0f}", quantile(alone, part), "ms")
    _, last = target.delays(listeners, READERS, VERDICTS_TO_ALL)
    for part in (0.5, 0.99):
        name = f"{target.label}: verdict to the last of {READERS:,} open scoreboards, p{part * 100:.0f}"
        bench.add(name, quantile(last, part), "ms", goal=Goal(limit=500))
    bench.add(f"{target.label}: memory of the server, after {READERS:,} streams", target.server.memory_mb, "MB")


def _progress(words: str) -> None:
    print(f"bench contest: {words} …", file=sys.stderr, flush=True)


async def _create_database(server: PostgresServer, name: str) -> str:
    admin = await asyncpg.connect(server.url())
    await admin.execute(f"CREATE DATABASE {name}")
    await admin.close()
    return server.url(name)


async def _seed(label: str, large_url: str, small_url: str) -> ContestDatabases:
    return ContestDatabases(label, await seed_contest(large_url, LARGE), await seed_contest(small_url, SMALL))


async def _open_postgres(stack: ExitStack) -> ContestDatabases:
    server = PostgresServer(durable=True)
    server.start()
    stack.callback(server.stop)
    large, small = [await _create_database(server, name) for name in ("large", "small")]
    return await _seed("PostgreSQL", large, small)


async def _open_sqlite(folder: Path) -> ContestDatabases:
    return await _seed("SQLite", f"sqlite:///{folder / 'large.db'}", f"sqlite:///{folder / 'small.db'}")


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # asked to end: no process of ours may stay behind
    bench = Bench("contest")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adjudge-bench-")))
        listeners = BenchProcess("listens", ["bench.api_load_generator"], folder, stack)
        _progress(f"contests of {LARGE} and {SMALL}")
        databases = [asyncio.run(_open_postgres(stack)), asyncio.run(_open_sqlite(folder))]
        listeners.expect("ready")
        for found in databases:
            submissions = f"{LARGE.submissions:,} submissions"
            bench.add(f"{found.label}: the whole scoreboard refolded, {submissions}", found.large.refold_sec, "s")
            _progress(f"updates, {found.label}")
            add_updates(bench, found)
            _progress(f"pages and streams, {found.label}")
            target = ContestTarget(found, folder, stack)
            add_pages(bench, target)
            add_delays(bench, target, listeners)
    bench.finish()


if __name__ == "__main__":
    main()
