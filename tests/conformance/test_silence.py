"""Servers that go silent without closing their connections: every driver gives up in time and works again after.

Each test has a TCP proxy between driver and server. ``be_silent`` leaves connections open and lets nothing through,
as a firewall does that has forgotten them, or a machine that lost its power.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from adjudge.blobs.s3 import S3BlobStore, S3Options
from adjudge.domain.errors import OutcomeUnknown, Unavailable
from adjudge.domain.ids import new_id
from adjudge.registry import ProcessHealth, ProcessInfo
from adjudge.registry.etcd import EtcdRegistry
from adjudge.store import Tx
from adjudge.store.accounts import users
from adjudge.store.accounts.users import NewUser
from adjudge.store.engine.connect import ping
from adjudge.store.engine.postgres import PostgresDatabase
from adjudge.store.engine.postgres_notify import PostgresNotifier
from adjudge.store.engine.postgres_pool import ConnectionPool
from adjudge.stream import MessageBody
from adjudge.stream.redis import RedisStream
from tests.support.servers import EtcdServer, RedisServer, S3Server
from tests.support.silence import SilentProxy
from tests.support.store_harness import adhoc_statement

pytestmark = pytest.mark.slow
PATIENCE_SEC = 120
"""Only a driver that never gives up takes this long."""


@pytest.fixture
async def proxied(postgres_url: str) -> AsyncIterator[SilentProxy]:
    async with SilentProxy(postgres_url).running() as proxy:
        yield proxy


async def opened(proxy: SilentProxy, timeout_sec: float = 1.0) -> PostgresDatabase:
    return await PostgresDatabase.open(f"{proxy.url}?sslmode=disable", max_connections=4, timeout_sec=timeout_sec)


async def test_silent_database_transaction_times_out_and_next_works(
    proxied: SilentProxy,
) -> None:
    database = await opened(proxied)
    await asyncio.gather(*(ping(database) for _ in range(3)))  # several are idle now, and all will be dead
    proxied.be_silent()
    async with asyncio.timeout(PATIENCE_SEC):
        with pytest.raises(Unavailable, match="no answer within 1 s"):
            await database.transact(lambda tx: users.insert(tx, NewUser(new_id(), "ada")))
        proxied.speak()
        await database.transact(lambda tx: users.insert(tx, NewUser(new_id(), "bob")))
        await database.close()


async def test_silent_connection_discards_idle_connections(proxied: SilentProxy) -> None:
    database = await opened(proxied)
    both = asyncio.Barrier(2)

    async def operation(tx: Tx) -> None:
        await users.insert(tx, NewUser(new_id(), new_id()))
        await both.wait()

    await asyncio.gather(database.transact(operation), database.transact(operation))
    proxied.mute_present()
    failures = 0
    async with asyncio.timeout(PATIENCE_SEC):
        for _ in range(3):
            try:
                await ping(database)
            except Unavailable:
                failures += 1
        await database.close()
    assert failures == 1


async def test_unanswered_commit_has_unknown_outcome(proxied: SilentProxy) -> None:
    database = await opened(proxied)

    async def operation(tx: Tx) -> None:
        await users.insert(tx, NewUser(new_id(), "ada"))
        proxied.be_silent()

    async with asyncio.timeout(PATIENCE_SEC):
        with pytest.raises(OutcomeUnknown):
            await database.transact(operation)
        proxied.speak()
        await database.close()


async def test_cancel_on_silent_connection_returns(proxied: SilentProxy) -> None:
    database = await opened(proxied, timeout_sec=PATIENCE_SEC)
    await ping(database)
    proxied.be_silent()
    task = asyncio.create_task(ping(database))
    await asyncio.sleep(0.2)
    task.cancel()
    async with asyncio.timeout(PATIENCE_SEC / 2):
        with pytest.raises(asyncio.CancelledError):
            await task
        proxied.speak()
        await ping(database)
        await database.close()


async def test_statement_timeout_keeps_connection(postgres_url: str) -> None:
    database = await PostgresDatabase.open(postgres_url, timeout_sec=2.0)

    async def asked(tx: Tx) -> int:
        (row,) = await tx.fetch(adhoc_statement("SELECT pg_backend_pid() AS pid"))
        number: int = row["pid"]
        return number

    async def slow(tx: Tx) -> None:
        await tx.fetch(adhoc_statement("SELECT pg_sleep(60)"))

    before = await database.transact(asked)
    async with asyncio.timeout(PATIENCE_SEC):
        with pytest.raises(Unavailable, match="statement timeout"):
            await database.transact(slow)
    assert await database.transact(asked) == before
    await database.close()


async def test_silent_listener_reconnects(proxied: SilentProxy) -> None:
    """To a listener silence is normal, so it asks from time to time whether the server is still there."""
    connections = await ConnectionPool.open(f"{proxied.url}?sslmode=disable", limit=4, session={}, timeout_sec=1.0)
    notifier, rings = PostgresNotifier(connections, check_sec=0.1), asyncio.Event()
    notifier.listen("adjudge_test", rings.set)
    async with asyncio.timeout(PATIENCE_SEC):
        await rings.wait()  # it rings once when it begins to listen
        rings.clear()
        proxied.mute_present()
        await rings.wait()  # and again on the new connection
        await notifier.close()
        await connections.close()


async def test_silent_redis_is_unavailable_then_works(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adjudge.stream.blocking_read._SILENCE_SEC", 0.5)
    async with SilentProxy(redis_server.url).running() as proxy, asyncio.timeout(PATIENCE_SEC):
        stream = RedisStream(proxy.url, environment=f"silent-{proxy.port}", timeout_sec=0.5)
        await stream.publish([MessageBody("before", 2, "judge", None, {})])
        assert await stream.read(consumer="a", limit=1, wait_ms=0)
        proxy.be_silent()
        for call in (
            lambda: stream.publish([MessageBody("lost", 2, "judge", None, {})]),
            lambda: stream.read(consumer="a", limit=1, wait_ms=100),
            stream.depths,
        ):
            with pytest.raises(Unavailable, match="is unavailable"):
                await call()
        proxy.speak()
        await stream.publish([MessageBody("after", 2, "judge", None, {})])
        assert await stream.read(consumer="a", limit=1, wait_ms=1_000)
        await stream.close()


async def test_silent_etcd_is_unavailable_then_works(etcd_server: EtcdServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjudge.registry.etcd._TIMEOUT_SEC", 0.5)
    async with SilentProxy(etcd_server.endpoint).running() as proxy, asyncio.timeout(PATIENCE_SEC):
        registry = EtcdRegistry([proxy.url], environment=f"silent-{proxy.port}", lease_sec=60)
        info = ProcessInfo("w1", "host", 1, "0", 1)
        await registry.register(info)
        proxy.be_silent()
        with pytest.raises(Unavailable, match="is unavailable"):
            await registry.keep_alive("w1", health=ProcessHealth.READY)
        proxy.speak()
        assert await registry.keep_alive("w1", health=ProcessHealth.READY)
        await registry.close()


async def test_silent_s3_is_unavailable_then_works(s3_server: S3Server) -> None:
    bucket = "silent"
    s3_server.create_bucket(bucket)
    async with SilentProxy(s3_server.endpoint).running() as proxy, asyncio.timeout(PATIENCE_SEC):
        settings = S3Options(
            bucket,
            endpoint=proxy.url,
            access_key_id=s3_server.access_key,
            secret_access_key=s3_server.secret_key,
            timeout_sec=1.0,
            retry_sec=1.0,
        )
        blobs = S3BlobStore(settings)
        digest = await blobs.put(b"content")
        proxy.be_silent()
        with pytest.raises(Unavailable, match="is unavailable"):
            await blobs.stat(digest)
        with pytest.raises(Unavailable, match="is unavailable"):
            await blobs.put(b"other content")
        proxy.speak()
        assert (await blobs.stat(digest)).size_bytes == 7
        await blobs.close()
