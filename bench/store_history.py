"""A long past, laid in by the set: jobs that ended, with all that they leave behind."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import asyncpg

_COLUMNS = "id, kind, status, prior_status, attempt_id, available_at, created_at, updated_at, started_at, finished_at"
_ATTEMPT = "job_id, attempt_id, lease_owner, started_at, ended_at, outcome"
_ENTRY = "job_id, from_status, to_status, attempt_id, at"
_ROW = "job_id, state, next_attempt_at, turn_at, due_at"
_FILLS = (
    f"INSERT INTO jobs ({_COLUMNS}) SELECT id, 'bench', 'succeeded', 'running', 1, n, n, n, n, n FROM past",
    f"INSERT INTO outbox ({_ROW}) SELECT id, 'delivered', n, n, n FROM past",
    f"INSERT INTO job_attempts ({_ATTEMPT}) SELECT id, 1, 'bench', n, n, 'succeeded' FROM past",
    f"INSERT INTO job_status_log ({_ENTRY}) SELECT id, 'pending', 'running', 1, n FROM past",
    f"INSERT INTO job_status_log ({_ENTRY}) SELECT id, 'running', 'succeeded', 1, n FROM past",
)


def load_sqlite(path: Path, size: int) -> None:
    """Give the database at ``path`` a past of ``size`` jobs."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("BEGIN")
    connection.execute(
        "CREATE TEMP TABLE past AS WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted "
        f"WHERE n < {size}) SELECT n, printf('01800000-0000-7000-8000-%012x', n) AS id FROM counted"
    )
    for fill in _FILLS:
        connection.execute(fill)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


async def load_postgres(url: str, size: int) -> None:
    """Give the database at ``url`` a past of ``size`` jobs."""
    connection = await asyncpg.connect(url)
    await connection.execute(
        "CREATE TEMP TABLE past AS SELECT n, '01800000-0000-7000-8000-' || lpad(to_hex(n), 12, '0') AS id "
        f"FROM generate_series(1, {size}) AS n"
    )
    for fill in _FILLS:
        await connection.execute(fill)
    for table in ("jobs", "outbox", "job_attempts", "job_status_log"):
        await connection.execute(f"VACUUM ANALYZE {table}")  # what autovacuum does after such growth
    await connection.execute("CHECKPOINT")
    await connection.close()
