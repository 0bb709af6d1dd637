"""Statistics of the queue and the outbox, and single jobs, for operators."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.store.engine.driver import Tx, fetch_one, or_not_found
from adjudge.store.engine.statement import Row, Statement


@dataclass(frozen=True, slots=True)
class QueueStats:
    """The waiting jobs of one priority band."""

    band: int
    waiting: int
    oldest_ms: int


@dataclass(frozen=True, slots=True)
class OutboxStats:
    """The outbox rows that are not delivered yet."""

    pending: int
    due: int
    oldest_ms: int
    trouble: tuple[Mapping[str, Any], ...]


QUEUES = Statement(
    "queue_stats.bands",
    "Count waiting jobs per priority band, with the age of the oldest due one.",
    """
    SELECT {columns} FROM jobs WHERE status IN ('pending', 'queued') GROUP BY priority ORDER BY priority
    """,
    row=QueueStats,
    columns={
        "band": "priority",
        "waiting": "count(*)",
        "oldest_ms": "CASE WHEN min(available_at) < {now} THEN ({now} - min(available_at)) / 1000 ELSE 0 END",
    },
)

COUNT_RUNNING = Statement(
    "queue_stats.count_running", "Count running jobs.", "SELECT count(*) AS n FROM jobs WHERE status = 'running'"
)

OUTBOX = Statement(
    "queue_stats.outbox",
    "Count pending and due outbox rows, with the age of the oldest.",
    """
    SELECT count(*) AS pending, COALESCE(sum(CASE WHEN next_attempt_at <= {now} THEN 1 ELSE 0 END), 0) AS due,
           {now} - min(created_at) AS oldest_us
    FROM outbox WHERE state = 'pending'
    """,
)

OUTBOX_ERRORS = Statement(
    "queue_stats.outbox_errors",
    "List failed deliveries, next retry first.",
    """
    SELECT job_id, attempts, next_attempt_at, last_error FROM outbox
    WHERE state = 'pending' AND last_error IS NOT NULL ORDER BY next_attempt_at, id LIMIT :limit
    """,
)

JOB = Statement(
    "queue_stats.job",
    "Read all columns of a job.",
    """
    SELECT id, kind, status, submission_id, rejudge_batch_id, chain_run_id, node_id, origin_job_id, attempt_id,
           max_attempts, priority, timeout_ms, available_at, lease_owner, lease_until, payload, actor, reason,
           error_code, error, trace_id, created_at, updated_at, queued_at, started_at, finished_at
    FROM jobs WHERE id = :id
    """,
)


async def find_queue_stats(tx: Tx) -> tuple[list[QueueStats], int]:
    """The priority bands with waiting jobs, and the number of running jobs."""
    return await tx.fetch(QUEUES), int((await tx.fetch(COUNT_RUNNING))[0]["n"])


async def find_outbox_stats(tx: Tx, *, limit: int = 20) -> OutboxStats:
    """The state of the outbox, with up to ``limit`` failed deliveries."""
    (row,) = await tx.fetch(OUTBOX)
    trouble = [
        {name: item[name] for name in ("job_id", "attempts", "next_attempt_at", "last_error")}
        for item in await tx.fetch(OUTBOX_ERRORS, limit=limit)
    ]
    oldest_ms = max(0, int(row["oldest_us"] or 0)) // 1_000
    return OutboxStats(int(row["pending"]), int(row["due"]), oldest_ms, tuple(trouble))


async def find_job_row(tx: Tx, job_id: str) -> dict[str, Any]:
    """All columns of a job; its payload contains identifiers only."""
    row = or_not_found(await fetch_one(tx, JOB, id=job_id), "job", job_id)
    return _document(row)


_JOB_COLUMNS = tuple(name.strip() for name in JOB.sql.partition("SELECT")[2].partition("FROM")[0].split(","))


def _document(row: Row) -> dict[str, Any]:
    found = {name: row[name] for name in _JOB_COLUMNS}
    return found | {"payload": json.loads(found["payload"])}
