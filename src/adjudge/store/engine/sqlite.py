"""SQLite with the ``sqlite3`` module: one writer thread and several readers.

Transactions that wait at the same time are committed together: each runs in its own savepoint, so that a failure does
not affect the others, and all share the cost of one commit. WAL with ``synchronous=FULL`` keeps committed data after a
power failure; ``NORMAL`` (a setting) may lose the last transactions, but is faster.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from adjudge.domain.errors import Unavailable
from adjudge.store.engine.driver import COMMITTED, Operation, run_callbacks
from adjudge.store.engine.notify import LocalNotifier
from adjudge.store.engine.script import Inputs, Returned, Script, SqliteStep, render_sqlite
from adjudge.store.engine.sqlite_errors import translated
from adjudge.store.engine.statement import Dialect, Rows, RowT, Statement, StatementCache, as_json

T = TypeVar("T")
Clock = Callable[[], int]

_NOW = "adjudge_now()"
_GROUP_LIMIT = 128
_READERS = 4
_WAL_RETRY_SEC = 0.005
BUSY_TIMEOUT_SEC = 10
"""Time limit of the wait for a lock of another connection."""


def system_clock() -> int:
    """Microseconds since the Unix epoch; the clock of the machine is that of the database."""
    return time.time_ns() // 1_000


@dataclass(eq=False)
class _QueuedOperation:
    """An operation that waits for the writer, with the future of its result."""

    operation: Operation[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    result: Any = None
    error: BaseException | None = None
    callbacks: list[Callable[[], None]] = field(default_factory=list)

    def resolve(self) -> None:
        """Set the result; runs on the event loop after the commit."""
        if self.error is None:
            run_callbacks(self.callbacks)
        if self.future.cancelled():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class SqliteTx:
    """Statements on one connection. Its coroutines never suspend: see ``run_to_completion``."""

    dialect = Dialect.SQLITE

    def __init__(
        self, connection: sqlite3.Connection, clock: Clock, notifier: LocalNotifier, *, may_write: bool = True
    ) -> None:
        self.connection = connection
        self._may_write = may_write
        self._clock = clock
        self._notifier = notifier
        self._now = 0
        connection.create_function("adjudge_now", 0, lambda: self._now, deterministic=True)
        self._texts = StatementCache(Dialect.SQLITE, _NOW)
        self._scripts: dict[str, list[SqliteStep]] = {}
        self.begin([])

    def begin(self, callbacks: list[Callable[[], None]]) -> None:
        """Reset for the next operation."""
        self.callbacks = callbacks
        self.failure: Exception | None = None

    def _run(
        self,
        statement: Statement[Any],
        rows: Rows | None,
        parameters: dict[str, object],
        answer: Callable[[sqlite3.Cursor], T],
    ) -> T:
        """Run ``statement`` and read all rows, because a later row may fail too."""
        if self.failure is not None:
            raise self.failure
        rendered = self._texts.get(statement, rows)
        self._now = self._clock()  # one time for the whole statement
        try:
            return answer(self.connection.execute(rendered.sql, cast("Any", rendered.arguments(rows, parameters))))
        except Exception as error:  # any error aborts the transaction, and is raised again
            failure = self._doom(error)
            if failure is error:
                raise
            raise failure from error

    async def run_operation(self, operation: Operation[T]) -> T:
        """Run ``operation``; it fails if a statement failed, even if it caught the error."""
        result = await operation(self)
        if self.failure is not None and self.failure is not COMMITTED:
            raise self.failure
        return result

    async def fetch(self, statement: Statement[RowT], rows: Rows | None = None, /, **parameters: object) -> list[RowT]:
        return statement.build_rows(self._run(statement, rows, parameters, sqlite3.Cursor.fetchall))

    async def execute(self, statement: Statement[Any], rows: Rows | None = None, /, **parameters: object) -> int:
        """Run ``statement`` and return the number of changed rows."""
        return self._run(statement, rows, parameters, _changed)

    async def run(self, script: Script, inputs: Inputs, /, *, last: bool = False, **parameters: object) -> Returned:
        """Run the steps of ``script`` one after another: round trips cost nothing here."""
        if self.failure is not None:
            raise self.failure
        steps = self._scripts.get(script.name)
        if steps is None:
            steps = self._scripts[script.name] = render_sqlite(script, _NOW)
        relations: Returned = {name: [*rows] for name, rows in inputs.items()}
        texts: dict[str, str] = {}
        self._now = self._clock()  # one timestamp for the whole script
        try:
            for item in steps:
                self._run_step(item, relations, texts, parameters)
        except Exception as error:  # any error aborts the transaction, and is raised again
            failure = self._doom(error)
            if failure is error:
                raise
            raise failure from error
        if last and not script.complete:
            self.failure = COMMITTED
        outputs = [step for step in script.steps if step.is_output]
        return {step.name: [row[: len(step.returns)] for row in relations[step.name]] for step in outputs}

    def _run_step(
        self, item: SqliteStep, relations: Returned, texts: dict[str, str], parameters: dict[str, object]
    ) -> None:
        step = item.step
        selected = item.select(relations)
        if item.relations and not selected:
            relations[step.name] = []
            return
        arguments: list[object] = [as_json(selected)] if item.only else []
        for name in item.relations[len(arguments) :]:
            if name not in texts:
                texts[name] = as_json(relations[name])
            arguments.append(texts[name])
        arguments += [parameters[name] for name in item.parameters]
        rows = self.connection.execute(item.sql, cast("Any", arguments)).fetchall()
        relations[step.name] = item.with_carried(rows, relations[step.carries] if step.carries else ())

    def _doom(self, error: Exception) -> Exception:
        self.failure = translated(error, may_write=self._may_write)
        return self.failure

    def on_commit(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def notify(self, channel: str) -> None:
        self.callbacks.append(partial(self._notifier.notify, channel))


def _changed(cursor: sqlite3.Cursor) -> int:
    return cursor.rowcount


def run_to_completion(awaitable: Awaitable[T]) -> T:
    """Run an operation on this thread; it fails if it suspends."""
    step = cast("Generator[object, None, T]", awaitable.__await__())
    try:
        next(step)
    except StopIteration as stop:
        return cast("T", stop.value)
    step.close()
    raise RuntimeError("an operation awaited something other than its transaction")


def enable_wal(connection: sqlite3.Connection) -> None:
    """Switch the database to write-ahead logging.

    SQLite does not call its busy handler for this switch: while another connection switches the same new file, the
    statement fails at once with SQLITE_BUSY. So it is repeated here, for as long as other statements would wait.
    """
    give_up_at = time.monotonic() + BUSY_TIMEOUT_SEC
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").close()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= give_up_at:
                raise
        time.sleep(_WAL_RETRY_SEC)


class SqliteDatabase:
    """A SQLite database file."""

    dialect = Dialect.SQLITE

    def __init__(self, path: Path, *, synchronous: str = "FULL", clock: Clock = system_clock) -> None:
        self._path = path
        self._synchronous = synchronous
        self._clock = clock
        self._tickets: queue.SimpleQueue[_QueuedOperation | None] = queue.SimpleQueue()
        self._closed = False
        self._notifier = LocalNotifier()
        self._writer = threading.Thread(target=self._write_loop, name="adjudge-sqlite-writer", daemon=True)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="adjudge-sqlite-reader")
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._write_tx = SqliteTx(self._connect(), clock, self._notifier)
        self._writer.start()

    def _connect(self, *, read_only: bool = False) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self._path, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT_SEC
            )
            pragmas = [f"synchronous={self._synchronous}", "foreign_keys=ON", "cache_size=-65536"]
            enable_wal(connection)
            for pragma in [*pragmas, *(["query_only=ON"] if read_only else [])]:
                connection.execute(f"PRAGMA {pragma}").close()
        except sqlite3.Error as error:
            raise Unavailable(
                f"Cannot open the database {self._path}: {error}. Check the folder and its owner."
            ) from error
        connection.row_factory = sqlite3.Row
        self._connections.append(connection)
        return connection

    async def transact(self, operation: Operation[T]) -> T:
        """Queue ``operation`` for the writer and wait for its commit."""
        if self._closed:
            raise Unavailable("The database is closed.")
        loop = asyncio.get_running_loop()
        ticket = _QueuedOperation(operation, loop.create_future(), loop)
        self._tickets.put(ticket)
        return cast("T", await ticket.future)

    async def read(self, operation: Operation[T]) -> T:
        """Run ``operation`` on a reader; readers and the writer do not wait for each other."""
        if self._closed:
            raise Unavailable("The database is closed.")
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read_here, operation)

    def _read_here(self, operation: Operation[T]) -> T:
        tx: SqliteTx | None = getattr(self._local, "tx", None)
        if tx is None:
            tx = self._local.tx = SqliteTx(self._connect(read_only=True), self._clock, self._notifier, may_write=False)
        tx.begin([])
        connection = tx.connection
        try:
            connection.execute("BEGIN")
        except sqlite3.Error as error:
            raise translated(error) from error
        try:
            return run_to_completion(tx.run_operation(operation))
        finally:
            if connection.in_transaction:  # already ended, for example by a disk error
                connection.execute("ROLLBACK")

    def listen(self, channel: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Listen to the notifications of this process; changes of other processes are found by polling."""
        return self._notifier.listen(channel, callback)

    async def close(self) -> None:
        """Run the queued operations, then close all connections."""
        if self._closed:
            return
        self._closed = True
        self._tickets.put(None)
        await asyncio.to_thread(self._writer.join)
        self._readers.shutdown()
        for connection in self._connections:
            connection.close()

    # Runs on the writer thread from here on.

    def _write_loop(self) -> None:
        while (ticket := self._tickets.get()) is not None:
            group, closing = self._gather(ticket)
            self._commit_group(group)
            for loop in {ticket.loop for ticket in group}:
                settled = [ticket for ticket in group if ticket.loop is loop]
                with suppress(RuntimeError):  # the event loop is closed
                    loop.call_soon_threadsafe(_settle_all, settled)
            if closing:
                return

    def _gather(self, ticket: _QueuedOperation) -> tuple[list[_QueuedOperation], bool]:
        group = [ticket]
        while len(group) < _GROUP_LIMIT:
            try:
                following = self._tickets.get_nowait()
            except queue.Empty:
                break
            if following is None:
                return group, True
            group.append(following)
        return group, False

    def _commit_group(self, group: list[_QueuedOperation]) -> None:
        connection = self._write_tx.connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            run = self._run_alone if len(group) == 1 else self._run_in_savepoint
            for ticket in group:
                if not ticket.future.cancelled():
                    run(connection, ticket)
            if connection.in_transaction or not all(ticket.error for ticket in group):
                connection.execute("COMMIT")  # fails if the transaction has ended
        except BaseException as error:  # noqa: BLE001 — every waiter gets the error, whatever it is
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            unavailable = Unavailable(f"The database could not commit: {error}.")
            unavailable.__cause__ = error
            for ticket in group:
                ticket.error = unavailable

    def _run_alone(self, connection: sqlite3.Connection, ticket: _QueuedOperation) -> None:
        """Run a single operation without a savepoint: a failure rolls back the transaction."""
        self._write_tx.begin(ticket.callbacks)
        try:
            ticket.result = run_to_completion(self._write_tx.run_operation(ticket.operation))
        except BaseException as error:  # noqa: BLE001 — the caller gets it
            if connection.in_transaction:  # already ended, for example by a full disk
                connection.execute("ROLLBACK")
            ticket.error = error

    def _run_in_savepoint(self, connection: sqlite3.Connection, ticket: _QueuedOperation) -> None:
        tx = self._write_tx
        tx.begin(ticket.callbacks)
        connection.execute("SAVEPOINT operation")
        try:
            ticket.result = run_to_completion(tx.run_operation(ticket.operation))
            connection.execute("RELEASE operation")
        except BaseException as error:  # noqa: BLE001 — the caller gets it
            connection.execute("ROLLBACK TO operation")
            connection.execute("RELEASE operation")
            ticket.error = error


def _settle_all(tickets: list[_QueuedOperation]) -> None:
    for ticket in tickets:
        ticket.resolve()
