"""Migrations arrive at the schema that this version means, go back, and are safe to start together."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from adjudge.domain.errors import Conflict
from adjudge.store import Tx, migrations, open_database, schema
from adjudge.store.accounts import users
from adjudge.store.engine.connect import ping, sqlite_path
from adjudge.store.engine.statement import Statement
from adjudge.store.ops import audit_log
from tests.integration.store import schema_introspection
from tests.integration.store.schema_introspection import Catalogue
from tests.support.databases import PostgresDatabases


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


@pytest.mark.slow
async def test_each_step_goes_up_and_down_and_up_again(empty_url: str) -> None:
    steps = revisions()
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


BY_NAME = Statement(
    "test.by_name",
    "Remember an action as it used to be, by whatever its actor was called.",
    """
    INSERT INTO audit_log (actor, action, object_kind, object_id, details, at)
    SELECT given_actor, 'publish', 'problem', 'p', '{}', {now} FROM {given}
    """,
    input_columns={"given_actor": "text"},
)


async def test_who_did_something_before_is_named_by_id_too(empty_url: str) -> None:
    async def remember(tx: Tx) -> None:
        await users.insert(tx, users.NewUser("01a1e326-0b2e-761d-830c-98153bb1c498", "ada"))
        await tx.execute(BY_NAME, [("ada",), ("cli:ada",), ("someone",)])

    await migrations.upgrade(empty_url)
    async with open_database(empty_url) as database:
        await database.transact(remember)
    await migrations.downgrade(empty_url, "0012")
    await migrations.upgrade(empty_url)
    async with open_database(empty_url) as database:
        entries = await database.read(audit_log.page)
    assert [entry.actor for entry in reversed(entries)] == [
        "01a1e326-0b2e-761d-830c-98153bb1c498",
        "cli:ada",
        "someone",
    ]
