"""These tests run on both databases."""

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
