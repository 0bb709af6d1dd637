"""Connections to PostgreSQL: the pool of asyncpg, with the last used connections kept outside of it.

Returning a connection to the pool of asyncpg takes a task and an iteration of the event loop, as long as a short
statement. So a few connections stay outside after use, unless a caller waits for one. After an error a connection
always goes back: the pool waits for a running cancellation and closes broken connections.

A server can stop answering without closing its connections, for example if its machine fails. So every wait has a
limit. A connection that did not answer in time is closed, together with all idle ones, which lead to the same server.
The same happens when a server refuses to write: after a failover it is a standby that keeps its connections open, and a
new connection may lead to the primary.
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
from adjudge.store.engine.postgres_errors import CLOSING

Connection: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"

_AT_HAND: Final = 4
_STATEMENTS: Final = 256
"""Prepared statements per connection: more than any process uses."""
STATEMENT_BYTES: Final = 256 * 1024
"""Largest SQL text that stays prepared. Scripts are longer than the 15 KiB that asyncpg keeps by default."""
TIMEOUT_SEC: Final = 30.0
"""Time limit of a transaction, and of the wait for a connection."""
_RELEASE_SEC: Final = 5.0
"""Time limit for canceling a statement after its caller was canceled."""
_PATIENCE_SEC: Final = 10.0
"""Time limit for connecting."""


class ConnectionLost(ConnectionError):
    """The connection was closed. asyncpg raises InterfaceError for this and for wrong calls."""


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
        """Connect, with the settings of ``session``."""
        pool = await asyncpg.create_pool(
            url,
            timeout=min(_PATIENCE_SEC, timeout_sec),
            min_size=1,
            max_size=limit,
            init=_keep_alive,
            reset=_keep_session,
            server_settings=session,
            statement_cache_size=_STATEMENTS,
            max_cacheable_statement_size=STATEMENT_BYTES,
        )
        return cls(pool, timeout_sec)

    def acquire(self, *, is_limited: bool = True) -> PooledConnection:
        """A connection for the block; ``ConnectionLost`` if the server closed it or does not respond.

        ``is_limited=False`` removes the time limit, for a listener.
        """
        return PooledConnection(self, self.timeout_sec if is_limited else None)

    async def checkout(self) -> Connection:
        """A connection, to be returned with ``release`` or ``release_after_error``."""
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
            raise Unavailable(f"No database connection became free within {self.timeout_sec:g} s.") from error
        finally:
            self._wanting -= 1

    async def release(self, connection: Connection) -> None:
        """Return a connection after success; it is kept for the next use unless a caller waits."""
        if self._may_keep(connection):
            self._at_hand.append(connection)
        else:
            await self._pool.release(connection)

    async def release_after_error(self, connection: Connection, error: BaseException) -> None:
        """Return a connection after ``error``."""
        if isinstance(error, asyncio.CancelledError):
            with suppress(Exception):  # an error here must not hide the cancellation of the caller
                await self._release(connection)
            return
        if isinstance(error, TimeoutError):
            await self._give_up(connection)
            raise ConnectionLost(f"no answer within {self.timeout_sec:g} s") from error
        if isinstance(error, CLOSING):
            await self._give_up(connection)
            return
        gone = _spoilt(connection, error)
        await self._release(connection)
        if gone:
            raise ConnectionLost(str(error)) from error

    async def _release(self, connection: Connection) -> None:
        """Return a connection to the pool, which waits for the cancellation of its statement and rolls back."""
        try:
            await self._pool.release(connection, timeout=_RELEASE_SEC)
        except TimeoutError:
            await self._give_up(connection)
            raise

    async def _give_up(self, connection: Connection) -> None:
        """Close a connection that cannot be used, and all idle ones, which lead to the same server."""
        silent, self._at_hand = [connection, *self._at_hand], []
        for item in silent:
            if not is_closed(item):
                item.terminate()
            await self._pool.release(item)
        await self._pool.expire_connections()

    async def close(self) -> None:
        """Wait for running transactions, then disconnect."""
        while self._at_hand:
            await self._pool.release(self._at_hand.pop())
        try:
            async with asyncio.timeout(_PATIENCE_SEC):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    def _may_keep(self, connection: Connection) -> bool:
        """Whether the connection may be kept: no caller waits, and the pool is not closing."""
        if self._wanting or self._pool.is_closing() or len(self._at_hand) >= _AT_HAND:
            return False
        return not is_closed(connection) and not connection.is_in_transaction()


class PooledConnection:
    """Context manager of a connection. A class, because a generator would double the cost."""

    __slots__ = ("_connection", "_connections", "_limit", "_limit_sec")

    def __init__(self, connections: ConnectionPool, limit_sec: float | None) -> None:
        self._connections = connections
        self._limit_sec = limit_sec

    async def __aenter__(self) -> Connection:
        """Acquire the connection. The time limit starts afterwards: waiting is not the fault of the connection."""
        self._connection = await self._connections.checkout()
        self._limit = asyncio.timeout(self._limit_sec)
        await self._limit.__aenter__()
        return self._connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Return the connection, with the error of the block if there is one."""
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError as late:
            error = late
        if error is None:
            await self._connections.release(self._connection)
        else:
            await self._connections.release_after_error(self._connection, error)


async def connect(url: str) -> asyncpg.Connection[asyncpg.Record]:
    """A connection outside of any pool."""
    with connection_errors():
        connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(url, timeout=_PATIENCE_SEC)
    await _keep_alive(connection)
    return connection


@contextmanager
def connection_errors() -> Iterator[None]:
    """Report why a server cannot be reached. An invalid URL is not quoted, because it may contain a password."""
    try:
        yield
    except (ValueError, OverflowError):
        raise InvalidInput(
            "database_url: cannot be read; give postgresql://USER:PASSWORD@HOST:PORT/NAME, with %2F for /, "
            "%3A for : and %40 for @ in the password.",
            field="database_url",
        ) from None
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        words = str(error).rstrip(".") or "it does not answer"
        raise Unavailable(
            f"Cannot connect to PostgreSQL: {words}. Check ADJUDGE_DATABASE_URL and the server."
        ) from error


def is_closed(connection: Connection) -> bool:
    """Whether the connection is closed. A released proxy of asyncpg shows that by raising an error."""
    try:
        return connection.is_closed()
    except asyncpg.InterfaceError:
        return True


def _spoilt(connection: Connection, error: BaseException) -> bool:
    """Whether the connection cannot be used after this error."""
    if isinstance(error, asyncpg.InternalClientError):
        # A server that fails in the middle of a response leaves asyncpg waiting for the rest. Such a connection is not
        # closed, and would be used again.
        if not is_closed(connection):
            connection.terminate()
        return True
    return isinstance(error, asyncpg.InterfaceError) and is_closed(connection)


async def _keep_alive(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Enable TCP keepalive, for which asyncpg has no option."""
    transport = getattr(connection, "_transport", None)
    link = transport.get_extra_info("socket") if transport is not None else None
    if link is not None and link.family in (socket.AF_INET, socket.AF_INET6):
        for option in SOCKET_OPTIONS:
            link.setsockopt(*option)


async def _keep_session(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Replace the reset of asyncpg between uses, which costs a round trip; sessions have no settings to reset.

    Only a transaction left open by an interrupted rollback must not reach the next user, whose commit would commit it.
    """
    if connection.is_in_transaction():
        await connection.reset()
