"""Fixtures that run a test on both databases; a conftest imports those it wants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.databases import PostgresDatabases, run_in_thread
from tests.support.store_harness import StoreHarness, copied_sqlite, migrated_sqlite, open_store, truncate_all


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file, made once."""
    return migrated_sqlite(tmp_path_factory.mktemp("sqlite-template"))


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """The URL of a migrated file of this test's own."""
    return copied_sqlite(sqlite_template, tmp_path)


@pytest.fixture(scope="session")
def shared_postgres_url(postgres_databases: PostgresDatabases) -> Iterator[str]:
    """One migrated database for all tests that leave it usable: emptying it is far cheaper than cloning another."""
    with postgres_databases.fresh() as url:
        yield url


@pytest.fixture
def postgres_url(shared_postgres_url: str) -> str:
    """The URL of an empty database."""
    run_in_thread(truncate_all(shared_postgres_url))
    return shared_postgres_url


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database of this test's own, on each database in turn."""
    url: str = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    return url


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[StoreHarness]:
    """A store on each database in turn, with an owned clock."""
    async with open_store(store_url) as store:
        yield store


@pytest.fixture
async def sqlite_store(sqlite_url: str) -> AsyncIterator[StoreHarness]:
    """A store on SQLite."""
    async with open_store(sqlite_url) as store:
        yield store


@pytest.fixture
async def postgres_store(postgres_url: str) -> AsyncIterator[StoreHarness]:
    """A store on PostgreSQL."""
    async with open_store(postgres_url) as store:
        yield store
