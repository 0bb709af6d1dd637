"""Two hundred submissions in flight, and something happens to a process or a server: two hundred right verdicts."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from multiprocessing.context import ForkServerProcess
from urllib.request import urlopen

import pytest
from redis.asyncio import Redis

from tests.chaos.cluster import Cluster, create_cluster
from tests.support.databases import PostgresDatabases
from tests.support.server_process import free_port
from tests.support.servers import PostgresServer, RedisServer

pytestmark = pytest.mark.slow

IN_FLIGHT = 200
HELD = "jobs WHERE status = 'running' AND lease_owner = 'worker-1'"
LOST_AFTER_MS = 1_000
"""The lease of the worker to which things happen."""


@pytest.fixture(scope="module")
def durable_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL that keeps what it has acknowledged, because the plug is pulled on it."""
    server = PostgresServer(durable=True).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def private_redis() -> Iterator[RedisServer]:
    server = RedisServer().start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def databases(durable_postgres: PostgresServer) -> PostgresDatabases:
    return PostgresDatabases(durable_postgres)


@pytest.fixture
async def cluster(databases: PostgresDatabases, private_redis: RedisServer) -> AsyncIterator[Cluster]:
    name = await asyncio.to_thread(databases.create)
    async with create_cluster(databases.url(name), private_redis.url, name.replace("_", "-")) as cluster:
        yield cluster


class LoadedCluster:
    """Two schedulers, two workers, and two hundred submissions of which some are done and some are being judged."""

    def __init__(self, cluster: Cluster, stack: ExitStack) -> None:
        self.cluster = cluster
        self.stack = stack
        self.ports: dict[str, int] = {}
        self.submissions: list[str] = []

    async def gather(self) -> dict[str, ForkServerProcess]:
        for name in ("scheduler-1", "scheduler-2"):
            self.stack.enter_context(self.cluster.process("scheduler", name))
        workers = {"worker-1": self.worker("worker-1", lease_ms=LOST_AFTER_MS), "worker-2": self.worker("worker-2")}
        await self.cluster.wait_until(self._all_answer, "both workers are up")

        async def under_way() -> bool:
            await self._keep_busy()
            done = await self.cluster.count("jobs WHERE finished_at IS NOT NULL")
            busy = await self.cluster.rows("SELECT DISTINCT lease_owner FROM jobs WHERE status = 'running'")
            return done > 0 and len(busy) == len(workers)

        await self.cluster.wait_until(under_way, "both workers are at work")
        return workers

    async def _all_answer(self) -> bool:
        try:
            return all([await self.figures(name) for name in self.ports])
        except OSError:
            return False

    def worker(self, name: str, **orders: int) -> ForkServerProcess:
        self.ports[name] = free_port()
        options = {"slots": 8, "work_ms": 100, "metrics_port": self.ports[name], **orders}
        return self.stack.enter_context(self.cluster.process("worker", name, **options))

    async def hold_at_work(self, worker: ForkServerProcess) -> int:
        """Hold worker-1 still in the middle of something, which it gets if nothing is left; its process.

        What it had sent to the database arrives all the same: only what is held after that is held.
        """
        assert worker.pid is not None

        while True:
            os.kill(worker.pid, signal.SIGSTOP)
            await self._all_sent_arrives()
            if await self.cluster.count(HELD):
                return worker.pid
            os.kill(worker.pid, signal.SIGCONT)
            await self._keep_busy()
            await asyncio.sleep(0.01)

    async def _all_sent_arrives(self) -> None:
        """Wait until whatever the database was at when we asked is done."""
        under_way = set(await self._at_work())

        async def done() -> bool:
            return under_way.isdisjoint(await self._at_work())

        await self.cluster.wait_until(done, "the database has applied the change")

    async def _at_work(self) -> list[tuple[object, ...]]:
        """What runs in the database; one that waits for the rest of what a worker has to say has no work."""
        sql = (
            "SELECT pid, xact_start FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() "
            "AND wait_event_type IS DISTINCT FROM 'Client'"
        )
        return [tuple(row) for row in await self.cluster.rows(sql)]

    async def _keep_busy(self) -> None:
        """Submit; again if everything ended before it was observed."""
        if not await self.cluster.count("jobs WHERE finished_at IS NULL"):
            self.submissions += await self.cluster.submit(IN_FLIGHT)

    async def all_is_right(self) -> None:
        await self.cluster.wait_until(self.cluster.is_idle, "all is done")
        assert len(self.submissions) >= IN_FLIGHT
        await self.cluster.check(self.submissions)

    async def figures(self, name: str) -> dict[str, float]:
        """What a worker's metrics stand at."""

        def scrape() -> str:
            with urlopen(f"http://127.0.0.1:{self.ports[name]}/metrics", timeout=120) as answer:
                return str(answer.read().decode())

        lines = (await asyncio.to_thread(scrape)).splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {metric: float(value) for metric, value in pairs}


@pytest.fixture
def loaded_cluster(cluster: Cluster) -> Iterator[LoadedCluster]:
    with ExitStack() as stack:
        yield LoadedCluster(cluster, stack)


async def test_kill_9_of_a_worker(loaded_cluster: LoadedCluster) -> None:
    doomed = (await loaded_cluster.gather())["worker-1"]
    await loaded_cluster.hold_at_work(doomed)
    doomed.kill()
    await loaded_cluster.all_is_right()
    assert await loaded_cluster.cluster.count("job_attempts WHERE lease_owner = 'worker-1' AND outcome <> 'succeeded'")


async def test_worker_that_sleeps_past_its_lease_is_fenced_off(
    loaded_cluster: LoadedCluster,
) -> None:
    pid = await loaded_cluster.hold_at_work((await loaded_cluster.gather())["worker-1"])

    async def taken_away() -> bool:
        return not await loaded_cluster.cluster.count(HELD)

    await loaded_cluster.cluster.wait_until(taken_away, "its jobs are taken from it")
    os.kill(pid, signal.SIGCONT)
    await loaded_cluster.all_is_right()

    async def refused() -> bool:
        return any(
            value > 0
            for metric, value in (await loaded_cluster.figures("worker-1")).items()
            if metric.startswith(("adjudge_worker_finalize_rejected_total", "adjudge_worker_lease_heartbeat_total{"))
            and ("stale_attempt" in metric or "not_in_expected_state" in metric or "already_finished" in metric)
        )

    await loaded_cluster.cluster.wait_until(refused, "the zombie was refused, and that was counted")


async def test_redis_flushall(loaded_cluster: LoadedCluster) -> None:
    await loaded_cluster.gather()
    client = Redis.from_url(loaded_cluster.cluster.redis_url)
    await client.flushall()
    await client.aclose()
    await loaded_cluster.all_is_right()


async def test_redis_restart(loaded_cluster: LoadedCluster, private_redis: RedisServer) -> None:
    await loaded_cluster.gather()
    private_redis.kill()
    private_redis.revive()
    await loaded_cluster.all_is_right()


async def test_postgresql_restart(loaded_cluster: LoadedCluster, durable_postgres: PostgresServer) -> None:
    await loaded_cluster.gather()
    durable_postgres.kill()
    durable_postgres.revive()
    await loaded_cluster.all_is_right()
