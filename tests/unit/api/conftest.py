"""A server on SQLite, and on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.asgi_app import AsgiApp, make_app
from tests.support.store_harness import StoreHarness


@pytest.fixture
async def api(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    """The application on SQLite."""
    async with make_app(sqlite_store, tmp_path) as api:
        yield api


@pytest.fixture
async def api_on_both(store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    """The application on each database in turn."""
    async with make_app(store, tmp_path) as api:
        yield api
