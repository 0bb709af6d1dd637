"""PostgreSQL: asyncpg with nothing in between, prepared statements kept per connection."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

import asyncpg

from adjudge.domain.errors import OutcomeUnknown, Unavailable
from adjudge.store.constraints import from_postgres
from adjudge.store.driver import Operation
from adjudge.store.postgres_bells import PostgresBells
from adjudge.store.statement import Dialect, Rendered, Row, Rows, Statement, render

T = TypeVar("T")

DATABASE_CLOCK = "CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint)"
"""Stable within a statement, so an index can be searched by it; advances from statement to statement."""

_TRIES = 5
_AGAIN = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    OSError,
    TimeoutError,
)


class _ConnectionGone(ConnectionError):
    """asyncpg says InterfaceError both for a closed connection and for a wrong call; this is the former."""


class _PostgresTx:
    """Statements on one connection."""

    dialect = Dialect.POSTGRES

    def __init__(
        self,
        connection: asyncpg.pool.PoolConnectionProxy[asyncpg.Record],
        rendered: dict[str, Rendered],
        now: str,
        bells: PostgresBells,
    ) -> None:
        self._connection = connection
        self._rendered = rendered
        self._now = now
        self._bells = bells
        self.callbacks: list[Callable[[], None]] = []

    def _render(self, statement: Statement) -> Rendered:
        rendered = self._rendered.get(statement.name)
        if rendered is None:
            rendered = self._rendered[statement.name] = render(statement, Dialect.POSTGRES, self._now)
        return rendered

    async def fetch(self, statement: Statement, rows: Rows | None = None, /, **parameters: object) -> list[Row]:
        rendered = self._render(statement)
        try:
            found = await self._connection.fetch(rendered.sql, *rendered.arguments(rows, parameters))
        except asyncpg.IntegrityConstraintViolationError as error:
            raise from_postgres(error) from error
        return cast("list[Row]", found)

    async def execute(self, statement: Statement, rows: Rows | None = None, /, **parameters: object) -> int:
        rendered = self._render(statement)
        try:
            tag = await self._connection.execute(rendered.sql, *rendered.arguments(rows, parameters))
        except asyncpg.IntegrityConstraintViolationError as error:
            raise from_postgres(error) from error
        return int(tag.rpartition(" ")[2]) if tag[-1].isdigit() else 0

    def on_commit(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def ring(self, channel: str) -> None:
        self.callbacks.append(partial(self._bells.ring, channel))


async def _keep_session(_: object) -> None:
    """Replace asyncpg's reset between uses: we set nothing on a session, and it would cost a round trip each time."""


class PostgresDatabase:
    """The distributed truth."""

    dialect = Dialect.POSTGRES

    def __init__(self, pool: asyncpg.Pool[asyncpg.Record], now: str = DATABASE_CLOCK) -> None:
        self._pool = pool
        self._now = now
        self._bells = PostgresBells(pool)
        self._rendered: dict[str, Rendered] = {}

    @classmethod
    async def open(cls, url: str, *, max_connections: int = 16, now: str = DATABASE_CLOCK) -> PostgresDatabase:
        """Connect, or say why not."""
        try:
            pool = await asyncpg.create_pool(
                url,
                min_size=1,
                max_size=max_connections,
                reset=_keep_session,
                server_settings={"application_name": "adjudge", "jit": "off"},
            )
        except (asyncpg.PostgresError, *_LOST) as error:
            raise Unavailable(
                f"Cannot connect to PostgreSQL: {error}. Check ADJUDGE_DATABASE_URL and the server."
            ) from error
        return cls(pool, now)

    async def transact(self, operation: Operation[T]) -> T:
        """Run ``operation`` in one transaction, again from the top where PostgreSQL asks for it."""
        for attempt in range(1, _TRIES + 1):
            try:
                return await self._once(operation)
            except _AGAIN as error:
                if attempt == _TRIES:
                    raise Unavailable(f"PostgreSQL kept refusing the transaction: {error}.") from error
                await asyncio.sleep(random.uniform(0, 0.005 * 2**attempt))  # noqa: S311 — it only spreads the herd
        raise AssertionError("unreachable")

    async def _once(self, operation: Operation[T]) -> T:
        committing = False
        try:
            async with self._pool.acquire() as connection:
                tx = _PostgresTx(connection, self._rendered, self._now, self._bells)
                transaction = connection.transaction()
                await transaction.start()
                try:
                    result = await operation(tx)
                except asyncpg.InterfaceError as error:
                    if connection.is_closed():
                        raise _ConnectionGone(str(error)) from error
                    await transaction.rollback()
                    raise
                except BaseException:
                    if not connection.is_closed():
                        await transaction.rollback()
                    raise
                committing = True
                await transaction.commit()
        except _LOST as error:
            if committing:
                raise OutcomeUnknown from error
            raise Unavailable(f"PostgreSQL is away: {error}.") from error
        for callback in tx.callbacks:
            callback()
        return result

    async def read(self, operation: Operation[T]) -> T:
        """Run ``operation`` against one snapshot."""
        try:
            async with (
                self._pool.acquire() as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                return await operation(_PostgresTx(connection, self._rendered, self._now, self._bells))
        except _LOST as error:
            raise Unavailable(f"PostgreSQL is away: {error}.") from error

    def listen(self, channel: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Hear rings of every process on this database."""
        return self._bells.listen(channel, callback)

    async def close(self) -> None:
        """Wait for what is under way, then disconnect."""
        await self._bells.close()
        await self._pool.close()
