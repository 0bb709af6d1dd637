"""Migrations: how a database of any earlier version becomes one of this version, and back.

Alembic keeps the order and the mark of where a database stands. Every step runs in a transaction, on both databases,
so a migration that fails or is killed leaves the schema as it was. Starting several servers at once is safe: they take
turns by a lock.

Nearly every start finds a database that is up to date. Its mark alone says so, and Alembic, which takes longer to
import than most commands run, is left out.
"""

from __future__ import annotations

import ast
import asyncio
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from adjudge.domain.errors import Conflict, Unavailable

_MARK: Final = "SELECT max(version_num) FROM alembic_version"


async def upgrade(url: str, revision: str = "head") -> None:
    """Bring the database at ``url`` up to ``revision``; one that a newer version made is left alone."""
    mark = await _mark(url)
    if revision == "head" and mark == latest_revision():
        return
    if mark is not None and mark > latest_revision():
        raise Conflict(
            f"database_url: the database is at schema revision {mark}, newer than this version "
            f"supports ({latest_revision()}). Upgrade Adjudge, or restore the backup from before the "
            "upgrade.",
            field="database_url",
        )
    from adjudge.store.migrations import runner  # noqa: PLC0415  # see above

    await runner.upgrade(url, revision)


async def downgrade(url: str, revision: str = "base") -> None:
    """Take the database at ``url`` back to ``revision``; ``base`` is before the first step, with no table left."""
    from adjudge.store.migrations import runner  # noqa: PLC0415  # see above

    await runner.downgrade(url, revision)


@dataclass(frozen=True, slots=True)
class Step:
    """One migration: its revision and the first line of what it says of itself."""

    revision: str
    title: str


def steps() -> list[Step]:
    """Every migration that this version knows, oldest first."""
    return [
        Step(path.name.partition("_")[0], _title(path))
        for path in sorted((Path(__file__).parent / "versions").glob("[0-9]*.py"))
    ]


def _title(path: Path) -> str:
    """Read without importing: Alembic is left out."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or path.stem).partition("\n")[0]


def latest_revision() -> str:
    """What a database of this version is marked with: files are named after their revisions, and those are counted."""
    return max(path.name.partition("_")[0] for path in (Path(__file__).parent / "versions").glob("[0-9]*.py"))


async def current(url: str) -> str | None:
    """The revision that the database at ``url`` is at; None for one without our schema."""
    mark = await _mark(url)
    return None if mark is None else str(mark)


async def _mark(url: str) -> Any:
    """What the database is marked with; nothing where it has none."""
    if url.startswith("sqlite:"):
        return await asyncio.to_thread(_sqlite_mark, url.removeprefix("sqlite:///"))
    return await _postgres_mark(url)


async def _postgres_mark(url: str) -> Any:
    import asyncpg  # noqa: PLC0415  # only where it is chosen

    from adjudge.store.engine.postgres_pool import TIMEOUT_SEC, connect  # noqa: PLC0415  # as above

    connection = await connect(url)
    try:
        async with asyncio.timeout(TIMEOUT_SEC):
            return await connection.fetchval(_MARK)
    except asyncpg.UndefinedTableError:
        return None
    except TimeoutError as error:
        raise Unavailable("PostgreSQL does not answer. Check ADJUDGE_DATABASE_URL and the server.") from error
    finally:
        connection.terminate()  # nothing was begun, and whoever does not answer is not waited for again


def _sqlite_mark(path: str) -> Any:
    """Looking must not make a file: what migrating starts with is its own business."""
    try:
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=rw", uri=True)) as connection:
            row = connection.execute(_MARK).fetchone()
            return row and row[0]
    except sqlite3.Error:
        return None  # there is no file, no mark, or something wrong that migrating will name
