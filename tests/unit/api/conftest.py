"""A server on SQLite, and on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.api import Api, make_api
from tests.support.store_fixtures import (
    postgres_store,
    postgres_url,
    shared_postgres_url,
    sqlite_store,
    sqlite_template,
    sqlite_url,
    store,
    store_url,
)
from tests.support.stores import Store

__all__ = [
    "postgres_store",
    "postgres_url",
    "shared_postgres_url",
    "sqlite_store",
    "sqlite_template",
    "sqlite_url",
    "store",
    "store_url",
]


@pytest.fixture
async def api(sqlite_store: Store, tmp_path: Path) -> AsyncIterator[Api]:  # pytest's way
    """The application on SQLite."""
    async with make_api(sqlite_store, tmp_path) as api:
        yield api


@pytest.fixture
async def api_on_both(store: Store, tmp_path: Path) -> AsyncIterator[Api]:  # pytest's way
    """The application on each database in turn."""
    async with make_api(store, tmp_path) as api:
        yield api
