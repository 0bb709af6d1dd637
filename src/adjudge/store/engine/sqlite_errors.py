"""Reactions to the result codes of SQLite, and to exception classes without one."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from adjudge.domain.errors import InternalFault, InvalidInput
from adjudge.domain.reactions import Reaction, Reactions, of_database, reaction_to
from adjudge.store.engine.constraints import from_sqlite

RESULT_CODES: Final[Mapping[str, Reaction]] = MappingProxyType(
    {
        # The disk or another process prevents it: temporary, or to be fixed by an operator during operation.
        "SQLITE_BUSY": Reaction.WAIT,
        "SQLITE_LOCKED": Reaction.WAIT,
        "SQLITE_FULL": Reaction.WAIT,
        "SQLITE_IOERR": Reaction.WAIT,
        "SQLITE_CANTOPEN": Reaction.WAIT,
        "SQLITE_READONLY": Reaction.WAIT,
        "SQLITE_PERM": Reaction.WAIT,
        "SQLITE_PROTOCOL": Reaction.WAIT,
        "SQLITE_NOMEM": Reaction.WAIT,
        "SQLITE_INTERRUPT": Reaction.WAIT,
        "SQLITE_ABORT": Reaction.WAIT,
        "SQLITE_SCHEMA": Reaction.WAIT,
        # The data cannot be stored.
        "SQLITE_CONSTRAINT": Reaction.REFUSE,
        "SQLITE_TOOBIG": Reaction.REFUSE,
        "SQLITE_MISMATCH": Reaction.REFUSE,
        # The file is damaged, or the statement or the call is wrong.
        "SQLITE_CORRUPT": Reaction.FATAL,
        "SQLITE_NOTADB": Reaction.FATAL,
        "SQLITE_ERROR": Reaction.FATAL,
        "SQLITE_INTERNAL": Reaction.FATAL,
        "SQLITE_NOTFOUND": Reaction.FATAL,
        "SQLITE_EMPTY": Reaction.FATAL,
        "SQLITE_MISUSE": Reaction.FATAL,
        "SQLITE_NOLFS": Reaction.FATAL,
        "SQLITE_AUTH": Reaction.FATAL,
        "SQLITE_FORMAT": Reaction.FATAL,
        "SQLITE_RANGE": Reaction.FATAL,
    }
)
"""Name of the primary result code → reaction. By name, because ``sqlite3`` has other constants of the same values."""

CODES: Final[Mapping[int, Reaction]] = MappingProxyType(
    {int(getattr(sqlite3, name)): reaction for name, reaction in RESULT_CODES.items()}
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
