"""PostgreSQL with asyncpg; prepared statements are kept per connection."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import asyncpg

from adjudge.domain.errors import InternalFault, OutcomeUnknown, Unavailable
from adjudge.store.engine.driver import COMMITTED, Operation, ScriptIncomplete, run_callbacks
from adjudge.store.engine.postgres_errors import AGAIN, CLOSING, DRIVER_ERRORS, UNCERTAIN, translated
from adjudge.store.engine.postgres_notify import PostgresNotifier
from adjudge.store.engine.postgres_pool import TIMEOUT_SEC, Connection, ConnectionPool, connection_errors, is_closed
from adjudge.store.engine.script import INCOMPLETE, Inputs, PostgresScripts, Returned, Script
from adjudge.store.engine.statement import Dialect, Rows, RowT, Statement, StatementCache

T = TypeVar("T")

DATABASE_CLOCK = "CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint)"
"""Constant within a statement, so that it can be used in an index search; each statement reads it again."""

SESSION = {
    "application_name": "adjudge",
    "jit": "off",
    "random_page_cost": "0.5",
    "plan_cache_mode": "force_generic_plan",
    "idle_in_transaction_session_timeout": "10s",
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
}
"""A process that is suspended in a transaction keeps its rows locked, and the watchdog skips locked rows: the server
ends such a session after a while. A session whose machine failed is found by keepalive.

Write transactions find rows by key, so a session plans their statements once and keeps the plan; planning the longest
ones takes as long as executing them. Index pages are assumed to be cheap, so that a plan made for an empty table still
works when the table has grown."""

_PLAN_BY_VALUES = "SET LOCAL plan_cache_mode = auto"
"""For searches with optional filters: all read-only transactions, and some statements of write transactions."""
_BEGIN = "BEGIN"
_BEGIN_READING = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_PLAN_BY_VALUES}"

_TRIES = 5
_STATEMENT_SHARE = 0.9
"""The server ends a statement shortly before the client closes its connection, which can then be used again."""


def _failed(error: Exception, begin: str) -> Exception:
    """The error of a failed statement; errors that ``transact`` handles are returned unchanged."""
    if getattr(error, "constraint_name", None) == INCOMPLETE:
        return ScriptIncomplete()
    if begin is _BEGIN_READING and isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return InternalFault(f"A read-only operation tried to write: {error}.")
    return error if isinstance(error, (*AGAIN, *UNCERTAIN, *CLOSING)) else translated(error)


class _PostgresTx:
    """Statements on one connection. The transaction begins with the first of them, unless that commits by itself."""

    dialect = Dialect.POSTGRES

    def __init__(
        self,
        connection: Connection,
        texts: StatementCache,
        scripts: PostgresScripts,
        notifier: PostgresNotifier,
        begin: str,
        *,
        may_commit: bool,
    ) -> None:
        self._connection = connection
        self._begin = begin
        self._begun = False
        self.is_last = False
        """Whether the statement under way commits by itself."""
        self._texts = texts
        self._scripts = scripts
        self._may_commit = may_commit
        self._notifier = notifier
        self.failure: Exception | None = None
        self.callbacks: list[Callable[[], None]] = []

    async def fetch(self, statement: Statement[RowT], rows: Rows | None = None, /, **parameters: object) -> list[RowT]:
        return statement.build_rows(await self._run(self._connection.fetch, statement, rows, parameters))

    async def execute(self, statement: Statement[Any], rows: Rows | None = None, /, **parameters: object) -> int:
        tag: str = await self._run(self._connection.execute, statement, rows, parameters)
        return int(tag.rpartition(" ")[2]) if tag[-1].isdigit() else 0

    async def run(self, script: Script, inputs: Inputs, /, *, last: bool = False, **parameters: object) -> Returned:
        self.is_last = last and self._may_commit and not self._begun
        rendered = self._scripts.of(script, inputs, is_last=self.is_last)
        arguments = rendered.arguments(inputs, parameters)
        rows = await self._send(self._connection.fetch, rendered.sql, arguments)
        if self.is_last:
            self.failure = COMMITTED
        return rendered.returned(rows[0])

    async def commit(self) -> None:
        """Commit, unless no transaction was begun or its only statement has committed."""
        if self._begun:
            await self._connection.execute("COMMIT")

    async def rollback(self) -> None:
        if self._begun and not is_closed(self._connection):
            await self._connection.execute("ROLLBACK")

    async def _run(
        self,
        call: Callable[..., Awaitable[Any]],
        statement: Statement[Any],
        rows: Rows | None,
        parameters: dict[str, object],
    ) -> Any:
        rendered = self._texts.get(statement, rows)
        arguments = rendered.arguments(rows, parameters)
        return await self._send(call, rendered.sql, arguments, by_values=statement.force_custom_plan)

    async def _send(
        self, call: Callable[..., Awaitable[Any]], sql: str, arguments: Sequence[object], *, by_values: bool = False
    ) -> Any:
        if self.failure is not None:
            raise self.failure
        try:
            if not self._begun and not self.is_last:
                await self._connection.execute(self._begin)
                self._begun = True
            if by_values:
                await self._connection.execute(_PLAN_BY_VALUES)
            return await call(sql, *arguments)
        except Exception as error:  # any error aborts the transaction, and is raised again
            self.failure = _failed(error, self._begin)
            if self.failure is error:
                raise
            raise self.failure from error

    def on_commit(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def notify(self, channel: str) -> None:
        self.callbacks.append(partial(self._notifier.notify, channel))


async def _operated(operation: Operation[T], tx: _PostgresTx) -> T:
    """Run ``operation``; it fails if a statement failed, even if it caught the error."""
    try:
        result = await operation(tx)
        if tx.failure is not None and tx.failure is not COMMITTED:
            raise tx.failure
    except Exception:  # after a cancellation the pool rolls back
        await tx.rollback()
        raise
    return result


class PostgresDatabase:
    """A PostgreSQL database."""

    dialect = Dialect.POSTGRES

    def __init__(self, connections: ConnectionPool, now: str = DATABASE_CLOCK) -> None:
        self._connections = connections
        self._texts = StatementCache(Dialect.POSTGRES, now)
        self._scripts = PostgresScripts(now)
        self._notifier = PostgresNotifier(connections)

    @classmethod
    async def open(
        cls, url: str, *, max_connections: int = 16, timeout_sec: float = TIMEOUT_SEC, now: str = DATABASE_CLOCK
    ) -> PostgresDatabase:
        """Connect. ``timeout_sec`` is the time limit of transactions."""
        statement_ms = max(1, round(timeout_sec * _STATEMENT_SHARE * 1_000))
        session = SESSION | {"statement_timeout": str(statement_ms)}
        with connection_errors():
            connections = await ConnectionPool.open(
                url, limit=max_connections, session=session, timeout_sec=timeout_sec
            )
        return cls(connections, now)

    async def transact(self, operation: Operation[T]) -> T:
        """Run ``operation`` in one transaction; repeat it after a deadlock or serialization failure."""
        may_commit, failures = True, 0
        while True:
            try:
                return await self._once(operation, may_commit=may_commit)
            except ScriptIncomplete:
                may_commit = False
            except AGAIN as error:
                failures += 1
                if failures == _TRIES:
                    raise Unavailable(f"Transaction failed after {_TRIES} attempts: {error}.") from error
                await asyncio.sleep(random.uniform(0, 0.005 * 2**failures))  # noqa: S311 — it only spreads retries

    async def _once(self, operation: Operation[T], *, may_commit: bool) -> T:
        committing, tx = False, None
        try:
            async with self._connections.acquire() as connection:
                tx = self._tx(connection, _BEGIN, may_commit=may_commit)
                result = await _operated(operation, tx)
                committing = True
                await tx.commit()
        except AGAIN:
            raise
        except DRIVER_ERRORS as error:
            if isinstance(error, UNCERTAIN) and (committing or (tx is not None and tx.is_last)):
                raise OutcomeUnknown from error
            raise translated(error) from error
        run_callbacks(tx.callbacks)
        return result

    async def read(self, operation: Operation[T]) -> T:
        try:
            async with self._connections.acquire() as connection:
                tx = self._tx(connection, _BEGIN_READING)
                result = await _operated(operation, tx)
                await tx.rollback()
                return result
        except DRIVER_ERRORS as error:
            raise translated(error) from error

    def _tx(self, connection: Connection, begin: str, *, may_commit: bool = False) -> _PostgresTx:
        return _PostgresTx(connection, self._texts, self._scripts, self._notifier, begin, may_commit=may_commit)

    def listen(self, channel: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Listen to the notifications of all processes on this database."""
        return self._notifier.listen(channel, callback)

    async def close(self) -> None:
        """Wait for running transactions, then disconnect."""
        await self._notifier.close()
        await self._connections.close()
