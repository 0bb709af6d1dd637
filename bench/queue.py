"""The queue with no-op jobs, beside procrastinate, Celery, arq and the raw drivers.

Every contender is one worker process that may have a hundred jobs under way, one process that hands jobs in, and the
servers it needs; ours has its scheduler besides, as an installation has. PostgreSQL runs with fsync on for all, SQLite
with ``synchronous=FULL``. Rates count from the first submit, a hundred jobs at a time where there is a call for
that, to the end of the last job: ours ends with the commit of its row, a peer's with the last line of its task. Waits
are from commit to start, of jobs submitted singly, so far apart that they show wake-ups and not queueing.

What peers are set to do stands in ``queue_procrastinate``, ``queue_celery`` and ``queue_arq``. None of them promises
what Adjudge's queue does: Celery and arq keep their jobs in Redis alone, procrastinate ends a job without a fence.
``queue_baseline`` runs the same statements and scripts in the same batches, without the rest of the queue.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import asyncpg

from adjudge.store import migrations
from bench import queue_fairness
from bench.harness import Bench, Goal, interleave, sized
from bench.queue_backlog import cost_us, load_postgres, load_sqlite
from bench.queue_systems import PACKAGES, QueueSystem, SystemSpec, install, peer_recipe, quantile
from tests.support.servers import PostgresServer, RedisServer

JOBS = sized(full=10_000, quick=1_000, smoke=20)
ROUNDS = sized(full=5, quick=3, smoke=1)
WARM_UP = sized(full=300, smoke=10)
SPACED = sized(full=500, quick=100, smoke=5)
GAP_MS = 20
BACKLOGS = (sized(full=1_000, smoke=200), sized(full=1_000_000, quick=50_000, smoke=500))
BACKLOG_JOBS = sized(full=10_000, quick=1_500, smoke=50)
BACKLOG_WARM_UP = sized(full=5_000, smoke=20)
"""More than is announced ahead of the workers: from there on, one job is announced for each that ends."""
BACKLOG_ROUNDS = sized(full=3, quick=1, smoke=1)
OTHERS = sized(full=2_000, quick=500, smoke=100)
ROLES = ("scheduler", "worker", "submitter")
OURS, RAW, EMBEDDED, RAW_EMBEDDED = "PostgreSQL + Redis", "raw drivers", "embedded", "raw driver"


class Servers:
    """PostgreSQL and Redis, for everybody."""

    def __init__(self, stack: ExitStack) -> None:
        self.postgres, self.redis = PostgresServer(durable=True), RedisServer()
        for server in (self.postgres, self.redis):
            server.start()
            stack.callback(server.stop)

    def create(self, name: str, *, migrated: bool = True) -> str:
        """A database of its own, with our schema by default."""

        async def create() -> str:
            admin = await asyncpg.connect(self.postgres.url())
            await admin.execute(f"CREATE DATABASE {name}")
            await admin.close()
            url = self.postgres.url(name)
            if migrated:
                await migrations.upgrade(url)
            return url

        return asyncio.run(create())

    def redis_url(self, number: int) -> str:
        """One of Redis' numbered databases."""
        return self.redis.url.rpartition("/")[0] + f"/{number}"


def create_sqlite(folder: Path, name: str) -> str:
    url = f"sqlite:///{folder / name}.db"
    asyncio.run(migrations.upgrade(url))
    return url


def our_recipe(name: str, url: str, redis_url: str | None) -> SystemSpec:
    roles, addresses = (ROLES, (url, redis_url)) if redis_url else (("embedded",), (url,))
    return SystemSpec(name, sys.executable, "bench.queue_adjudge", roles, addresses)


def raw_recipe(name: str, url: str, redis_url: str | None) -> SystemSpec:
    roles, addresses = (ROLES, (url, redis_url)) if redis_url else (("embedded",), (url,))
    return SystemSpec(name, sys.executable, "bench.queue_baseline", roles, addresses)


def system_specs(servers: Servers, folder: Path, peers: Sequence[str]) -> list[SystemSpec]:
    """Everybody who takes part."""
    found = [
        our_recipe(OURS, servers.create("ours"), servers.redis_url(0)),
        raw_recipe(RAW, servers.create("raw"), servers.redis_url(1)),
        our_recipe(EMBEDDED, create_sqlite(folder, "ours"), None),
        raw_recipe(RAW_EMBEDDED, create_sqlite(folder, "raw"), None),
    ]
    addresses = {
        "procrastinate": servers.create("procrastinate", migrated=False),
        "Celery": servers.redis_url(2),
        "arq": servers.redis_url(3),
    }
    return [*found, *(peer_recipe(peer, addresses[peer]) for peer in peers)]


def add_rates(bench: Bench, contenders: Mapping[str, QueueSystem], missing: Mapping[str, str]) -> None:
    for contender in contenders.values():
        contender.wait_ready()
    for contender in contenders.values():
        contender.rate(WARM_UP)
    runs = {name: lambda contender=contender: contender.rate(JOBS) for name, contender in contenders.items()}
    rates = interleave(runs, ROUNDS)
    name, unit = "no-op jobs, end to end", "jobs/s"
    for peer, goal in (("procrastinate", Goal(at_least=3)), ("Celery", Goal(at_least=1)), ("arq", None)):
        if peer in missing:
            bench.absent(f"{OURS}: {name}", f"{peer}: {missing[peer]}")
        else:
            bench.compare(f"{OURS}: {name}", rates, OURS, peer, unit=unit, goal=goal)
    bench.compare(f"{OURS}: {name}", rates, OURS, RAW, unit=unit, goal=Goal(at_least=0.5))
    bench.compare(f"{EMBEDDED}: {name}", rates, EMBEDDED, RAW_EMBEDDED, unit=unit, goal=Goal(at_least=0.5))


def add_waits(bench: Bench, contenders: Mapping[str, QueueSystem]) -> None:
    p50, p99 = {}, {}
    for name in contenders:
        if name not in (RAW, RAW_EMBEDDED):
            waits = contenders[name].waits_ms(SPACED, GAP_MS)
            p50[name], p99[name] = quantile(waits, 0.50), quantile(waits, 0.99)
    peers = [name for name in p50 if name not in (OURS, EMBEDDED)]
    for label, figures, goal in (("p50", p50, Goal(limit=10)), ("p99", p99, Goal(limit=50))):
        theirs = ", ".join(f"{peer} {figures[peer]:.3g}" for peer in peers) or None
        for name in (OURS, EMBEDDED):
            against = theirs if name == OURS else None
            bench.add(f"{name}: commit → started, {label}", figures[name], "ms", against=against, goal=goal)


def add_backlogs(bench: Bench, servers: Servers, folder: Path) -> None:
    """What a job costs with a few and with very many waiting, in turns."""
    for name, kind in ((OURS, "postgres"), (EMBEDDED, "sqlite")):
        _progress(f"backlogs, {name}")
        recipes = {f"{size:,}": _with_backlog(servers, folder, kind, size) for size in BACKLOGS}
        few, many = recipes
        runs = {size: partial(_cost_us, recipe, folder) for size, recipe in recipes.items()}
        costs = interleave(runs, BACKLOG_ROUNDS)
        bench.compare(
            f"{name}: a job with {many} waiting",
            {many: costs[many], f"with {few}": costs[few]},
            many,
            f"with {few}",
            unit="us",
            goal=Goal(limit=1.5),
        )


def add_fairness(bench: Bench, servers: Servers, folder: Path) -> None:
    """How long one user's job waits behind the many of another."""
    _progress("fair order")
    in_order_ms = OTHERS * queue_fairness.JOB_SEC * 1e3 / queue_fairness.SLOTS
    for name, kind in ((OURS, "postgres"), (EMBEDDED, "sqlite")):
        waits = []
        for others in (0, OTHERS):
            system = f"fair_{kind}_{others}"
            url = servers.create(system) if kind == "postgres" else create_sqlite(folder, system)
            redis_url = servers.redis_url(6 + bool(others)) if kind == "postgres" else None
            waits.append(asyncio.run(queue_fairness.wait_ms(url, redis_url, others)))
        idle, behind = waits
        bench.add(
            f"{name}: one job behind {OTHERS:,} of another user",
            behind,
            "ms",
            against=f"idle {idle:.3g} ms, in order of creation {in_order_ms:,.0f} ms",
            goal=Goal(limit=in_order_ms / 4),
        )


def _with_backlog(servers: Servers, folder: Path, kind: str, size: int) -> SystemSpec:
    name = f"{kind}_{size}"
    if kind == "postgres":
        url = servers.create(name)
        asyncio.run(load_postgres(url, size))
        return our_recipe(name, url, servers.redis_url(4 + BACKLOGS.index(size)))
    url = create_sqlite(folder, name)
    load_sqlite(folder / f"{name}.db", size)
    return our_recipe(name, url, None)


def _cost_us(recipe: SystemSpec, folder: Path) -> float:
    """Started anew for each round: between rounds nothing may eat the queue up."""
    with ExitStack() as stack:
        board = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        contender = QueueSystem(recipe, board, stack)
        contender.wait_ready()
        return cost_us(contender, warm_up=BACKLOG_WARM_UP, count=BACKLOG_JOBS)


def _progress(words: str) -> None:
    """On standard error, because a full run takes minutes."""
    print(f"bench queue: {words} …", file=sys.stderr, flush=True)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # asked to end: no process of ours may stay behind
    bench = Bench("queue")
    _progress("peers")
    missing = {peer: why for peer in PACKAGES if (why := install(peer))}
    with ExitStack() as outer:
        folder = Path(outer.enter_context(tempfile.TemporaryDirectory(prefix="adjudge-bench-")))
        servers = Servers(outer)
        with ExitStack() as stack:
            everybody = system_specs(servers, folder, [peer for peer in PACKAGES if peer not in missing])
            contenders = {recipe.name: QueueSystem(recipe, folder, stack) for recipe in everybody}
            _progress("rates")
            add_rates(bench, contenders, missing)
            _progress("waits")
            add_waits(bench, contenders)
        add_backlogs(bench, servers, folder)
        add_fairness(bench, servers, folder)
    bench.finish()


if __name__ == "__main__":
    main()
