"""Migrations produce the schema of this version, can be undone, and are safe to start concurrently."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from adjudge.domain.errors import Conflict
from adjudge.store import Tx, migrations, open_database, schema
from adjudge.store.engine.connect import ping, sqlite_path
from adjudge.store.engine.statement import Statement
from adjudge.store.migrations import runner
from tests.integration.store import schema_introspection
from tests.integration.store.schema_introspection import Catalogue
from tests.support.databases import PostgresDatabases
from tests.support.migrations import EXTRA_REVISION, add_extra_migration


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without any schema, on each in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    databases: PostgresDatabases = request.getfixturevalue("postgres_databases")
    with databases.fresh(empty=True) as url:
        yield url


def revisions() -> list[str]:
    """From the first to the newest."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(migrations.VERSIONS))
    return [script.revision for script in reversed(list(ScriptDirectory.from_config(config).walk_revisions()))]


async def look(url: str) -> Catalogue:
    path = sqlite_path(url)
    return schema_introspection.of_sqlite(path) if path is not None else await schema_introspection.of_postgres(url)


async def create_afresh(url: str) -> None:
    if url.startswith("sqlite:"):
        engine = create_engine(url)
        with engine.begin() as connection:
            schema.create(connection)
        engine.dispose()
        return
    async_engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    async with async_engine.begin() as async_connection:
        await async_connection.run_sync(schema.create)
    await async_engine.dispose()


def nothing(found: Catalogue) -> bool:
    return not any(found.values())


async def test_the_migrated_schema_is_the_fresh_one(empty_url: str, tmp_path: Path) -> None:
    await create_afresh(empty_url)
    fresh = await look(empty_url)
    assert len(fresh["columns"]) > 200
    if empty_url.startswith("sqlite:"):
        other = f"sqlite:///{tmp_path / 'migrated.db'}"
    else:
        await drop_everything(empty_url)
        other = empty_url
    await migrations.upgrade(other)
    assert await look(other) == fresh


async def drop_everything(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    await connection.close()


async def test_each_step_goes_up_and_down_and_up_again(
    empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_extra_migration(tmp_path / "versions", monkeypatch)
    steps = revisions()
    assert steps[0] == "0001"
    assert steps[-1] == EXTRA_REVISION
    seen = []
    for revision in steps:
        await migrations.upgrade(empty_url, revision)
        seen.append(await look(empty_url))
    for revision, before in zip([*reversed(steps[:-1]), "base"], [*reversed(seen[:-1]), None], strict=True):
        await migrations.downgrade(empty_url, revision)
        found = await look(empty_url)
        assert found == before if before is not None else nothing(found)
    await migrations.upgrade(empty_url)
    assert await look(empty_url) == seen[-1]


async def test_servers_that_start_together_migrate_once(empty_url: str) -> None:
    await asyncio.gather(*(migrations.upgrade(empty_url) for _ in range(4)))
    async with open_database(empty_url) as database:
        await ping(database)


async def test_a_current_database_is_left_alone(empty_url: str) -> None:
    await migrations.upgrade(empty_url)
    before = await look(empty_url)
    await migrations.upgrade(empty_url)
    assert await look(empty_url) == before


async def test_a_current_database_is_known_without_alembic(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await migrations.upgrade(empty_url)
    assert migrations.latest_revision() == revisions()[-1]
    monkeypatch.setitem(sys.modules, "adjudge.store.migrations.runner", None)
    monkeypatch.delattr(migrations, "runner")
    await migrations.upgrade(empty_url)
    with pytest.raises(ImportError):
        await migrations.downgrade(empty_url)


NEWER = Statement(
    "test.newer", "Mark the database as a later version would.", "UPDATE alembic_version SET version_num = '9999'"
)


async def test_a_database_of_a_newer_version_is_refused_and_left_alone(empty_url: str) -> None:
    async with open_database(empty_url) as database:
        await database.transact(lambda tx: tx.execute(NEWER))
    before = await look(empty_url)
    with pytest.raises(Conflict, match=f"revision 9999, newer than this version supports .{revisions()[-1]}"):
        async with open_database(empty_url):
            pass
    assert await look(empty_url) == before


CREATE_OLD_SCHEMA = (
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)",
    "INSERT INTO alembic_version VALUES ('{revision}')",
)


@pytest.mark.parametrize("revision", ["0001", "0022"])
async def test_database_from_before_the_baseline_is_rejected(empty_url: str, revision: str) -> None:
    async with open_database(empty_url, migrate=False) as database:
        for number, text in enumerate(CREATE_OLD_SCHEMA):
            statement = Statement(f"test.old_{number}", "Create a schema.", text.format(revision=revision))
            await database.transact(partial(_execute, statement))
    before = await look(empty_url)
    for attempt in (migrations.upgrade, migrations.current):
        with pytest.raises(Conflict, match=rf"revision {revision}\) and cannot be upgraded. Use a new, empty database"):
            await attempt(empty_url)
    assert await look(empty_url) == before


async def _execute(statement: Statement, tx: Tx) -> None:
    await tx.execute(statement)


async def test_a_database_downgraded_to_base_can_be_upgraded_again(empty_url: str) -> None:
    await migrations.upgrade(empty_url)
    await migrations.downgrade(empty_url)
    assert await migrations.current(empty_url) is None
    await migrations.upgrade(empty_url)
    assert await migrations.current(empty_url) == migrations.latest_revision()


async def test_database_that_is_migrated_during_the_check_is_not_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several servers that start on an empty database, one may create the schema while another looks at it."""
    url, connect = f"sqlite:///{tmp_path / 'empty.db'}", sqlite3.connect
    looked: list[str] = []

    def connect_slowly(*args: Any, **options: Any) -> sqlite3.Connection:
        if looked:
            monkeypatch.setattr(sqlite3, "connect", connect)
            runner._run_sqlite(url, command.upgrade, "head")
        looked.append(str(args[0]))
        opened: sqlite3.Connection = connect(*args, **options)
        return opened

    monkeypatch.setattr(sqlite3, "connect", connect_slowly)
    assert await migrations.current(url) in (None, migrations.latest_revision())
