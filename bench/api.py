"""The API of one process: submitting, singly and by the thousand, reading what is cached, and a thousand event streams.

The server is ``adjudge api`` as it is, asked over loopback by another process with requests made beforehand. Beside it:

- for submitting, the bare driver, which commits the same rows by the same statements, one transaction each, at the same
  concurrency (``api_raw``);
- for reading, the same framework on the same server answering a constant (``http_constant``);
- for the event streams, the very same load without them.

PostgreSQL runs with fsync on, SQLite with ``synchronous=FULL``. Everything takes turns, and the median of the rounds
counts: on a busy machine figures move together, ratios much less.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import asyncpg

from bench.api_fixture import (
    SLUG,
    ApiFixture,
    BenchProcess,
    LoadResult,
    api_process,
    load,
    median_result,
    seed_database,
)
from bench.api_load_generator import request
from bench.harness import Bench, Goal, sized
from bench.http_baseline import PATH as CONSTANT_PATH
from tests.support.servers import PostgresServer

ROUNDS = sized(full=7, quick=3, smoke=1)
CONCURRENCY = sized(full=64, smoke=4)
SUBMITS = sized(full=4_000, quick=500, smoke=8)
BATCH = sized(full=1_000, smoke=10)
BATCHES = sized(full=12, quick=3, smoke=2)
BATCHES_AT_ONCE = 2
READERS = sized(full=32, smoke=4)
READS = sized(full=10_000, quick=1_500, smoke=8)
USERS_LISTENING, STAFF_LISTENING = sized(full=990, smoke=9), sized(full=10, smoke=1)
FIXTURES = (("ours", USERS_LISTENING), ("raw", CONCURRENCY))
"""Databases, and how many people live there."""
OURS, RAW, CONSTANT = "ours", "raw driver", "constant"

Contender = Callable[[], LoadResult]


def interleave_rounds(contenders: Mapping[str, Contender], rounds: int = ROUNDS) -> dict[str, LoadResult]:
    """One round to warm up, then rounds in turn, every other one backwards; the median of each."""
    seen: dict[str, list[LoadResult]] = {name: [] for name in contenders}
    for number in range(-1, rounds):
        for name in sorted(contenders, reverse=bool(number % 2)):
            ran = contenders[name]()
            if number >= 0:
                seen[name].append(ran)
    return {name: median_result(runs) for name, runs in seen.items()}


class ApiTarget:
    """The API server and the baseline of one database, with their load generators."""

    def __init__(self, label: str, ours: ApiFixture, raw: ApiFixture, folder: Path, stack: ExitStack) -> None:
        self.label, self.ours, self._raw_fixture = label, ours, raw
        self._server = api_process(f"{label}-api", ours, folder, stack)
        self._raw = BenchProcess(f"{label}-raw", ["bench.api_baseline", raw.url, str(CONCURRENCY)], folder, stack)
        self.port = 0

    def wait_ready(self) -> None:
        """Making one starts its processes and does not wait for them, so that all may start at the same time."""
        self.port = self._server.port()
        self._raw.expect("ready")

    def raw(self, count: int, size: int = 1, askers: int = CONCURRENCY) -> LoadResult:
        """Commit by the bare driver."""
        answer = self._raw.ask(example=self._raw_fixture.example, count=count, size=size, askers=askers)
        return LoadResult.of(answer, size)


def add_submits(bench: Bench, site: ApiTarget, generator: BenchProcess) -> None:
    """One by one, many at the same time."""
    requests = site.ours.submits(CONCURRENCY)
    found = interleave_rounds(
        {OURS: lambda: load(generator, site.port, requests, SUBMITS), RAW: lambda: site.raw(SUBMITS)}
    )
    name = f"{site.label}: single submits, {CONCURRENCY} at once"
    rates = {who: ran.per_sec for who, ran in found.items()}
    bench.compare(name, rates, OURS, RAW, unit="submits/s", goal=Goal(at_least=0.6))
    for part in ("p50", "p99"):
        waits = {who: getattr(ran, f"{part}_ms") for who, ran in found.items()}
        bench.compare(f"{name}, {part}", waits, OURS, RAW, unit="ms")


def add_batches(bench: Bench, site: ApiTarget, generator: BenchProcess) -> None:
    """A thousand in a call."""
    requests = site.ours.batches(BATCHES_AT_ONCE, BATCH)
    found = interleave_rounds(
        {
            OURS: lambda: load(generator, site.port, requests, BATCHES, BATCH),
            RAW: lambda: site.raw(BATCHES, BATCH, BATCHES_AT_ONCE),
        }
    )
    against = f"{RAW}, {BATCH:,} in a transaction: {found[RAW].per_sec:,.0f} submits/s"
    name = f"{site.label}: batch endpoint, {BATCH:,} a call"
    bench.add(name, found[OURS].per_sec, "submits/s", against=against, goal=Goal(at_least=5_000))


def add_reads(bench: Bench, site: ApiTarget, generator: BenchProcess, folder: Path, stack: ExitStack) -> None:
    """A problem that the server has at hand, for visitors and for users."""
    path = f"/api/v1/problems/{SLUG}"
    size = _size_of(generator, site.port, path)
    constant = BenchProcess("constant", ["bench.http_baseline", str(size)], folder, stack)
    constant_port = constant.port()
    as_visitor = [request("GET", path).decode()] * READERS
    as_user = [request("GET", path, token).decode() for token in site.ours.tokens[:READERS]]
    constants = [request("GET", CONSTANT_PATH).decode()] * READERS
    found = interleave_rounds(
        {
            "visitor": lambda: load(generator, site.port, as_visitor, READS),
            CONSTANT: lambda: load(generator, constant_port, constants, READS),
            "user": lambda: load(generator, site.port, as_user, READS),
        }
    )
    rates = {who: ran.per_sec for who, ran in found.items()}
    for who in ("visitor", "user"):
        bench.compare(f"cached problem, read by a {who}", rates, who, CONSTANT, unit="reads/s", goal=Goal(at_least=0.7))
    p99 = {who: ran.p99_ms for who, ran in found.items()}
    bench.compare("cached problem, read by a user, p99", p99, "user", CONSTANT, unit="ms")


def _size_of(generator: BenchProcess, port: int, path: str) -> int:
    answer = generator.ask(do="measure", port=port, request=request("GET", path).decode())
    return int(answer["body_bytes"])


def add_streams(bench: Bench, site: ApiTarget, generator: BenchProcess, listeners: BenchProcess) -> None:
    """The same load with a thousand event streams open and without, in turns."""
    requests = site.ours.submits(CONCURRENCY)
    heard: list[int] = []

    def with_streams() -> LoadResult:
        listeners.ask(do="watch", port=site.port, requests=site.ours.streams(USERS_LISTENING, STAFF_LISTENING))
        ran = load(generator, site.port, requests, SUBMITS)
        answer = listeners.ask(do="leave")
        assert answer["open"] == USERS_LISTENING + STAFF_LISTENING, answer
        heard.append(answer["heard"])
        return ran

    found = interleave_rounds({"with": with_streams, "without": lambda: load(generator, site.port, requests, SUBMITS)})
    rates = {who: ran.per_sec for who, ran in found.items()}
    name = f"{site.label}: single submits, {USERS_LISTENING + STAFF_LISTENING:,} event streams open"
    bench.compare(name, rates, "with", "without", unit="submits/s", goal=Goal(at_least=0.8))
    p99 = {who: ran.p99_ms for who, ran in found.items()}
    bench.compare(f"{name}, p99", p99, "with", "without", unit="ms")
    bench.add(f"{site.label}: events heard in a round", sum(heard) / len(heard), "events")


async def _create(server: PostgresServer, name: str) -> str:
    admin = await asyncpg.connect(server.url())
    await admin.execute(f"CREATE DATABASE {name}")
    await admin.close()
    return server.url(name)


def _progress(words: str) -> None:
    print(f"bench api: {words} …", file=sys.stderr, flush=True)


def _open_postgres(folder: Path, stack: ExitStack) -> ApiTarget:
    server = PostgresServer(durable=True)
    server.start()
    stack.callback(server.stop)
    ours, raw = (asyncio.run(seed_database(asyncio.run(_create(server, name)), people)) for name, people in FIXTURES)
    return ApiTarget("PostgreSQL", ours, raw, folder, stack)


def _open_sqlite(folder: Path, stack: ExitStack) -> ApiTarget:
    ours, raw = (asyncio.run(seed_database(f"sqlite:///{folder / name}.db", people)) for name, people in FIXTURES)
    return ApiTarget("SQLite", ours, raw, folder, stack)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # asked to end: no process of ours may stay behind
    bench = Bench("api")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adjudge-bench-")))
        generator, listeners = (
            BenchProcess(name, ["bench.api_load_generator"], folder, stack) for name in ("asks", "listens")
        )
        _progress("servers")
        sites = [_open_postgres(folder, stack), _open_sqlite(folder, stack)]
        for process in (generator, listeners):
            process.expect("ready")
        for site in sites:
            site.wait_ready()
        _progress("cached reads")
        add_reads(bench, sites[0], generator, folder, stack)
        for site in sites:
            _progress(f"submits, {site.label}")
            add_submits(bench, site, generator)
            add_batches(bench, site, generator)
        _progress("event streams")
        event_source = BenchProcess("referee", ["bench.api_event_source", sites[0].ours.url], folder, stack)
        event_source.expect("ready")
        add_streams(bench, sites[0], generator, listeners)
    bench.finish()


if __name__ == "__main__":
    main()
