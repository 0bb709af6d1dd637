"""ConnectionPool kept at hand: used again, never at the cost of who waits, never once the server has hung up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import asyncpg
import pytest

from adjudge.domain.errors import InvalidInput, Unavailable
from adjudge.store import Tx, open_database
from adjudge.store.engine.postgres import PostgresDatabase
from adjudge.store.engine.postgres_notify import PostgresNotifier
from adjudge.store.engine.postgres_pool import ConnectionLost, ConnectionPool
from tests.support.store_harness import adhoc_statement

PID = adhoc_statement("SELECT pg_backend_pid() AS pid")


async def pid(tx: Tx) -> int:
    return int((await tx.fetch(PID))[0]["pid"])


async def test_the_session_used_last_is_used_next(postgres_url: str) -> None:
    database = await PostgresDatabase.open(postgres_url)
    assert len({await database.transact(pid) for _ in range(5)}) == 1
    await database.close()


async def test_nobody_waits_for_a_connection_that_lies_at_hand(postgres_url: str) -> None:
    """Far more callers than connections, which come and go: each is served, whether it waits or comes just in time."""
    database = await PostgresDatabase.open(postgres_url, max_connections=2)

    async def caller(turns: int) -> int:
        return len([await database.transact(pid) for _ in range(turns)])

    async with asyncio.timeout(120):
        assert sum(await asyncio.gather(*(caller(turns) for turns in range(1, 30)))) == sum(range(1, 30))
    await database.close()


async def test_one_connection_is_refused_and_two_serve_a_listener_too(postgres_url: str) -> None:
    """The listener keeps one for itself: with no other, every statement would wait for ever."""
    with pytest.raises(InvalidInput, match="max_connections: 1 is too few; give at least 2"):
        async with open_database(postgres_url, migrate=False, max_connections=1):
            pass
    async with open_database(postgres_url, migrate=False, max_connections=2) as database, asyncio.timeout(120):
        heard = asyncio.Event()
        silence = database.listen("adjudge_test", heard.set)
        await heard.wait()
        assert await database.transact(pid)
        silence()


async def test_a_session_that_the_server_ended_is_used_no_more(postgres_url: str) -> None:
    database = await PostgresDatabase.open(postgres_url)
    first = await database.transact(pid)
    other = await asyncpg.connect(postgres_url)
    assert await other.fetchval("SELECT pg_terminate_backend($1, 10000)", first)
    await other.close()
    assert await database.transact(pid) != first
    await database.close()


async def test_a_block_that_is_canceled_leaves_no_statement_behind(postgres_url: str) -> None:
    connections = await ConnectionPool.open(postgres_url, limit=1, session={})
    begun = asyncio.Event()

    async def sleep() -> None:
        async with connections.acquire() as connection:
            await connection.execute("BEGIN")
            begun.set()
            await connection.fetchval("SELECT pg_sleep(60)")

    task = asyncio.create_task(sleep())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with connections.acquire() as connection:
        assert not connection.is_in_transaction()
        assert await connection.fetchval("SELECT 1") == 1
    await connections.close()


async def test_disconnect_in_a_transaction_is_reported_as_such(postgres_url: str) -> None:
    connections = await ConnectionPool.open(postgres_url, limit=2, session={})
    with pytest.raises((ConnectionLost, asyncpg.PostgresConnectionError, asyncpg.OperatorInterventionError)):
        async with connections.acquire() as connection:
            await connection.fetchval("SELECT pg_terminate_backend(pg_backend_pid(), 10000)")
    async with connections.acquire() as connection:
        assert await connection.fetchval("SELECT 1") == 1
    await connections.close()


async def test_a_hang_up_behind_the_last_answer_takes_nothing_from_who_had_it(postgres_url: str) -> None:
    """What was committed is committed: to give back a connection that has gone since is no failure."""
    connections = await ConnectionPool.open(postgres_url, limit=2, session={})
    gone = asyncio.Event()
    async with connections.acquire() as connection:
        connection.add_termination_listener(lambda _: gone.set())
        own = await connection.fetchval("SELECT pg_backend_pid()")
        other = await asyncpg.connect(postgres_url)
        assert await other.fetchval("SELECT pg_terminate_backend($1, 10000)", own)
        await other.close()
        async with asyncio.timeout(120):
            await gone.wait()
    async with connections.acquire() as connection:
        assert await connection.fetchval("SELECT pg_backend_pid()") != own
    await connections.close()


async def test_closing_waits_for_what_is_under_way_and_no_longer(postgres_url: str) -> None:
    """Who is done while the others disconnect gives its connection back: kept at hand, nobody would ever close it."""
    connections = await ConnectionPool.open(postgres_url, limit=2, session={})
    async with connections.acquire():
        closing = asyncio.create_task(connections.close())
        await asyncio.sleep(0)
        assert not closing.done()
    async with asyncio.timeout(120):
        await closing
    with pytest.raises(Unavailable):
        async with connections.acquire():
            pass


class BrokenConnection:
    """A connection that breaks as its caller is canceled."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def add_termination_listener(self, _: object) -> None:
        pass

    async def add_listener(self, *_: object) -> None:
        self.asked.set()

    async def fetchval(self, *_: object) -> int:
        return 1

    def terminate(self) -> None:
        raise asyncpg.InterfaceError("connection has been released back to the pool")

    def remove_termination_listener(self, _: object) -> None:
        raise asyncpg.InterfaceError("connection has been released back to the pool")

    def is_closed(self) -> bool:
        return False

    async def execute(self, text: str) -> str:
        if text == "ROLLBACK":
            raise ConnectionResetError("connection reset by peer")
        return text

    async def fetch(self, *_: object) -> None:
        self.asked.set()
        await asyncio.Event().wait()


class SingleConnectionPool:
    def __init__(self, connection: BrokenConnection) -> None:
        self._connection = connection

    @asynccontextmanager
    async def acquire(self, *, is_limited: bool = True) -> AsyncIterator[BrokenConnection]:
        del is_limited
        yield self._connection


async def test_cancellation_wins_over_a_simultaneous_disconnect() -> None:
    """A loop that tries again whenever the database is unavailable would never end if it got that error instead."""
    connection = BrokenConnection()
    database = PostgresDatabase(cast("ConnectionPool", SingleConnectionPool(connection)))
    task = asyncio.create_task(database.transact(pid))
    async with asyncio.timeout(120):
        await connection.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_unlisten_succeeds_if_the_server_disconnects_during_it() -> None:
    connection = BrokenConnection()
    notifier = PostgresNotifier(cast("ConnectionPool", SingleConnectionPool(connection)))
    notifier.listen("adjudge_test", lambda: None)
    async with asyncio.timeout(120):
        await connection.asked.wait()
        await notifier.close()


async def test_waiting_for_a_connection_takes_nothing_of_a_transactions_time() -> None:
    """A busy pool is no reason to close a healthy connection."""
    connections = ConnectionPool(cast("asyncpg.Pool[asyncpg.Record]", object()), 0.05)
    released: list[object] = []

    async def take_late() -> object:
        await asyncio.sleep(0.1)  # longer than a transaction may take
        return connection

    async def release(item: object) -> None:
        released.append(item)

    connection = object()
    vars(connections).update(checkout=take_late, release=release)
    async with connections.acquire() as found:
        assert found is connection
        await asyncio.sleep(0)
    assert released == [connection]
