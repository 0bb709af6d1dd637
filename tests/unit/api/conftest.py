"""A server on SQLite, and on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.api import Api, make_api
from tests.support.stores import Store


@pytest.fixture
async def api(sqlite_store: Store, tmp_path: Path) -> AsyncIterator[Api]:
    """The application on SQLite."""
    async with make_api(sqlite_store, tmp_path) as api:
        yield api


@pytest.fixture
async def api_on_both(store: Store, tmp_path: Path) -> AsyncIterator[Api]:
    """The application on each database in turn."""
    async with make_api(store, tmp_path) as api:
        yield api
