"""Failovers and refusals of real servers: the scheduler and the worker live on, and the jobs finish afterwards.

Each fault is caused on a private server by its own commands, while both processes run.
"""

from __future__ import annotations

import asyncio
import os
import signal
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
from tests.support.servers import PostgresServer, PostgresStandby, RedisServer

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


async def test_processes_survive_flushed_scripts(postgres_databases: PostgresDatabases) -> None:
    """NOSCRIPT is answered by loading the script again."""
    server = RedisServer().start()
    redis = Redis.from_url(server.url)
    try:
        url = postgres_databases.url(postgres_databases.create())
        async with create_cluster(url, server.url, "scripts") as cluster, living(cluster):
            submitted: list[str] = []
            for _ in range(5):
                submitted += await cluster.submit(2)
                await redis.script_flush()
            await cluster.wait_until(cluster.is_idle, "they are judged")
            await cluster.check(submitted)
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


async def test_processes_follow_the_database_to_another_host() -> None:
    """The primary becomes read-only and keeps its connections open; the standby is promoted."""
    primary, redis = PostgresServer().start(), RedisServer().start()
    standby = PostgresStandby(primary)
    try:
        await asyncio.to_thread(standby.start)
        databases = PostgresDatabases(primary)
        name = databases.create()
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        url = f"postgresql://postgres@{hosts}/{name}?target_session_attrs=read-write"
        async with create_cluster(url, redis.url, "other-host") as cluster, living(cluster):
            before = await cluster.submit(3)
            await cluster.wait_until(cluster.is_idle, "all is well before")
            await _read_only(primary)
            await _until_replayed(primary, standby)
            admin = await asyncpg.connect(standby.url())
            assert await admin.fetchval("SELECT pg_promote()")
            await admin.close()
            after = await _submit_when_possible(cluster, 3)
            await cluster.wait_until(cluster.is_idle, "they are judged on the other host")
            await cluster.check([*before, *after])
            new = await asyncpg.connect(standby.url(name))
            assert await new.fetchval("SELECT count(*) FROM submissions WHERE finished_at IS NOT NULL") == 6
            await new.close()
    finally:
        redis.stop()
        standby.stop()
        primary.stop()


async def _until_replayed(primary: PostgresServer, standby: PostgresServer) -> None:
    """Wait until the primary writes no more and the standby has everything."""
    first, second = await asyncpg.connect(primary.url()), await asyncpg.connect(standby.url())
    try:
        while await first.fetchval("SHOW default_transaction_read_only") != "on":
            await asyncio.sleep(0.02)
        position = await first.fetchval("SELECT pg_current_wal_flush_lsn()::text")
        while not await second.fetchval("SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", position):
            await asyncio.sleep(0.02)
    finally:
        await first.close()
        await second.close()


async def _submit_when_possible(cluster: Cluster, how_many: int) -> list[str]:
    submitted: list[str] = []

    async def submits() -> bool:
        with suppress(Unavailable):
            submitted.extend(await cluster.submit(how_many))
        return bool(submitted)

    await cluster.wait_until(submits, "a submission is accepted again")
    return submitted


async def test_processes_survive_a_database_without_free_connections() -> None:
    """Others take every connection; the connections of the processes are ended, so that they need new ones."""
    server, redis = PostgresServer(max_connections=30).start(), RedisServer().start()
    taken: list[Any] = []
    try:
        databases = PostgresDatabases(server)
        url = databases.url(databases.create())
        async with create_cluster(url, redis.url, "no-connections") as cluster, living(cluster):
            before = await cluster.submit(2)
            await cluster.wait_until(cluster.is_idle, "all is well before")
            admin = await asyncpg.connect(server.url())
            while await admin.fetchval("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'adjudge'"):
                await admin.fetch(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'adjudge'"
                )
                with suppress(asyncpg.TooManyConnectionsError):
                    while True:
                        taken.append(await asyncpg.connect(server.url()))
            with pytest.raises(Unavailable, match="too many clients"):
                await cluster.submit(1)
            await asyncio.sleep(1.5)  # a round of each role fails meanwhile; that they live is looked at below
            for connection in taken:
                await connection.close()
            after = await _submit_when_possible(cluster, 2)
            await cluster.wait_until(cluster.is_idle, "they are judged when connections are free")
            await cluster.check([*before, *after])
            await admin.close()
    finally:
        redis.stop()
        server.stop()


async def test_processes_survive_a_database_that_shuts_down_slowly() -> None:
    """A smart shutdown rejects new connections while present ones go on; then it ends these, too, and starts again."""
    server, redis = PostgresServer(durable=True).start(), RedisServer().start()
    try:
        databases = PostgresDatabases(server)
        url = databases.url(databases.create())
        async with create_cluster(url, redis.url, "shutting-down") as cluster, living(cluster):
            before = await cluster.submit(2)
            await cluster.wait_until(cluster.is_idle, "all is well before")
            os.kill(server.pid, signal.SIGTERM)
            while True:
                try:
                    await (await asyncpg.connect(server.url())).close()
                except asyncpg.CannotConnectNowError as error:
                    assert "shutting down" in str(error)  # noqa: PT017
                    break
            os.kill(server.pid, signal.SIGINT)
            await asyncio.to_thread(server.wait_ended)
            await asyncio.to_thread(server.revive)
            after = await _submit_when_possible(cluster, 2)
            await cluster.wait_until(cluster.is_idle, "they are judged after the restart")
            await cluster.check([*before, *after])
    finally:
        redis.stop()
        server.stop()


async def test_jobs_finish_in_spite_of_serialization_failures(postgres_databases: PostgresDatabases) -> None:
    """In a database whose transactions are serializable by default, concurrent writers fail all the time."""
    name, redis = postgres_databases.create(), RedisServer().start()
    url = postgres_databases.url(name)
    try:
        admin = await asyncpg.connect(url)
        await admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_isolation = serializable')
        await admin.close()
        async with create_cluster(url, redis.url, "serializable") as cluster, living(cluster):
            with cluster.process("worker", "second"):
                submitted: list[str] = []
                for _ in range(10):
                    submitted += await _submit_when_possible(cluster, 8)
                await cluster.wait_until(cluster.is_idle, "all are judged")
                await cluster.check(submitted)
    finally:
        redis.stop()
