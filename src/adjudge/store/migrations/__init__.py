"""Schema migrations: upgrade a database of an earlier version to the schema of this version, and back.

Alembic orders the migrations and stores the revision of a database. Every migration runs in a transaction on both
databases, so one that fails or is killed leaves the schema unchanged. A lock makes it safe to start several servers
at once. Revision 0001 is the baseline; databases of development versions from before it are rejected (decision 0072).

Nearly every start finds an up-to-date database. Its revision shows that, so Alembic, whose import takes longer than
most commands run, is imported only when there is something to migrate.
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

VERSIONS = Path(__file__).parent / "versions"
"""Directory of the migrations; files are named after their revisions."""

_REVISION: Final = "SELECT max(version_num) FROM alembic_version"
_BASELINE_REVISION: Final = f"{_REVISION} WHERE NOT EXISTS (SELECT 1 FROM metric_samples WHERE 1 = 0)"
"""The revision of a database that has the baseline; fails if ``metric_samples``, one of its tables, is missing."""


async def upgrade(url: str, revision: str = "head") -> None:
    """Upgrade the database at ``url`` to ``revision``; reject one that a newer version has migrated."""
    found = await current(url)
    if revision == "head" and found == latest_revision():
        return
    if found is not None and found > latest_revision():
        raise Conflict(
            f"database_url: the database is at schema revision {found}, newer than this version "
            f"supports ({latest_revision()}). Upgrade Adjudge, or restore the backup from before the "
            "upgrade.",
            field="database_url",
        )
    from adjudge.store.migrations import runner  # noqa: PLC0415  # see above

    await runner.upgrade(url, revision)


async def downgrade(url: str, revision: str = "base") -> None:
    """Downgrade the database at ``url`` to ``revision``; ``base`` drops all tables."""
    from adjudge.store.migrations import runner  # noqa: PLC0415  # see above

    await runner.downgrade(url, revision)


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """One migration: its revision and the first line of its docstring."""

    revision: str
    title: str


def steps() -> list[MigrationStep]:
    """All migrations of this version, oldest first."""
    return [MigrationStep(_revision_of(path), _title(path)) for path in _files()]


def latest_revision() -> str:
    """The revision of a database of this version."""
    return max(map(_revision_of, _files()))


def _files() -> list[Path]:
    return sorted(VERSIONS.glob("[0-9]*.py"))


def _revision_of(path: Path) -> str:
    return path.name.partition("_")[0]


def _title(path: Path) -> str:
    """The title, read without importing the file, which would import Alembic."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or path.stem).partition("\n")[0]


async def current(url: str) -> str | None:
    """The revision of the database at ``url``; None if it has no schema."""
    if url.startswith("sqlite:"):
        return await asyncio.to_thread(_sqlite_revision, url.removeprefix("sqlite:///"))
    return await _postgres_revision(url)


async def _postgres_revision(url: str) -> str | None:
    import asyncpg  # noqa: PLC0415  # only where it is chosen

    from adjudge.store.engine.postgres_pool import TIMEOUT_SEC, connect  # noqa: PLC0415  # as above

    async def fetch(query: str) -> Any:
        try:
            return await connection.fetchval(query)
        except asyncpg.UndefinedTableError:
            return None

    connection = await connect(url)
    try:
        async with asyncio.timeout(TIMEOUT_SEC):
            found = await fetch(_BASELINE_REVISION)
            if found is None and (old := await fetch(_REVISION)) is not None:
                raise _before_baseline(old)
            return None if found is None else str(found)
    except TimeoutError as error:
        raise Unavailable("PostgreSQL does not answer. Check ADJUDGE_DATABASE_URL and the server.") from error
    finally:
        connection.terminate()  # there is no transaction to end, and a server that does not answer is not waited for


def _sqlite_revision(path: str) -> str | None:
    """The same for SQLite. Must not create the file: that is left to the migration."""

    def fetch(query: str) -> Any:
        try:
            with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=rw", uri=True)) as connection:
                row = connection.execute(query).fetchone()
                return row and row[0]
        except sqlite3.Error:
            return None  # no file, no such table, or an error that the migration will report

    found = fetch(_BASELINE_REVISION)
    if found is None and (old := fetch(_REVISION)) is not None:
        raise _before_baseline(old)
    return None if found is None else str(found)


def _before_baseline(revision: object) -> Conflict:
    """The error for a database that has a revision, but not the tables of the baseline."""
    return Conflict(
        f"database_url: the database was created by a development version from before the first release (revision "
        f"{revision}) and cannot be upgraded. Use a new, empty database: delete the SQLite file, or drop and create "
        "the PostgreSQL database again.",
        field="database_url",
    )
