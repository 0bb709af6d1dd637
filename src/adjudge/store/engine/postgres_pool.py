"""Connections to PostgreSQL: asyncpg's pool makes and bounds them, and those used last are kept at hand.

Giving a connection back to the pool takes a task and a turn of the event loop, which is as long as a short statement
takes. So a few stay out of it after use, unless somebody waits for one. What ended in an error always goes back: the
pool waits for a cancelation that is under way, and drops what is of no more use.

A server can stop answering without closing its connections: its machine is gone, or something between forgot about
them. So nothing waits without a limit. A connection that did not answer in time is closed, and with it all that are
idle: they lead to the same place.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Final, TypeAlias

import asyncpg

from adjudge.domain.errors import InvalidInput, Unavailable
from adjudge.domain.keepalive import SOCKET_OPTIONS

Connection: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"

_AT_HAND: Final = 4
_STATEMENTS: Final = 256
"""How many a connection keeps planned: more than any process uses, or some would be planned again each time."""
TIMEOUT_SEC: Final = 30.0
"""How long a transaction may take, and how long one may wait for a connection."""
_RELEASE_SEC: Final = 5.0
"""How long a statement may take to be canceled once its caller is."""
_PATIENCE_SEC: Final = 10.0
"""How long a server may take to let us in; whatever else listens on its port may never answer."""


class ConnectionLost(ConnectionError):
    """asyncpg says InterfaceError both for a closed connection and for a wrong call; this is the former."""


class ConnectionPool:
    """The connections of one process to one database."""

    def __init__(self, pool: asyncpg.Pool[asyncpg.Record], timeout_sec: float) -> None:
        self._pool = pool
        self.timeout_sec = timeout_sec
        self._at_hand: list[Connection] = []
        self._wanting = 0

    @classmethod
    async def open(
        cls, url: str, *, limit: int, session: dict[str, str], timeout_sec: float = TIMEOUT_SEC
    ) -> ConnectionPool:
        """Make the first, with the settings of ``session``."""
        pool = await asyncpg.create_pool(
            url,
            timeout=min(_PATIENCE_SEC, timeout_sec),
            min_size=1,
            max_size=limit,
            init=_keep_alive,
            reset=_keep_session,
            server_settings=session,
            statement_cache_size=_STATEMENTS,
        )
        return cls(pool, timeout_sec)

    def acquire(self, *, is_limited: bool = True) -> PooledConnection:
        """A connection for the block alone; ``ConnectionGone`` where the server has hung up, or does not answer.

        Only who listens may keep one for longer than a transaction may take.
        """
        return PooledConnection(self, self.timeout_sec if is_limited else None)

    async def checkout(self) -> Connection:
        """A connection, to be given or handed back."""
        if self._pool.is_closing():
            raise Unavailable("The database is closed.")
        while self._at_hand:
            connection = self._at_hand.pop()
            if not is_closed(connection):
                return connection
            await self._pool.release(connection)
        self._wanting += 1
        try:
            async with asyncio.timeout(self.timeout_sec):
                return await self._pool.acquire()
        except asyncpg.InterfaceError as error:
            raise Unavailable(f"No database connection available: {error}.") from error
        except TimeoutError as error:
            raise Unavailable(f"No connection to the database to be had within {self.timeout_sec:g} s.") from error
        finally:
            self._wanting -= 1

    async def release(self, connection: Connection) -> None:
        """Take back a connection after use that went well; it stays at hand while nobody waits for one."""
        if self._may_keep(connection):
            self._at_hand.append(connection)
        else:
            await self._pool.release(connection)

    async def release_after_error(self, connection: Connection, error: BaseException) -> None:
        """Take back a connection after use that ended in ``error``."""
        if isinstance(error, asyncio.CancelledError):
            with suppress(Exception):  # whatever breaks now must not hide from the caller that it is to stop
                await self._release(connection)
            return
        if isinstance(error, TimeoutError):
            await self._give_up(connection)
            raise ConnectionLost(f"no answer within {self.timeout_sec:g} s") from error
        gone = _spoilt(connection, error)
        await self._release(connection)
        if gone:
            raise ConnectionLost(str(error)) from error

    async def _release(self, connection: Connection) -> None:
        """Give a connection to the pool, which waits until its statement was canceled and undoes what it began."""
        try:
            await self._pool.release(connection, timeout=_RELEASE_SEC)
        except TimeoutError:
            await self._give_up(connection)
            raise

    async def _give_up(self, connection: Connection) -> None:
        """Close a connection that does not answer, and all idle ones: they lead to the same server."""
        silent, self._at_hand = [connection, *self._at_hand], []
        for item in silent:
            if not is_closed(item):
                item.terminate()
            await self._pool.release(item)
        await self._pool.expire_connections()

    async def close(self) -> None:
        """Wait for what is under way, then disconnect."""
        while self._at_hand:
            await self._pool.release(self._at_hand.pop())
        try:
            async with asyncio.timeout(_PATIENCE_SEC):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    def _may_keep(self, connection: Connection) -> bool:
        """Whether it may stay at hand: while nobody waits for one, least of all to disconnect."""
        if self._wanting or self._pool.is_closing() or len(self._at_hand) >= _AT_HAND:
            return False
        return not is_closed(connection) and not connection.is_in_transaction()


class PooledConnection:
    """A connection for a block. A class of its own, because a generator costs as much as the rest of lending."""

    __slots__ = ("_connection", "_connections", "_limit", "_limit_sec")

    def __init__(self, connections: ConnectionPool, limit_sec: float | None) -> None:
        self._connections = connections
        self._limit_sec = limit_sec

    async def __aenter__(self) -> Connection:
        """Take it. The time limit begins now: waiting for a connection in use is no fault of the connection."""
        self._connection = await self._connections.checkout()
        self._limit = asyncio.timeout(self._limit_sec)
        await self._limit.__aenter__()
        return self._connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back, or hand it back with the error that the block ended in."""
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError as late:
            error = late
        if error is None:
            await self._connections.release(self._connection)
        else:
            await self._connections.release_after_error(self._connection, error)


async def connect(url: str) -> asyncpg.Connection[asyncpg.Record]:
    """A connection of its own, outside of any pool."""
    with connection_errors():
        connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(url, timeout=_PATIENCE_SEC)
    await _keep_alive(connection)
    return connection


@contextmanager
def connection_errors() -> Iterator[None]:
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


def is_closed(connection: Connection) -> bool:
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
        if not is_closed(connection):
            connection.terminate()
        return True
    return isinstance(error, asyncpg.InterfaceError) and is_closed(connection)


async def _keep_alive(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Have the kernel look whether the server's machine is still there; asyncpg itself has no option for it."""
    transport = getattr(connection, "_transport", None)
    link = transport.get_extra_info("socket") if transport is not None else None
    if link is not None and link.family in (socket.AF_INET, socket.AF_INET6):
        for option in SOCKET_OPTIONS:
            link.setsockopt(*option)


async def _keep_session(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Replace asyncpg's reset between uses: we set nothing on a session, and it would cost a round trip each time.

    Only a transaction left open (its rollback was interrupted) must never reach the next user, whose commit would then
    commit what it left behind.
    """
    if connection.is_in_transaction():
        await connection.reset()
