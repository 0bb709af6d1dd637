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
    """The waiting jobs of one priority."""

    band: int
    waiting: int
    """Due jobs, published or not."""
    delayed: int
    """Jobs that are not due yet: retries, delayed and held jobs."""
    oldest_us: int
    """Time since the oldest due job became due."""

    @property
    def oldest_ms(self) -> int:
        return self.oldest_us // 1_000


@dataclass(frozen=True, slots=True)
class RunningStats:
    """The running jobs of one priority."""

    band: int
    running: int
    leased: int
    """Those with a valid lease; the workers of the others are lost."""


@dataclass(frozen=True, slots=True)
class PendingOutbox:
    """The outbox rows that are not delivered yet."""

    pending: int
    due: int
    oldest_us: int
    """Time since the oldest row was due; retries of its delivery do not change that."""


@dataclass(frozen=True, slots=True)
class OutboxStats:
    """The outbox rows that are not delivered yet, and errors of their delivery."""

    pending: int
    due: int
    oldest_ms: int
    trouble: tuple[Mapping[str, Any], ...]


_NOW = "(SELECT {now})"
"""Read once for a statement, not for each of a million rows."""

QUEUES = Statement(
    "queue_stats.bands",
    "Count due and delayed jobs per priority, with the age of the oldest due one.",
    """
    SELECT {columns} FROM jobs WHERE status IN ('pending', 'queued') GROUP BY priority ORDER BY priority
    """,
    row=QueueStats,
    columns={
        "band": "priority",
        "waiting": f"sum(CASE WHEN available_at <= {_NOW} THEN 1 ELSE 0 END)",
        "delayed": f"sum(CASE WHEN available_at <= {_NOW} THEN 0 ELSE 1 END)",
        "oldest_us": f"CASE WHEN min(available_at) < {_NOW} THEN {_NOW} - min(available_at) ELSE 0 END",
    },
)
"""Reads the index ``jobs_waiting`` only."""

RUNNING = Statement(
    "queue_stats.running",
    "Count running jobs per priority, and those with a valid lease.",
    "SELECT {columns} FROM jobs WHERE status = 'running' GROUP BY priority ORDER BY priority",
    row=RunningStats,
    columns={
        "band": "priority",
        "running": "count(*)",
        "leased": "sum(CASE WHEN lease_until > {now} THEN 1 ELSE 0 END)",
    },
)

OUTBOX = Statement(
    "queue_stats.outbox",
    "Count pending and due outbox rows, with the age of the oldest due one.",
    "SELECT {columns} FROM outbox WHERE state = 'pending'",
    row=PendingOutbox,
    columns={
        "pending": "count(*)",
        "due": f"COALESCE(sum(CASE WHEN due_at <= {_NOW} THEN 1 ELSE 0 END), 0)",
        "oldest_us": f"CASE WHEN min(due_at) < {_NOW} THEN {_NOW} - min(due_at) ELSE 0 END",
    },
)
"""Reads the index ``outbox_turn`` only."""

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


async def find_queue_stats(tx: Tx) -> tuple[list[QueueStats], list[RunningStats]]:
    """The waiting and the running jobs of each priority that has any."""
    return await tx.fetch(QUEUES), await tx.fetch(RUNNING)


async def count_outbox(tx: Tx) -> PendingOutbox:
    (found,) = await tx.fetch(OUTBOX)
    return found


async def find_outbox_stats(tx: Tx, *, limit: int = 20) -> OutboxStats:
    """The state of the outbox, with up to ``limit`` failed deliveries."""
    found = await count_outbox(tx)
    trouble = [
        {name: item[name] for name in ("job_id", "attempts", "next_attempt_at", "last_error")}
        for item in await tx.fetch(OUTBOX_ERRORS, limit=limit)
    ]
    return OutboxStats(found.pending, found.due, found.oldest_us // 1_000, tuple(trouble))


async def find_job_row(tx: Tx, job_id: str) -> dict[str, Any]:
    """All columns of a job; its payload contains identifiers only."""
    row = or_not_found(await fetch_one(tx, JOB, id=job_id), "job", job_id)
    return _document(row)


_JOB_COLUMNS = tuple(name.strip() for name in JOB.sql.partition("SELECT")[2].partition("FROM")[0].split(","))


def _document(row: Row) -> dict[str, Any]:
    found = {name: row[name] for name in _JOB_COLUMNS}
    return found | {"payload": json.loads(found["payload"])}
