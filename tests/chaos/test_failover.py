"""Failovers and refusals of real servers: the scheduler and the worker live on, and the jobs finish afterwards.

Each fault is caused on a private server by its own commands, while both processes run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

import asyncpg
import pytest
from redis.asyncio import Redis

from adjudge.domain.errors import Unavailable
from tests.chaos.cluster import Cluster, create_cluster
from tests.support.databases import PostgresDatabases
from tests.support.servers import PostgresServer, RedisServer

pytestmark = pytest.mark.slow
_NUMBERS = count(1)
Fault = Callable[[Any, str], Awaitable[Any]]


async def _become_replica(redis: Any, _: str) -> None:
    await redis.execute_command("REPLICAOF", "127.0.0.1", "1")
    await redis.config_set("replica-read-only", "yes")


async def _become_primary(redis: Any, _: str) -> None:
    await redis.execute_command("REPLICAOF", "NO", "ONE")


async def _run_full(redis: Any, _: str) -> None:
    await redis.config_set("maxmemory", "1")


async def _free_memory(redis: Any, _: str) -> None:
    await redis.config_set("maxmemory", "0")


async def _forbid_scripts(redis: Any, _: str) -> None:
    await redis.execute_command("ACL", "SETUSER", "default", "-evalsha", "-eval", "-xreadgroup")


async def _allow_scripts(redis: Any, _: str) -> None:
    await redis.execute_command("ACL", "SETUSER", "default", "+@all")


async def _break_key(redis: Any, environment: str) -> None:
    key = f"adjudge:{environment}:jobs:2"
    await redis.delete(key)
    await redis.set(key, "not a stream")


async def _mend_key(redis: Any, environment: str) -> None:
    await redis.delete(f"adjudge:{environment}:jobs:2")


@asynccontextmanager
async def living(cluster: Cluster) -> AsyncIterator[None]:
    """A scheduler and a worker; both must still live at the end of the block."""
    with cluster.process("scheduler", "scheduler") as scheduler, cluster.process("worker", "worker") as worker:
        yield
        assert scheduler.is_alive()
        assert worker.is_alive()


async def until_put_off(cluster: Cluster, words: str) -> None:
    async def put_off() -> bool:
        return await cluster.count(f"outbox WHERE state = 'pending' AND last_error LIKE '%{words}%'") > 0

    await cluster.wait_until(put_off, f"deliveries are put off because of {words}")


@pytest.mark.parametrize(
    ("cause", "mend", "words"),
    [
        pytest.param(_become_replica, _become_primary, "read only", id="READONLY"),
        pytest.param(_run_full, _free_memory, "maxmemory", id="OOM"),
        pytest.param(_forbid_scripts, _allow_scripts, "permission", id="NOPERM"),
        pytest.param(_break_key, _mend_key, "WRONGTYPE", id="WRONGTYPE"),
    ],
)
async def test_processes_survive_redis_errors_and_finish_the_jobs_later(
    postgres_databases: PostgresDatabases, cause: Fault, mend: Fault, words: str
) -> None:
    server = RedisServer().start()
    redis = Redis.from_url(server.url)
    environment = f"failover-{next(_NUMBERS)}"
    try:
        url = postgres_databases.url(postgres_databases.create())
        async with create_cluster(url, server.url, environment) as cluster, living(cluster):
            before = await cluster.submit(2)
            await cluster.wait_until(cluster.is_idle, "all is well before")
            await cause(redis, environment)
            during: list[str] = []
            while not during:
                with suppress(Unavailable):  # until the server has read its settings again
                    during = await cluster.submit(3)
            await until_put_off(cluster, words)
            await mend(redis, environment)
            await cluster.wait_until(cluster.is_idle, "they are judged after")
            await cluster.check([*before, *during])
            assert await cluster.count("outbox WHERE attempts > 1") == 0, "no try was counted against a row"
    finally:
        await redis.aclose()
        server.stop()


async def _read_only(server: PostgresServer) -> None:
    admin = await asyncpg.connect(server.url())
    await admin.execute("ALTER SYSTEM SET default_transaction_read_only = on")
    await admin.execute("SELECT pg_reload_conf()")
    await admin.close()


async def _writable(server: PostgresServer) -> None:
    admin = await asyncpg.connect(server.url())
    await admin.execute("SET default_transaction_read_only = off")
    await admin.execute("ALTER SYSTEM RESET default_transaction_read_only")
    await admin.execute("SELECT pg_reload_conf()")
    await admin.close()


async def test_processes_survive_a_database_that_turns_read_only_and_restarts() -> None:
    """As after a failover to a standby that is promoted later; then the server restarts, as an upgrade does."""
    server, redis = PostgresServer(durable=True).start(), RedisServer().start()
    try:
        databases = PostgresDatabases(server)
        async with (
            create_cluster(databases.url(databases.create()), redis.url, "read-only") as cluster,
            living(cluster),
        ):
            before = await cluster.submit(2)
            await cluster.wait_until(cluster.is_idle, "all is well before")
            await _read_only(server)

            async def refused() -> bool:
                try:
                    before.extend(await cluster.submit(1))  # until the server has read its settings again
                except Unavailable:
                    return True
                return False

            await cluster.wait_until(refused, "a submission is refused while the database is read-only")
            await asyncio.sleep(1.5)  # a round of each role fails meanwhile; that they live is looked at below
            await _writable(server)
            during = await cluster.submit(3)
            await cluster.wait_until(cluster.is_idle, "they are judged after")
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.revive)
            await cluster.rows("SELECT 1 AS one")  # waits until it answers
            after = await cluster.submit(2)
            await cluster.wait_until(cluster.is_idle, "and after a restart")
            await cluster.check([*before, *during, *after])
    finally:
        redis.stop()
        server.stop()
