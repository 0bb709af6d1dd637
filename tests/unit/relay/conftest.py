"""These tests run on SQLite."""

from tests.support.store_fixtures import sqlite_store, sqlite_template, sqlite_url

__all__ = ["sqlite_store", "sqlite_template", "sqlite_url"]
