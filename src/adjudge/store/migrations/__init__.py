"""Migrations: how a database of any earlier version becomes one of this version, and back.

Alembic keeps the order and the mark of where a database stands. Every step runs in a transaction, on both databases,
so a migration that fails or is killed leaves the schema as it was. Starting several servers at once is safe: they take
turns by a lock.

Nearly every start finds a database that is up to date. Its mark alone says so, and Alembic, which takes longer to
import than most commands run, is left out.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from adjudge.domain.errors import Conflict

_MARK: Final = "SELECT max(version_num) FROM alembic_version"


async def upgrade(url: str, revision: str = "head") -> None:
    """Bring the database at ``url`` up to ``revision``; one that a newer version made is left alone."""
    mark = await _mark(url)
    if revision == "head" and mark == newest():
        return
    if mark is not None and mark > newest():
        raise Conflict(
            f"database_url: that database is at schema {mark}, and this Adjudge knows {newest()} at most: "
            "a newer one has used it. Run that version, or restore the copy from before the upgrade.",
            field="database_url",
        )
    from adjudge.store.migrations import running  # noqa: PLC0415  # see above

    await running.upgrade(url, revision)


async def downgrade(url: str, revision: str = "base") -> None:
    """Take the database at ``url`` back to ``revision``."""
    from adjudge.store.migrations import running  # noqa: PLC0415  # see above

    await running.downgrade(url, revision)


def newest() -> str:
    """What a database of this version is marked with: files are named after their revisions, and those are counted."""
    return max(path.name.partition("_")[0] for path in (Path(__file__).parent / "versions").glob("[0-9]*.py"))


async def _mark(url: str) -> Any:
    """What the database is marked with; nothing where it has none."""
    if url.startswith("sqlite:"):
        return await asyncio.to_thread(_sqlite_mark, url.removeprefix("sqlite:///"))
    return await _postgres_mark(url)


async def _postgres_mark(url: str) -> Any:
    import asyncpg  # noqa: PLC0415  # only where it is chosen

    from adjudge.store.postgres_connections import connect  # noqa: PLC0415  # as above

    connection = await connect(url)
    try:
        return await connection.fetchval(_MARK)
    except asyncpg.UndefinedTableError:
        return None
    finally:
        await connection.close()


def _sqlite_mark(path: str) -> Any:
    """Looking must not make a file: what migrating starts with is its own business."""
    try:
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=rw", uri=True)) as connection:
            row = connection.execute(_MARK).fetchone()
            return row and row[0]
    except sqlite3.Error:
        return None  # there is no file, no mark, or something wrong that migrating will name
