"""Reactions to the exception classes of asyncpg, most of which are SQLSTATEs of PostgreSQL."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import asyncpg
from asyncpg.exceptions import _base as client_errors

from adjudge.domain.errors import InvalidInput
from adjudge.domain.reactions import Reaction, Reactions, of_database, reaction_to
from adjudge.store.engine.constraints import from_postgres

REACTIONS: Final[Reactions] = MappingProxyType(
    {
        asyncpg.PostgresError: Reaction.FATAL,
        # The server is unreachable, starting, stopping, full or broken, or rejects the login.
        asyncpg.PostgresConnectionError: Reaction.WAIT,  # 08
        asyncpg.InvalidAuthorizationSpecificationError: Reaction.WAIT,  # 28: the password was changed
        asyncpg.InvalidCatalogNameError: Reaction.WAIT,  # 3D000: a database that is being restored
        asyncpg.InsufficientResourcesError: Reaction.WAIT,  # 53: too many connections, disk full, out of memory
        asyncpg.OperatorInterventionError: Reaction.WAIT,  # 57: shutdown, starting up, statement_timeout
        asyncpg.PostgresSystemError: Reaction.WAIT,  # 58: its disk
        asyncpg.InternalServerError: Reaction.WAIT,  # XX
        asyncpg.ConfigFileError: Reaction.WAIT,  # F0
        asyncpg.FatalPostgresError: Reaction.WAIT,
        asyncpg.InternalClientError: Reaction.WAIT,  # protocol error; the connection is closed
        OSError: Reaction.WAIT,
        # The server answers, but cannot do this now, for example a standby after a failover.
        asyncpg.ReadOnlySQLTransactionError: Reaction.WAIT,  # 25006
        asyncpg.IdleInTransactionSessionTimeoutError: Reaction.WAIT,  # 25P03
        asyncpg.TransactionTimeoutError: Reaction.WAIT,  # 25P04
        asyncpg.TransactionRollbackError: Reaction.WAIT,  # 40: run again at once first, see AGAIN
        asyncpg.InvalidCachedStatementError: Reaction.WAIT,  # the same
        asyncpg.InsufficientPrivilegeError: Reaction.WAIT,  # 42501: an operator can grant it
        asyncpg.LockNotAvailableError: Reaction.WAIT,  # 55P03
        asyncpg.ObjectInUseError: Reaction.WAIT,  # 55006
        asyncpg.SnapshotTooOldError: Reaction.WAIT,  # 72000
        # The data cannot be stored.
        asyncpg.DataError: Reaction.REFUSE,  # 22
        asyncpg.IntegrityConstraintViolationError: Reaction.REFUSE,  # 23
        asyncpg.ProgramLimitExceededError: Reaction.REFUSE,  # 54: a row or an index entry that is too large
        client_errors.DataError: Reaction.REFUSE,
        # Wrong statements, wrong calls.
        asyncpg.InterfaceError: Reaction.FATAL,
    }
)
"""Exception class of asyncpg → reaction."""

AGAIN: Final = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.InvalidCachedStatementError,
    asyncpg.OutdatedSchemaCacheError,
)
"""PostgreSQL rolled back; the transaction is retried. The last two occur after a migration during operation."""

UNCERTAIN: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InternalClientError,
    OSError,
)
"""After one of these during a COMMIT it is unknown whether the transaction was committed."""

CLOSING: Final = (asyncpg.ReadOnlySQLTransactionError,)
"""After one of these the connection is closed: the next one may lead to another server."""

DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""All errors of asyncpg; a ``TimeoutError`` is an ``OSError``."""


def translated(error: Exception) -> Exception:
    """The domain error of an error of asyncpg; other errors are returned unchanged."""
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return from_postgres(error)
    if isinstance(error, UnicodeEncodeError):
        return InvalidInput(f"A value that the database cannot hold: {error}.")
    if not isinstance(error, DRIVER_ERRORS):
        return error
    return of_database(reaction_to(error, REACTIONS), "PostgreSQL", str(error).rstrip(".") or type(error).__name__)
