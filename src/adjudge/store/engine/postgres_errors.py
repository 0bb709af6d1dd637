"""What asyncpg's errors mean: the table of its exception classes, most of which are PostgreSQL's SQLSTATEs."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import asyncpg
from asyncpg.exceptions import _base as client_errors

from adjudge.domain.errors import InvalidInput
from adjudge.domain.reactions import Reaction, Reactions, of_database, reaction_to
from adjudge.store.engine.constraints import from_postgres
from adjudge.store.engine.driver import Unfit

REACTIONS: Final[Reactions] = MappingProxyType(
    {
        asyncpg.PostgresError: Reaction.FATAL,
        # The server is away, starting, stopping, full or broken, or does not let us in.
        asyncpg.PostgresConnectionError: Reaction.WAIT,  # 08
        asyncpg.InvalidAuthorizationSpecificationError: Reaction.WAIT,  # 28: passwords are changed under our feet
        asyncpg.InvalidCatalogNameError: Reaction.WAIT,  # 3D000: a database that is being restored
        asyncpg.InsufficientResourcesError: Reaction.WAIT,  # 53: too many connections, disk full, out of memory
        asyncpg.OperatorInterventionError: Reaction.WAIT,  # 57: shutdown, starting up, statement_timeout
        asyncpg.PostgresSystemError: Reaction.WAIT,  # 58: its disk
        asyncpg.InternalServerError: Reaction.WAIT,  # XX
        asyncpg.ConfigFileError: Reaction.WAIT,  # F0
        asyncpg.FatalPostgresError: Reaction.WAIT,
        asyncpg.InternalClientError: Reaction.WAIT,  # the connection is out of step and is closed
        OSError: Reaction.WAIT,
        # It answers, and cannot do this now. After a failover a standby answers where the primary was.
        asyncpg.ReadOnlySQLTransactionError: Reaction.WAIT,  # 25006
        asyncpg.IdleInTransactionSessionTimeoutError: Reaction.WAIT,  # 25P03
        asyncpg.TransactionTimeoutError: Reaction.WAIT,  # 25P04
        asyncpg.TransactionRollbackError: Reaction.WAIT,  # 40: run again at once first, see AGAIN
        asyncpg.InvalidCachedStatementError: Reaction.WAIT,  # the same
        asyncpg.InsufficientPrivilegeError: Reaction.WAIT,  # 42501: an operator can grant it
        asyncpg.LockNotAvailableError: Reaction.WAIT,  # 55P03
        asyncpg.ObjectInUseError: Reaction.WAIT,  # 55006
        asyncpg.SnapshotTooOldError: Reaction.WAIT,  # 72000
        # What was asked cannot be stored.
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
"""PostgreSQL undid the transaction and asks for it again; the last two after a migration under a running server."""

UNCERTAIN: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InternalClientError,
    OSError,
)
"""After one of these in answer to a COMMIT nobody knows whether it was done."""

DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""Whatever asyncpg raises; a ``TimeoutError`` is an ``OSError``."""


def translated(error: Exception) -> Exception:
    """Our own error for one of asyncpg's; what is none of asyncpg's stays as it is."""
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return from_postgres(error)
    if isinstance(error, asyncpg.DivisionByZeroError):
        return Unfit(str(error))
    if isinstance(error, UnicodeEncodeError):
        return InvalidInput(f"A value that the database cannot hold: {error}.")
    if not isinstance(error, DRIVER_ERRORS):
        return error
    return of_database(reaction_to(error, REACTIONS), "PostgreSQL", str(error).rstrip(".") or type(error).__name__)
