"""Whole SQLite files: consistent copies while other processes write, integrity checks, and exclusive use."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from adjudge.domain.errors import Conflict, Unavailable
from adjudge.store.engine.sqlite import BUSY_TIMEOUT_SEC

_FOREIGN_KEYS_SHOWN = 3


def copy_consistently(source: Path, target: Path) -> None:
    """Copy a database as it is at one point in time after the call, with SQLite's backup API.

    The pages are copied in one step: it reads one snapshot, which writers do not disturb and which does not block them.
    In several steps, the copy would start again after each write of another process.
    """
    url = f"{source.absolute().as_uri()}?mode=rw"
    try:
        with (
            closing(sqlite3.connect(url, uri=True, timeout=BUSY_TIMEOUT_SEC)) as old,
            closing(sqlite3.connect(target)) as new,
        ):
            old.backup(new, pages=-1)
    except sqlite3.Error as error:
        raise Unavailable(f"Cannot copy the database {source} to {target}: {error}.") from error


def find_damage(path: Path) -> str | None:
    """What is wrong with a database file; None if its pages, indexes and references are intact."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
            (result,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if result != "ok":
                return str(result)
            dangling = connection.execute("PRAGMA foreign_key_check").fetchmany(_FOREIGN_KEYS_SHOWN)
    except sqlite3.Error as error:
        return str(error)
    if dangling:
        return "rows without the rows that they refer to: " + ", ".join(f"{row[0]} → {row[2]}" for row in dangling)
    return None


@contextmanager
def exclusively(path: Path) -> Iterator[sqlite3.Connection]:
    """Hold a database for the block, so that no other process can open it; refuse one that a process uses.

    The file then contains everything: there is no write-ahead log beside it.
    """
    with closing(sqlite3.connect(path, isolation_level=None, timeout=1, check_same_thread=False)) as connection:
        try:
            # Leaving the write-ahead log takes the lock that every other connection shares as long as it is open.
            connection.execute("PRAGMA journal_mode=DELETE").close()
            connection.execute("PRAGMA locking_mode=EXCLUSIVE").close()
            connection.execute("BEGIN EXCLUSIVE").close()
            connection.execute("COMMIT").close()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise Conflict(f"The database {path} is in use: stop Adjudge first.") from error
            raise Unavailable(f"Cannot use the database {path}: {error}.") from error
        except sqlite3.Error as error:
            raise Unavailable(f"Cannot use the database {path}: {error}.") from error
        yield connection
