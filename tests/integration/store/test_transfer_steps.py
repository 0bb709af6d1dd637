"""Steps of a transfer: equal digests of both databases, and what an unfinished one is continued from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from adjudge.domain.errors import Conflict
from adjudge.domain.ids import new_id
from adjudge.store import Tx, migrations, open_database
from adjudge.store.accounts import users
from adjudge.store.engine.connect import sqlite_path
from adjudge.store.engine.statement import Statement
from adjudge.store.ops.installation import installation_id
from adjudge.store.transfer.row_digest import TABLES, TableColumns, TableDigest
from adjudge.store.transfer.source import TransferSource, fingerprint
from adjudge.store.transfer.target import TransferTarget
from tests.support.databases import PostgresDatabases

USERS = next(table for table in TABLES if table.name == "users")
AUDIT = next(table for table in TABLES if table.name == "audit_log")


@pytest.fixture
def target_url(postgres_databases: PostgresDatabases) -> Iterator[str]:
    with postgres_databases.fresh(empty=True) as url:
        yield url


async def _add_users(url: str, *names: str) -> None:
    async def add(tx: Tx) -> None:
        for name in names:
            await users.insert(tx, users.NewUser(new_id(), name))

    async with open_database(url) as database:
        await database.transact(add)
        await installation_id(database)


def _path(url: str) -> Path:
    path = sqlite_path(url)
    assert path is not None
    return path


async def _begin(target: TransferTarget, source: TransferSource) -> bool:
    return await target.begin(source.installation_id(), fingerprint(source.digests()))


async def test_unfinished_transfer_continues_unless_the_source_has_changed(sqlite_url: str, target_url: str) -> None:
    await _add_users(sqlite_url, "anna", "bela", "cleo")
    async with TransferTarget.open(target_url) as target:
        with TransferSource.open(_path(sqlite_url)) as source:
            assert not await _begin(target, source)
            rows, position = source.page(USERS, -1, 2)
            await target.append(USERS, rows, position)
        with TransferSource.open(_path(sqlite_url)) as source:
            assert await _begin(target, source)
            assert await target.positions() == {"users": (position, 2)}
        await _add_users(sqlite_url, "dora")
        with TransferSource.open(_path(sqlite_url)) as source:
            assert not await _begin(target, source)
            assert await target.positions() == {}
            assert (await target.digest(USERS)).rows == 0


async def test_unfinished_transfer_of_another_installation_is_refused(
    sqlite_url: str, tmp_path: Path, target_url: str
) -> None:
    other = f"sqlite:///{tmp_path / 'other.db'}"
    await _add_users(sqlite_url, "anna")
    await _add_users(other, "anna")
    async with TransferTarget.open(target_url) as target:
        with TransferSource.open(_path(sqlite_url)) as source:
            await _begin(target, source)
        with TransferSource.open(_path(other)) as source, pytest.raises(Conflict, match="another installation"):
            await _begin(target, source)
        with pytest.raises(Conflict, match="Another transfer"):
            async with TransferTarget.open(target_url):
                pass


async def test_no_role_opens_the_target_of_an_unfinished_transfer(sqlite_url: str, target_url: str) -> None:
    await _add_users(sqlite_url, "anna")
    async with TransferTarget.open(target_url) as target:
        with TransferSource.open(_path(sqlite_url)) as source:
            await _begin(target, source)
        with pytest.raises(Conflict, match="adjudge transfer"):
            async with open_database(target_url):
                pass
        await target.finish()
    assert await migrations.current(target_url) == migrations.latest_revision()


async def test_digests_do_not_depend_on_the_form_of_json(sqlite_url: str, target_url: str) -> None:
    """``jsonb`` orders keys and rewrites numbers; SQLite keeps the text, but stores that of a number as a number."""
    documents = ['{"b": 1.50, "a": [1e2, -0.0, null, true]}', '"text"', "12", "1.0", "{}", "null"]
    insert = Statement(
        "test.audit",
        "Used by a test.",
        "INSERT INTO audit_log (at, actor, action, object_kind, object_id, details) "
        "VALUES (1, 'a', 'b', 'c', 'd', :document)",
    )
    async with open_database(sqlite_url) as database:
        for document in documents:
            await database.transact(lambda tx, it=document: tx.execute(insert, document=it))  # type: ignore[misc]
    with TransferSource.open(_path(sqlite_url)) as source:
        async with TransferTarget.open(target_url) as target:
            await _begin(target, source)
            rows, position = source.page(AUDIT, -1, 100)
            await target.append(AUDIT, rows, position)
            assert str(await target.digest(AUDIT)) == str(source.digests()["audit_log"])
            await target.finish()
    connection = await asyncpg.connect(target_url)
    kept = [json.loads(row[0]) for row in await connection.fetch("SELECT details FROM audit_log ORDER BY id")]
    assert kept == [json.loads(document) for document in documents]
    assert await connection.fetchval("SELECT nextval(pg_get_serial_sequence('audit_log', 'id'))") == len(documents) + 1
    await connection.close()


def test_digest_differs_if_a_value_differs() -> None:
    table = TableColumns("t", ("a", "b"), frozenset(), frozenset(), frozenset({1}))

    def digest(*rows: tuple[object, ...]) -> str:
        found = TableDigest()
        found.add(table, rows)
        return str(found)

    rows: list[tuple[object, ...]] = [("x", '{"n": 1}'), ("y", None), (None, "null")]
    assert digest(*rows) == digest(*reversed(rows))
    changed = [("x", '{"n": 2}'), ("x", '{"n": "1"}'), ("x ", '{"n": 1}')]
    assert len({digest(*rows), digest(*rows[1:]), *(digest(row, *rows[1:]) for row in changed)}) == 5
    assert digest(("y", None)) != digest(("y", "null"))
