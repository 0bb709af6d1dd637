"""Runs migrations with Alembic. A separate module, because importing Alembic and SQLAlchemy is slow."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from adjudge.domain.errors import Unavailable
from adjudge.store import migrations
from adjudge.store.engine.postgres_pool import connect
from adjudge.store.engine.sqlite import BUSY_TIMEOUT_SEC, enable_wal

_LOCK = 0x61646A75646765
"""Key of the advisory lock in PostgreSQL: 'adjudge' in ASCII."""


async def upgrade(url: str, revision: str) -> None:
    await _run(url, command.upgrade, revision)


async def downgrade(url: str, revision: str) -> None:
    await _run(url, command.downgrade, revision)


async def _run(url: str, step: Any, revision: str) -> None:
    if url.startswith("sqlite:"):
        await asyncio.to_thread(_run_sqlite, url, step, revision)
    else:
        await _run_postgres(url, step, revision)


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", _escaped(Path(__file__).parent))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", _escaped(migrations.VERSIONS))
    config.attributes["connection"] = connection
    return config


def _escaped(path: Path) -> str:
    return str(path).replace("%", "%%")


def _run_sqlite(url: str, step: Any, revision: str) -> None:
    engine = create_engine(url, poolclass=NullPool)

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: object) -> None:
        connection.isolation_level = None  # explicit BEGIN below, so that DDL is part of the transaction
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_SEC * 1000}")
        enable_wal(connection)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    try:
        opened = engine.connect()
    except DatabaseError as error:
        raise Unavailable(f"Cannot open the database file {engine.url.database}: {error.orig}.") from error
    with opened as connection, connection.begin():
        step(_config(connection), revision)
    engine.dispose()


async def _run_postgres(url: str, step: Any, revision: str) -> None:
    # SQLAlchemy cannot parse a URL with several hosts.
    engine = create_async_engine("postgresql+asyncpg://", async_creator=partial(connect, url), poolclass=NullPool)
    async with engine.begin() as connection:
        await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        await connection.run_sync(lambda plain: step(_config(plain), revision))
    await engine.dispose()
