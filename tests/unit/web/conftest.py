"""The server with its pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.api import Api, make_api
from tests.support.app import add_pages
from tests.support.stores import Store


@pytest.fixture
async def pages(sqlite_store: Store, tmp_path: Path) -> AsyncIterator[Api]:
    """The application with its pages, on SQLite."""
    async with make_api(sqlite_store, tmp_path) as api:
        add_pages(api.app, api.parts)
        yield api
