"""What PostgreSQL's driver makes of deadlocks, killed connections and answers that never came: a real server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from adjudge.domain.errors import OutcomeUnknown, Unavailable
from adjudge.domain.ids import new_id
from adjudge.store import Tx
from adjudge.store.accounts import users
from adjudge.store.accounts.users import NewUser
from adjudge.store.engine.postgres import PostgresDatabase
from adjudge.store.engine.script import Script, Step
from tests.support.server_process import free_port
from tests.support.store_harness import StoreHarness, adhoc_statement

KILL_SELF = adhoc_statement("SELECT pg_terminate_backend(pg_backend_pid())")


class Proxy:
    """Stands between client and server; can swallow what follows a COMMIT, so that its answer is lost."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self.drop_answer_to = b""
        self.port = free_port()
        self._writers: list[asyncio.StreamWriter] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Proxy]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, family=socket.AF_INET)
        try:
            yield self
        finally:
            server.close()
            for writer in self._writers:
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, out = await asyncio.open_connection(*self._target)
        self._writers += [writer, out]
        back = asyncio.create_task(self._forward(there, writer))
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                if self.drop_answer_to and self.drop_answer_to in data:
                    back.cancel()  # the server still gets it; whatever it says is not heard
                    await asyncio.gather(back, return_exceptions=True)
                    out.write(data)
                    await out.drain()
                    await there.read(1)  # it has answered, so it has done it
                    break
                out.write(data)
                await out.drain()
        writer.close()
        out.close()
        back.cancel()

    @staticmethod
    async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()


def add(name: str) -> NewUser:
    return NewUser(new_id(), name)


async def count(store: StoreHarness) -> int:
    n: int = (await store.row("SELECT count(*) AS n FROM users"))["n"]
    return n


async def test_a_connection_killed_before_the_commit_is_unavailable_and_nothing_happened(
    postgres_store: StoreHarness,
) -> None:
    async def operation(tx: Tx) -> None:
        await users.insert(tx, add("ada"))
        await tx.fetch(KILL_SELF)

    with pytest.raises(Unavailable) as refused:
        await postgres_store.transact(operation)
    assert not isinstance(refused.value, OutcomeUnknown)
    assert await count(postgres_store) == 0


async def test_a_connection_killed_while_idle_in_a_transaction_is_unavailable(postgres_store: StoreHarness) -> None:
    async def operation(tx: Tx) -> None:
        (row,) = await tx.fetch(adhoc_statement("SELECT pg_backend_pid() AS pid"))
        await users.insert(tx, add("ada"))
        other = await asyncpg.connect(postgres_store.url)
        await other.execute("SELECT pg_terminate_backend($1)", row["pid"])
        while await other.fetchval("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", row["pid"]):
            await asyncio.sleep(0)
        await other.close()

    with pytest.raises(Unavailable):
        await postgres_store.transact(operation)
    assert await count(postgres_store) == 0
    await postgres_store.transact(lambda tx: users.insert(tx, add("next")))


async def test_a_read_on_a_killed_connection_is_unavailable(postgres_store: StoreHarness) -> None:
    with pytest.raises(Unavailable):
        await postgres_store.database.read(lambda tx: tx.fetch(KILL_SELF))
    assert await count(postgres_store) == 0


async def test_a_commit_whose_answer_is_lost_has_an_unknown_outcome(postgres_store: StoreHarness) -> None:
    parts = urlsplit(postgres_store.url)
    async with Proxy(parts.hostname or "", parts.port or 0).running() as proxy:
        url = urlunsplit(parts._replace(netloc=f"postgres@127.0.0.1:{proxy.port}"))
        database = await PostgresDatabase.open(f"{url}?sslmode=disable", max_connections=1)
        await database.transact(lambda tx: users.insert(tx, add("before")))
        proxy.drop_answer_to = b"COMMIT"
        with pytest.raises(OutcomeUnknown):
            await database.transact(lambda tx: users.insert(tx, add("ada")))
        proxy.drop_answer_to = b""
        await database.transact(lambda tx: users.insert(tx, add("after")))
        await database.close()
    assert await count(postgres_store) == 3, "it had committed: that is why the outcome must be looked up"


async def test_a_last_script_whose_answer_is_lost_has_an_unknown_outcome_too(postgres_store: StoreHarness) -> None:
    sql = (
        "UPDATE users SET name = 'bea' WHERE name = 'ada' AND name <> CAST(:unlike AS text) RETURNING name AS new_name"
    )
    rename = Script("test.rename", "Rename a user.", {}, (Step("renamed", sql, ("new_name",)),))
    await postgres_store.transact(lambda tx: users.insert(tx, add("ada")))
    parts = urlsplit(postgres_store.url)
    async with Proxy(parts.hostname or "", parts.port or 0).running() as proxy:
        url = urlunsplit(parts._replace(netloc=f"postgres@127.0.0.1:{proxy.port}"))
        database = await PostgresDatabase.open(f"{url}?sslmode=disable", max_connections=1)
        await database.transact(lambda tx: tx.run(rename, {}, last=True, unlike="ada"))  # prepared, and changes nothing
        proxy.drop_answer_to = b"nobody"
        with pytest.raises(OutcomeUnknown):
            await database.transact(lambda tx: tx.run(rename, {}, last=True, unlike="nobody"))
        await database.close()
    assert [row["name"] for row in await postgres_store.rows("SELECT name FROM users")] == ["bea"]


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="Check ADJUDGE_DATABASE_URL"):
        await PostgresDatabase.open(f"postgresql://postgres@127.0.0.1:{free_port()}/nowhere")


async def test_a_deadlock_is_run_again_and_never_surfaces(postgres_store: StoreHarness) -> None:
    await postgres_store.transact(lambda tx: users.insert(tx, add("a")))
    await postgres_store.transact(lambda tx: users.insert(tx, add("b")))
    both_hold_one = asyncio.Barrier(2)
    runs: list[str] = []

    async def swap(first: str, second: str) -> None:
        async def operation(tx: Tx) -> None:
            runs.append(first)
            await tx.execute(adhoc_statement("SET LOCAL deadlock_timeout = '20ms'"))
            update = adhoc_statement("UPDATE users SET updated_at = updated_at + 1 WHERE name = :name")
            await tx.execute(update, name=first)
            if len(runs) <= 2:
                await both_hold_one.wait()
            await tx.execute(update, name=second)

        await postgres_store.transact(operation)

    await asyncio.wait_for(asyncio.gather(swap("a", "b"), swap("b", "a")), 120)
    assert len(runs) == 3
    rows = await postgres_store.rows("SELECT updated_at - created_at AS n FROM users")
    assert [row["n"] for row in rows] == [2, 2]


async def test_a_transaction_interrupted_twice_leaves_no_half_open_connection(postgres_store: StoreHarness) -> None:
    """Its rollback was interrupted too: the next user must not commit into its savepoint."""
    database = await PostgresDatabase.open(postgres_store.url, max_connections=1)
    holding = asyncio.Event()

    async def operation(tx: Tx) -> None:
        await users.insert(tx, add("ada"))
        holding.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(database.transact(operation))
    await holding.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await database.transact(lambda tx: users.insert(tx, add("bob")))
    await database.close()
    assert [row["name"] for row in await postgres_store.rows("SELECT name FROM users")] == ["bob"]


async def test_too_many_connections_are_waited_out_and_it_works_when_one_is_free(postgres_store: StoreHarness) -> None:
    parts, role = urlsplit(postgres_store.url), f"few_{new_id()[-12:]}"
    url = urlunsplit(parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}"))
    admin = await asyncpg.connect(postgres_store.url)
    await admin.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 1; GRANT pg_read_all_data TO {role}")
    try:
        other = await asyncpg.connect(url)
        with pytest.raises(Unavailable, match="too many connections"):
            await PostgresDatabase.open(url, max_connections=1)
        await other.close()
        while await admin.fetchval("SELECT count(*) FROM pg_stat_activity WHERE usename = $1", role):
            await asyncio.sleep(0.01)
        database = await PostgresDatabase.open(url, max_connections=1)
        assert len(await database.read(lambda tx: tx.fetch(adhoc_statement("SELECT 1 AS one")))) == 1
        await database.close()
    finally:
        await admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
        await admin.close()
