"""Reactions to the result codes of SQLite, and to exception classes without one."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from adjudge.domain.errors import InternalFault, InvalidInput
from adjudge.domain.reactions import Reaction, Reactions, of_database, reaction_to
from adjudge.store.engine.constraints import from_sqlite

CODES: Final[Mapping[int, Reaction]] = MappingProxyType(
    {
        # The disk or another process prevents it: temporary, or to be fixed by an operator during operation.
        sqlite3.SQLITE_BUSY: Reaction.WAIT,
        sqlite3.SQLITE_LOCKED: Reaction.WAIT,
        sqlite3.SQLITE_FULL: Reaction.WAIT,
        sqlite3.SQLITE_IOERR: Reaction.WAIT,
        sqlite3.SQLITE_CANTOPEN: Reaction.WAIT,
        sqlite3.SQLITE_READONLY: Reaction.WAIT,
        sqlite3.SQLITE_PERM: Reaction.WAIT,
        sqlite3.SQLITE_PROTOCOL: Reaction.WAIT,
        sqlite3.SQLITE_NOMEM: Reaction.WAIT,
        sqlite3.SQLITE_INTERRUPT: Reaction.WAIT,
        sqlite3.SQLITE_ABORT: Reaction.WAIT,
        sqlite3.SQLITE_SCHEMA: Reaction.WAIT,
        # The data cannot be stored.
        sqlite3.SQLITE_CONSTRAINT: Reaction.REFUSE,
        sqlite3.SQLITE_TOOBIG: Reaction.REFUSE,
        sqlite3.SQLITE_MISMATCH: Reaction.REFUSE,
        # The file is damaged, or the statement or the call is wrong.
        sqlite3.SQLITE_CORRUPT: Reaction.FATAL,
        sqlite3.SQLITE_NOTADB: Reaction.FATAL,
        sqlite3.SQLITE_ERROR: Reaction.FATAL,
        sqlite3.SQLITE_INTERNAL: Reaction.FATAL,
        sqlite3.SQLITE_NOTFOUND: Reaction.FATAL,
        sqlite3.SQLITE_EMPTY: Reaction.FATAL,
        sqlite3.SQLITE_MISUSE: Reaction.FATAL,
        sqlite3.SQLITE_NOLFS: Reaction.FATAL,
        sqlite3.SQLITE_AUTH: Reaction.FATAL,
        sqlite3.SQLITE_FORMAT: Reaction.FATAL,
        sqlite3.SQLITE_RANGE: Reaction.FATAL,
    }
)
"""Primary result code → reaction."""

REACTIONS: Final[Reactions] = MappingProxyType(
    {
        sqlite3.Warning: Reaction.FATAL,
        sqlite3.Error: Reaction.FATAL,
        sqlite3.IntegrityError: Reaction.REFUSE,
        sqlite3.DataError: Reaction.REFUSE,
        sqlite3.OperationalError: Reaction.FATAL,
        sqlite3.ProgrammingError: Reaction.FATAL,
        sqlite3.InterfaceError: Reaction.FATAL,
        sqlite3.InternalError: Reaction.FATAL,
        sqlite3.NotSupportedError: Reaction.FATAL,
    }
)
"""Exception class → reaction, for errors of the ``sqlite3`` module itself, which have no result code."""


def reaction_of(error: sqlite3.Error) -> Reaction:
    """The reaction to an error, by its result code or its class."""
    code = getattr(error, "sqlite_errorcode", None)
    return reaction_to(error, REACTIONS) if code is None else CODES.get(code & 0xFF, Reaction.FATAL)


def translated(error: Exception, *, may_write: bool = True) -> Exception:
    """The domain error of an error of SQLite; other errors are returned unchanged."""
    if isinstance(error, sqlite3.IntegrityError):
        return from_sqlite(error)
    if isinstance(error, UnicodeEncodeError | OverflowError):
        return InvalidInput(f"A value that the database cannot hold: {error}.")
    if not isinstance(error, sqlite3.Error):
        return error
    if not may_write and getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY:
        return InternalFault(f"An operation that only reads wants to write: {error}.")
    return of_database(reaction_of(error), "SQLite", str(error))
