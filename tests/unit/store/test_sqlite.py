"""The SQLite driver: what differs from the behaviour that every driver shares (tests/conformance)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adjudge.store.engine import sqlite
from adjudge.store.engine.sqlite import enable_wal


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that holds the lock of a new database which is not in WAL mode yet."""
    with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None, timeout=0)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        yield holder


def test_switch_to_wal_is_repeated_until_another_connection_releases_its_lock(
    tmp_path: Path, locked: sqlite3.Connection
) -> None:
    attempts = []

    class ReleasesLockAtThirdAttempt(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            attempts.append(sql)
            if len(attempts) == 3:
                locked.execute("COMMIT")
            return super().execute(sql, *arguments)

    path = tmp_path / "new.db"
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0, factory=ReleasesLockAtThirdAttempt)) as opened:
        enable_wal(opened)
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert attempts[:3] == ["PRAGMA journal_mode=WAL"] * 3


def test_switch_to_wal_fails_if_the_lock_is_never_released(
    tmp_path: Path, locked: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_SEC", 0)
    with (
        closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None, timeout=0)) as connection,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        enable_wal(connection)
    assert locked.in_transaction
