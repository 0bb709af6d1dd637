"""The interface of a database: one protocol, two drivers, one conformance suite.

A transaction is an *operation*: an ``async def`` that gets a ``Tx`` and awaits nothing else. PostgreSQL runs it on the
event loop over one connection. SQLite runs it on the writer thread without suspending, so that a transaction costs one
thread switch, whatever the number of statements. An operation may run again from the start (deadlock, serialization
failure), so it must not change anything outside its ``Tx``.

A failed statement aborts its transaction on both databases: an operation cannot catch the error and commit the rest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from adjudge.domain.errors import InternalFault, NotFound
from adjudge.observe.logs import get_logger
from adjudge.store.engine.script import Inputs, Returned, Script
from adjudge.store.engine.statement import Dialect, Rows, RowT, Statement

T = TypeVar("T")

_log = get_logger(__name__)


class Tx(Protocol):
    """One open transaction."""

    dialect: Dialect

    async def fetch(
        self, statement: Statement[RowT], rows: Rows | None = None, /, **parameters: object
    ) -> list[RowT]: ...

    async def execute(self, statement: Statement[Any], rows: Rows | None = None, /, **parameters: object) -> int:
        """Run ``statement`` and return the number of changed rows."""
        ...

    async def run(self, script: Script, inputs: Inputs, /, *, last: bool = False, **parameters: object) -> Returned:
        """Run ``script`` and return the rows that its steps returned.

        One that is the ``last`` of its transaction is followed by nothing but the commit. Where it is the first as well
        and ``script.complete`` holds, PostgreSQL commits it by itself: one round trip instead of three. Where it does
        not hold, ``transact`` runs the operation again, in an ordinary transaction that may go on after the script.
        """
        ...

    def on_commit(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` on the event loop after the commit; not after a rollback."""
        ...

    def notify(self, channel: str) -> None:
        """Notify the listeners of ``channel`` after the commit."""
        ...


Operation = Callable[[Tx], Awaitable[T]]


COMMITTED = InternalFault("A statement came after the script that has committed its transaction.")
"""What such a statement fails with."""


class ScriptIncomplete(Exception):
    """A script that was to commit by itself is not complete: nothing of it happened."""


class Database(Protocol):
    """A database that can run operations."""

    dialect: Dialect

    async def transact(self, operation: Operation[T]) -> T: ...

    async def read(self, operation: Operation[T]) -> T:
        """Run ``operation`` on one consistent snapshot; it must not write."""
        ...

    def listen(self, channel: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` at every notification of ``channel``; the returned function removes it."""
        ...

    async def close(self) -> None:
        """Wait for running operations, then close all connections."""
        ...


async def fetch_one(tx: Tx, statement: Statement[RowT], /, **parameters: object) -> RowT | None:
    """Return the first row of ``statement``, or None."""
    rows = await tx.fetch(statement, **parameters)
    return rows[0] if rows else None


def or_not_found(row: T | None, kind: str, name: str) -> T:
    """``row``; raises NotFound for ``name`` if it is None."""
    if row is None:
        raise NotFound(kind, name)
    return row


def run_callbacks(callbacks: Sequence[Callable[[], None]]) -> None:
    """Run the callbacks after a commit; errors are logged, because the commit cannot be undone."""
    for callback in callbacks:
        try:
            callback()
        except Exception:  # noqa: BLE001 — the other callbacks still run
            _log.exception("on_commit_callback_failed")
