"""The server with its pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.asgi_app import AsgiApp, make_app
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness


@pytest.fixture
async def pages(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    """The application with its pages, on SQLite."""
    async with make_app(sqlite_store, tmp_path) as api:
        add_pages(api.app, api.services)
        yield api
