"""The source of a transfer: a SQLite database that no other process uses, read table by table."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from adjudge.domain.errors import Unavailable
from adjudge.store.engine.sqlite_file import exclusively
from adjudge.store.transfer.row_digest import TABLES, TableColumns, TableDigest

_PAGE: Final = 5_000


class TransferSource:
    """Reads the rows of a database in the order in which they were inserted."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[TransferSource]:
        """Hold the database for the block, so that it cannot change."""
        with exclusively(path) as connection:
            yield cls(connection)

    def installation_id(self) -> str:
        """The id of the installation; empty if it has none."""
        row = self._connection.execute("SELECT id FROM installation").fetchone()
        return str(row[0]) if row else ""

    def page(self, table: TableColumns, after: int, limit: int) -> tuple[list[tuple[Any, ...]], int]:
        """Rows after a position, as PostgreSQL takes them, and the position of the last one."""
        columns = ", ".join(f'"{column}"' for column in table.columns)
        try:
            rows = self._connection.execute(
                f'SELECT rowid, {columns} FROM "{table.name}" WHERE rowid > ? ORDER BY rowid LIMIT ?',
                (after, limit),
            ).fetchall()
        except sqlite3.Error as error:
            raise Unavailable(f"Cannot read the table {table.name}: {error}.") from error
        return [table.for_postgres(row[1:]) for row in rows], rows[-1][0] if rows else after

    def digests(self) -> dict[str, TableDigest]:
        """The digest of each table."""
        return {table.name: self._digest(table) for table in TABLES}

    def _digest(self, table: TableColumns) -> TableDigest:
        digest, position = TableDigest(), -1
        while True:
            rows, position = self.page(table, position, _PAGE)
            if not rows:
                return digest
            digest.add(table, rows)


def fingerprint(digests: dict[str, TableDigest]) -> str:
    """One digest of all tables: it shows whether the source has changed since an interrupted transfer."""
    return sha256("\n".join(f"{name} {digest}" for name, digest in sorted(digests.items())).encode()).hexdigest()
