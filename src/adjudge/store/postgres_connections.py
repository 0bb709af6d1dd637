"""Connections to PostgreSQL: asyncpg's pool makes and bounds them, and those used last are kept at hand.

Giving a connection back to the pool takes a task and a turn of the event loop, which is as long as a short statement
takes. So a few stay out of it after use, unless somebody waits for one. What ended in an error always goes back: the
pool waits for a cancelation that is under way, and drops what is of no more use.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias

import asyncpg

from adjudge.domain.errors import Unavailable

Connection: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"

_AT_HAND: Final = 4


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
            await asyncpg.create_pool(url, min_size=1, max_size=at_most, reset=_keep_session, server_settings=session)
        )

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Connection]:
        """A connection for the block alone; ``ConnectionGone`` where it turns out that the server has hung up."""
        connection = await self._take()
        try:
            yield connection
        except asyncio.CancelledError:
            with suppress(Exception):  # whatever breaks now must not hide from the caller that it is to stop
                await self._pool.release(connection)
            raise
        except BaseException as error:
            gone = _spoilt(connection, error)
            await self._pool.release(connection)
            if gone:
                raise ConnectionGone(str(error)) from error
            raise
        if self._may_keep(connection):
            self._at_hand.append(connection)
        else:
            await self._pool.release(connection)

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

    async def _take(self) -> Connection:
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
