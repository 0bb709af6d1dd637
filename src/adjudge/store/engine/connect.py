"""Opens a database from its URL: connects, and migrates it to the schema of this version.

Only the driver that the URL selects is imported.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from adjudge.domain.errors import InvalidInput, Unavailable
from adjudge.store import migrations
from adjudge.store.engine.driver import Database, Tx, fetch_one
from adjudge.store.engine.statement import Statement

MIN_CONNECTIONS: Final = 2
"""One connection is used for notifications, so statements need another one."""


def sqlite_path(url: str) -> Path | None:
    """The file of a ``sqlite:///`` URL; None for other URLs."""
    prefix = "sqlite:///"
    return Path(url.removeprefix(prefix)) if url.startswith(prefix) else None


@asynccontextmanager
async def open_database(
    url: str,
    *,
    migrate: bool = True,
    sqlite_synchronous: str = "FULL",
    max_connections: int = 16,
    timeout_sec: float = 30.0,
) -> AsyncIterator[Database]:
    """Open ``sqlite:///path`` or ``postgresql://…``; ``migrate`` upgrades its schema first.

    ``timeout_sec`` is the time limit of transactions on PostgreSQL; migrations have none.
    """
    path = sqlite_path(url)
    if path is None and not url.startswith(("postgresql://", "postgres://")):
        raise InvalidInput(
            "database_url: give sqlite:///path/to/file or postgresql://user@host/database.", field="database_url"
        )
    if max_connections < MIN_CONNECTIONS:
        raise InvalidInput(
            f"max_connections: {max_connections} is too few; give at least {MIN_CONNECTIONS}: listening takes one.",
            field="max_connections",
        )
    if path is not None:
        _make_folder(path.parent)
    if migrate:
        await migrations.upgrade(url)
    database: Database
    if path is not None:
        from adjudge.store.engine.sqlite import SqliteDatabase  # noqa: PLC0415  # only where it is chosen

        database = SqliteDatabase(path, synchronous=sqlite_synchronous)
    else:
        from adjudge.store.engine.postgres import PostgresDatabase  # noqa: PLC0415  # as above

        database = await PostgresDatabase.open(url, max_connections=max_connections, timeout_sec=timeout_sec)
    try:
        yield database
    finally:
        await database.close()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(
            f"Cannot create the database directory {folder}: {error.strerror}. Check "
            "ADJUDGE_DATABASE_URL and ADJUDGE_DATA_DIR."
        ) from error


PING: Final = Statement("health.ping", "Check that the database responds.", "SELECT 1 AS answer")


async def ping(database: Database) -> None:
    """Return if the database responds; raise its error otherwise."""

    async def ask(tx: Tx) -> None:
        await fetch_one(tx, PING)

    await database.read(ask)
