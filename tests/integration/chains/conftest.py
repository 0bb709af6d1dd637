"""A chain engine on both databases."""

from __future__ import annotations

import pytest

from tests.integration.chains.harness import Rig
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
def rig(store: Store) -> Rig:
    """An engine on each database in turn."""
    return Rig(store)
