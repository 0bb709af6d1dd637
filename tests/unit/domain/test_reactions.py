"""Every exception class of every driver has a chosen reaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import asyncpg
import httpx
import pytest
from asyncpg import exceptions as asyncpg_errors
from obstore import exceptions as obstore_errors
from redis import exceptions as redis_errors
from redis._parsers.base import BaseParser

from adjudge.blobs import s3_failures
from adjudge.domain.errors import AdjudgeError, InternalFault, InvalidInput, NotFound, Unavailable
from adjudge.domain.reactions import Reaction, Reactions, reaction_to
from adjudge.registry import http_failures
from adjudge.store.engine import postgres_errors, sqlite_errors
from adjudge.stream import failures as redis_failures

WAIT, REFUSE, FATAL = Reaction.WAIT, Reaction.REFUSE, Reaction.FATAL


def classes(module: Any, base: type[BaseException]) -> list[type[BaseException]]:
    found = [item for item in vars(module).values() if isinstance(item, type) and issubclass(item, base)]
    return sorted(set(found), key=lambda item: item.__name__)


DRIVERS: dict[str, tuple[Reactions, list[type[BaseException]]]] = {
    "redis": (redis_failures.REACTIONS, classes(redis_errors, redis_errors.RedisError)),
    "asyncpg": (
        postgres_errors.REACTIONS,
        [
            item
            for item in classes(asyncpg_errors, Exception)
            if not issubclass(item, asyncpg.PostgresLogMessage | asyncpg.InterfaceWarning)  # notices, never raised
        ],
    ),
    "sqlite3": (sqlite_errors.REACTIONS, classes(sqlite3, Exception)),
    "obstore": (s3_failures.REACTIONS, classes(obstore_errors, Exception)),
    "httpx": (http_failures.REACTIONS, classes(httpx, Exception)),
}


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_driver_exception_has_a_reaction(driver: str) -> None:
    table, found = DRIVERS[driver]
    assert len(found) > 8
    assert [item.__name__ for item in found if not any(base in table for base in item.__mro__)] == []


def expected() -> Iterator[tuple[type[BaseException], Reactions, Reaction]]:
    redis, postgres = redis_failures.REACTIONS, postgres_errors.REACTIONS
    for name in (
        *("ReadOnlyError", "OutOfMemoryError", "MasterDownError", "ClusterDownError", "TryAgainError", "NoScriptError"),
        *("NoPermissionError", "BusyLoadingError", "ConnectionError", "TimeoutError", "AuthenticationError"),
        *("MaxConnectionsError", "MovedError", "InvalidResponse"),
    ):
        yield getattr(redis_errors, name), redis, WAIT
    for name in ("DataError", "ResponseError", "LockError", "PubSubError", "ClusterCrossSlotError"):
        yield getattr(redis_errors, name), redis, FATAL
    for error in asyncpg_errors.__all__:
        kind = getattr(asyncpg_errors, error)
        if issubclass(kind, asyncpg.PostgresError) and kind.sqlstate in BY_STATE:
            yield kind, postgres, BY_STATE[kind.sqlstate]


BY_STATE = {
    **dict.fromkeys(("08000", "08001", "08003", "08004", "08006", "08007", "08P01"), WAIT),  # connections
    "25006": WAIT,  # read-only
    **dict.fromkeys(("25P03", "25P04"), WAIT),
    **dict.fromkeys(("28000", "28P01", "3D000"), WAIT),  # not let in
    **dict.fromkeys(("40000", "40001", "40003", "40P01"), WAIT),  # serialization failure, deadlock
    "42501": WAIT,
    **dict.fromkeys(("53000", "53100", "53200", "53300", "53400"), WAIT),  # too many connections, disk full
    "55P03": WAIT,
    **dict.fromkeys(("57000", "57014", "57P01", "57P02", "57P03", "57P04", "57P05"), WAIT),  # shutdown, starting up
    **dict.fromkeys(("58000", "58030", "XX000", "XX001"), WAIT),
    **dict.fromkeys(("22000", "22001", "22021", "22P02", "23000", "23503", "23505", "23514", "54000"), REFUSE),
    **dict.fromkeys(("0A000", "25001", "25P02", "42601", "42703", "42P01", "42883", "P0001", "26000"), FATAL),
}


def test_reactions_to_important_classes() -> None:
    wrong, seen = [], set()
    for kind, table, reaction in expected():
        seen.add(getattr(kind, "sqlstate", ""))
        if reaction_to(kind, table) is not reaction and kind is not asyncpg.InvalidCachedStatementError:
            wrong.append((kind.__name__, reaction_to(kind, table), reaction))
    assert not wrong
    assert set(BY_STATE) <= seen


@pytest.mark.parametrize(
    ("answer", "ours"),
    [
        ("READONLY You can't write against a read only replica.", Unavailable),
        ("OOM command not allowed when used memory > 'maxmemory'.", Unavailable),
        ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", Unavailable),
        ("CLUSTERDOWN The cluster is down", Unavailable),
        ("TRYAGAIN Multiple keys request during rehashing of slot", Unavailable),
        ("NOPERM User worker has no permissions to run the 'evalsha' command", Unavailable),
        ("NOAUTH Authentication required.", Unavailable),
        ("WRONGPASS invalid username-password pair or user is disabled.", Unavailable),
        ("LOADING Redis is loading the dataset in memory", Unavailable),
        ("BUSY Redis is busy running a script.", Unavailable),
        ("MISCONF Redis is configured to save RDB snapshots", Unavailable),
        ("NOREPLICAS Not enough good replicas to write.", Unavailable),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", Unavailable),
        ("WRONGTYPE Operation against a key script: 5f1, on @user_script:9.", Unavailable),
        ("ERR Error running script (call to f_1): @user_script:5: WRONGTYPE Operation against a key", Unavailable),
        ("ERR Error running script (call to f_1): @user_script:5: -READONLY You can't write", Unavailable),
        ("ERR max number of clients reached", Unavailable),
        ("ERR unknown command 'XAUTOCLAIM', with args beginning with:", InternalFault),
        ("ERR Error compiling script (new function): user_script:1: '=' expected", InternalFault),
        ("CROSSSLOT Keys in request don't hash to the same slot", InternalFault),
    ],
)
def test_redis_errors_have_reactions(answer: str, ours: type[AdjudgeError]) -> None:
    """As redis-py makes an exception of it: the code is in the class or in front of the message, never in both."""
    error = BaseParser.parse_error(answer)  # type: ignore[no-untyped-call]
    assert type(redis_failures.translated(error, "host:6379")) is ours


def test_every_primary_result_code_of_sqlite_has_a_reaction() -> None:
    assert set(sqlite_errors.CODES) == set(range(1, 27))


@pytest.mark.parametrize(
    ("code", "ours"),
    [
        (sqlite3.SQLITE_BUSY, Unavailable),
        (sqlite3.SQLITE_READONLY, Unavailable),
        (sqlite3.SQLITE_IOERR | (10 << 8), Unavailable),
        (sqlite3.SQLITE_TOOBIG, InvalidInput),
        (sqlite3.SQLITE_CORRUPT, InternalFault),
        (sqlite3.SQLITE_ERROR, InternalFault),
    ],
)
def test_sqlite_errors_are_classified_by_code(code: int, ours: type[AdjudgeError]) -> None:
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorcode = code
    assert type(sqlite_errors.translated(error)) is ours


def test_write_in_read_operation_is_internal_fault() -> None:
    error = sqlite3.OperationalError("attempt to write a readonly database")
    error.sqlite_errorcode = sqlite3.SQLITE_READONLY
    assert isinstance(sqlite_errors.translated(error, may_write=False), InternalFault)


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (obstore_errors.GenericError("connect"), Unavailable),
        (obstore_errors.PermissionDeniedError("403"), Unavailable),
        (obstore_errors.NotFoundError("404"), NotFound),
        (obstore_errors.InvalidPathError("//"), InternalFault),
    ],
)
def test_obstore_errors_are_translated_by_class(error: Exception, ours: type[AdjudgeError]) -> None:
    assert type(s3_failures.translated(error, "host/bucket", "ab" * 32)) is ours


def test_unknown_exception_is_fatal() -> None:
    assert reaction_to(KeyError(), redis_failures.REACTIONS) is FATAL
