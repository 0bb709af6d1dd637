"""Connections to PostgreSQL: asyncpg's pool makes and bounds them, and those used last are kept at hand.

Giving a connection back to the pool takes a task and a turn of the event loop, which is as long as a short statement
takes. So a few stay out of it after use, unless somebody waits for one. What ended in an error always goes back: the
pool waits for a cancelation that is under way, and drops what is of no more use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeAlias

import asyncpg

from adjudge.domain.errors import InvalidInput, Unavailable

Connection: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"

_AT_HAND: Final = 4
_STATEMENTS: Final = 256
"""How many a connection keeps planned: more than any process uses, or some would be planned again each time."""
_PATIENCE_SEC: Final = 10.0
"""How long a server may take to let us in; whatever else listens on its port may never answer."""


class ConnectionGone(ConnectionError):
    """asyncpg says InterfaceError both for a closed connection and for a wrong call; this is the former."""


class Connections:
    """The connections of one process to one database."""

    def __init__(self, pool: asyncpg.Pool[asyncpg.Record]) -> None:
        self._pool = pool
        self._at_hand: list[Connection] = []
        self._wanting = 0

    @classmethod
    async def open(cls, url: str, *, at_most: int, session: dict[str, str]) -> Connections:
        """Make the first, with the settings of ``session``."""
        return cls(
            await asyncpg.create_pool(
                url,
                timeout=_PATIENCE_SEC,
                min_size=1,
                max_size=at_most,
                reset=_keep_session,
                server_settings=session,
                statement_cache_size=_STATEMENTS,
            )
        )

    def one(self) -> Lent:
        """A connection for the block alone; ``ConnectionGone`` where it turns out that the server has hung up."""
        return Lent(self)

    async def take(self) -> Connection:
        """A connection, to be given or handed back."""
        if self._pool.is_closing():
            raise Unavailable("The database is closed.")
        while self._at_hand:
            connection = self._at_hand.pop()
            if not is_gone(connection):
                return connection
            await self._pool.release(connection)
        self._wanting += 1
        try:
            return await self._pool.acquire()
        except asyncpg.InterfaceError as error:
            raise Unavailable(f"No connection to be had: {error}.") from error
        finally:
            self._wanting -= 1

    async def give_back(self, connection: Connection) -> None:
        """Take back a connection after use that went well; it stays at hand while nobody waits for one."""
        if self._may_keep(connection):
            self._at_hand.append(connection)
        else:
            await self._pool.release(connection)

    async def hand_back(self, connection: Connection, error: BaseException) -> None:
        """Take back a connection after use that ended in ``error``."""
        if isinstance(error, asyncio.CancelledError):
            with suppress(Exception):  # whatever breaks now must not hide from the caller that it is to stop
                await self._pool.release(connection)
            return
        gone = _spoilt(connection, error)
        await self._pool.release(connection)
        if gone:
            raise ConnectionGone(str(error)) from error

    async def close(self) -> None:
        """Wait for what is under way, then disconnect."""
        while self._at_hand:
            await self._pool.release(self._at_hand.pop())
        await self._pool.close()

    def _may_keep(self, connection: Connection) -> bool:
        """Whether it may stay at hand: while nobody waits for one, least of all to disconnect."""
        if self._wanting or self._pool.is_closing() or len(self._at_hand) >= _AT_HAND:
            return False
        return not is_gone(connection) and not connection.is_in_transaction()


class Lent:
    """A connection for a block. A class of its own, because a generator costs as much as the rest of lending."""

    __slots__ = ("_connection", "_connections")

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def __aenter__(self) -> Connection:
        """Take it."""
        self._connection = await self._connections.take()
        return self._connection

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Give it back, or hand it back with the error that the block ended in."""
        if error is None:
            await self._connections.give_back(self._connection)
        else:
            await self._connections.hand_back(self._connection, error)


async def connect(url: str) -> asyncpg.Connection[asyncpg.Record]:
    """A connection of its own, outside of any pool."""
    with reaching():
        return await asyncpg.connect(url, timeout=_PATIENCE_SEC)


@contextmanager
def reaching() -> Iterator[None]:
    """Say why a server cannot be reached. Of an address that cannot be read nothing is repeated: it has a password."""
    try:
        yield
    except (ValueError, OverflowError):
        raise InvalidInput(
            "database_url: cannot be read; give postgresql://USER:PASSWORD@HOST:PORT/NAME, and in the password %2F for "
            "/, %3A for : and %40 for @.",
            field="database_url",
        ) from None
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        words = str(error).rstrip(".") or "it does not answer"
        raise Unavailable(
            f"Cannot connect to PostgreSQL: {words}. Check ADJUDGE_DATABASE_URL and the server."
        ) from error


def is_gone(connection: Connection) -> bool:
    """Whether the server hung up. A proxy whose connection was cleaned up says so by refusing to answer."""
    try:
        return connection.is_closed()
    except asyncpg.InterfaceError:
        return True


def _spoilt(connection: Connection, error: BaseException) -> bool:
    """Whether the error means that the connection is of no more use."""
    if isinstance(error, asyncpg.InternalClientError):
        # A server that dies in the middle of an answer leaves asyncpg waiting for the rest of it. Such a connection is
        # not closed, and would be handed out again.
        if not is_gone(connection):
            connection.terminate()
        return True
    return isinstance(error, asyncpg.InterfaceError) and is_gone(connection)


async def _keep_session(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Replace asyncpg's reset between uses: we set nothing on a session, and it would cost a round trip each time.

    Only a transaction left open (its rollback was interrupted) must never reach the next user, whose commit would then
    commit what it left behind.
    """
    if connection.is_in_transaction():
        await connection.reset()
