"""Fresh PostgreSQL databases for tests, cloned from a template that is migrated once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from typing import Any, TypeVar

import asyncpg

from adjudge.store import migrations
from tests.support.servers import PostgresServer

T = TypeVar("T")


class PostgresDatabases:
    """Clones of one migrated template, numbered."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._numbers = count(1)

    @cached_property
    def _template(self) -> str:
        """The name of the template, which is created on first use."""
        name = "adjudge_template"
        run_in_thread(self._execute(f"CREATE DATABASE {name}"))
        run_in_thread(migrations.upgrade(self._server.url(name)))
        return name

    def create(self, *, empty: bool = False) -> str:
        """Create a database and return its name."""
        name = f"adjudge_test_{next(self._numbers)}"
        run_in_thread(self._execute(f"CREATE DATABASE {name} TEMPLATE {'template0' if empty else self._template}"))
        return name

    def url(self, name: str) -> str:
        """The URL of a cloned database."""
        return self._server.url(name)

    def drop(self, name: str) -> None:
        """Remove a database, even under connections that a test left open."""
        run_in_thread(self._execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))

    @contextmanager
    def fresh(self, *, empty: bool = False) -> Iterator[str]:
        """Create a database for the block and yield its URL; ``empty``: without the schema, for migration tests."""
        name = self.create(empty=empty)
        try:
            yield self._server.url(name)
        finally:
            self.drop(name)

    async def _execute(self, statement: str) -> None:
        connection = await asyncpg.connect(self._server.url())
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


def run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a new event loop in a new thread, so that sync and async tests can call it."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
