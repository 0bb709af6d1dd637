"""Connections kept at hand: used again, never at the cost of who waits, never once the server has hung up."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from adjudge.store import Tx
from adjudge.store.postgres import PostgresDatabase
from adjudge.store.postgres_connections import ConnectionGone, Connections
from tests.support.stores import raw

PID = raw("SELECT pg_backend_pid() AS pid")


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

    async with asyncio.timeout(30):
        assert sum(await asyncio.gather(*(caller(turns) for turns in range(1, 30)))) == sum(range(1, 30))
    await database.close()


async def test_a_session_that_the_server_ended_is_used_no_more(postgres_url: str) -> None:
    database = await PostgresDatabase.open(postgres_url)
    first = await database.transact(pid)
    other = await asyncpg.connect(postgres_url)
    assert await other.fetchval("SELECT pg_terminate_backend($1, 10000)", first)
    await other.close()
    assert await database.transact(pid) != first
    await database.close()


async def test_a_block_that_is_canceled_leaves_no_statement_behind(postgres_url: str) -> None:
    connections = await Connections.open(postgres_url, at_most=1, session={})
    begun = asyncio.Event()

    async def sleep() -> None:
        async with connections.one() as connection:
            await connection.execute("BEGIN")
            begun.set()
            await connection.fetchval("SELECT pg_sleep(60)")

    task = asyncio.create_task(sleep())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with connections.one() as connection:
        assert not connection.is_in_transaction()
        assert await connection.fetchval("SELECT 1") == 1
    await connections.close()


async def test_a_hang_up_in_the_middle_is_told_as_such(postgres_url: str) -> None:
    connections = await Connections.open(postgres_url, at_most=2, session={})
    with pytest.raises((ConnectionGone, asyncpg.PostgresConnectionError, asyncpg.OperatorInterventionError)):
        async with connections.one() as connection:
            await connection.fetchval("SELECT pg_terminate_backend(pg_backend_pid(), 10000)")
    async with connections.one() as connection:
        assert await connection.fetchval("SELECT 1") == 1
    await connections.close()
