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
from typing import Final

from adjudge.domain.errors import Conflict, Unavailable

VERSIONS = Path(__file__).parent / "versions"
"""Directory of the migrations; files are named after their revisions."""

UNFINISHED_TRANSFER: Final = "unfinished transfer"
"""The revision of a database that ``adjudge transfer`` has not filled completely."""

_REVISION: Final = "SELECT max(version_num), {has_baseline} FROM alembic_version"
"""The revision, and whether there is ``metric_samples``, a table of the baseline.

One query, because another server may create the schema between two.
"""
_POSTGRES_REVISION: Final = _REVISION.format(has_baseline="to_regclass('metric_samples') IS NOT NULL")
_SQLITE_REVISION: Final = _REVISION.format(
    has_baseline="EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'metric_samples')"
)


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
    """The revision of the database at ``url``; None if it has no schema. An unfinished transfer is rejected."""
    found = await find_revision(url)
    if found == UNFINISHED_TRANSFER:
        raise Conflict(
            "database_url: a transfer to this database is unfinished: run `adjudge transfer` again to complete it.",
            field="database_url",
        )
    return found


async def find_revision(url: str) -> str | None:
    """The revision of the database at ``url``, whatever it is; None if it has no schema."""
    if url.startswith("sqlite:"):
        return await asyncio.to_thread(_sqlite_revision, url.removeprefix("sqlite:///"))
    return await _postgres_revision(url)


async def _postgres_revision(url: str) -> str | None:
    import asyncpg  # noqa: PLC0415  # only where it is chosen

    from adjudge.store.engine.postgres_pool import TIMEOUT_SEC, connect  # noqa: PLC0415  # as above

    connection = await connect(url)
    try:
        async with asyncio.timeout(TIMEOUT_SEC):
            (row,) = await connection.fetch(_POSTGRES_REVISION)
            return _checked(*row)
    except asyncpg.UndefinedTableError:
        return None
    except TimeoutError as error:
        raise Unavailable("PostgreSQL does not answer. Check ADJUDGE_DATABASE_URL and the server.") from error
    finally:
        connection.terminate()  # there is no transaction to end, and a server that does not answer is not waited for


def _sqlite_revision(path: str) -> str | None:
    """The same for SQLite. Must not create the file: that is left to the migration."""
    try:
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=rw", uri=True)) as connection:
            row = connection.execute(_SQLITE_REVISION).fetchone()
    except sqlite3.Error:
        return None  # no file, no such table, or an error that the migration will report
    return _checked(*row)


def _checked(revision: str | None, has_baseline: object) -> str | None:
    """The revision; an error for one from before the baseline."""
    if revision is None or has_baseline:
        return revision
    raise Conflict(
        f"database_url: the database was created by a development version from before the first release (revision "
        f"{revision}) and cannot be upgraded. Use a new, empty database: delete the SQLite file, or drop and create "
        "the PostgreSQL database again.",
        field="database_url",
    )
