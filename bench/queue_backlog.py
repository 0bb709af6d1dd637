"""A long queue: jobs that wait in the outbox, laid in by the set, and what a job costs with them in front.

The number of waiting jobs is kept the same while it is measured: as many are submitted as end. So both lengths do the
same work for each job, and what differs is how much lies about.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import asyncpg

from bench.queue_progress import BATCH
from bench.queue_systems import QueueSystem

_JOBS = (
    "INSERT INTO jobs (id, kind, status, attempt_id, available_at, payload, created_at, updated_at) "
    "SELECT id, 'noop', 'pending', 0, n, '{\"n\": -1}', n, n FROM waiting"
)
_OUTBOX = "INSERT INTO outbox (job_id, next_attempt_at, turn_at, due_at) SELECT id, n, n, n FROM waiting"


async def load_postgres(url: str, size: int) -> None:
    """Give the database ``size`` waiting jobs, of which the stream has not heard."""
    connection = await asyncpg.connect(url)
    await connection.execute("SET session_replication_role = replica")  # rows that fit need no looking up, one by one
    await connection.execute(
        "CREATE TEMP TABLE waiting AS SELECT n, '01800000-0000-7000-8000-' || lpad(to_hex(n), 12, '0') AS id "
        f"FROM generate_series(1, {size}) AS n"
    )
    for statement in (_JOBS, _OUTBOX, "VACUUM ANALYZE jobs", "VACUUM ANALYZE outbox", "CHECKPOINT"):
        await connection.execute(statement)
    await connection.close()


def load_sqlite(path: Path, size: int) -> None:
    """Do the same to a file."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("BEGIN")
    connection.execute(
        "CREATE TEMP TABLE waiting AS WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted "
        f"WHERE n < {size}) SELECT n, printf('01800000-0000-7000-8000-%012x', n) AS id FROM counted"
    )
    connection.execute(_JOBS)
    connection.execute(_OUTBOX)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def cost_us(contender: QueueSystem, *, warm_up: int, count: int) -> float:
    """Microseconds a job, over ``count`` ends after the first few, with a job submitted for each that ends."""
    board, submitted = contender.board, 0
    marks: list[tuple[int, float]] = []
    while True:
        ended = board.counted
        if ended >= (warm_up if not marks else marks[0][0] + count):
            marks.append((ended, time.perf_counter()))
            if len(marks) == 2:
                break
        if ended - submitted >= BATCH:
            contender.submit(BATCH)
            submitted += BATCH
        else:
            time.sleep(0.002)
    (first, began), (last, over) = marks
    return (over - began) * 1e6 / (last - first)
