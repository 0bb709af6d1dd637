"""Writes of chain runs outside the engine: new runs, node logs, checkpoints, retention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.domain.errors import FenceRefused, RefusalReason
from adjudge.domain.strict_json import encode_json
from adjudge.store.chains import statements as sql
from adjudge.store.chains.queries import CHANGED
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Dialect, Statement
from adjudge.store.jobs.models import Fence

APPEND_LOG = Statement(
    "chain_node_logs.append",
    "Append log lines of a node.",
    """
    INSERT INTO chain_node_logs (run_id, node_id, attempt, text, at)
    SELECT :run_id, :node_id, :attempt, given_text, {now} FROM {given}
    """,
    input_columns={"given_text": "text"},
)

SAVE_CHECKPOINT = Statement(
    "chain_checkpoints.save",
    "Save a node's checkpoint if the writing attempt still holds the lease.",
    """
    INSERT INTO chain_checkpoints (run_id, node_id, attempt_id, checkpoint, updated_at)
    SELECT chain_run_id, jobs.node_id, :attempt, given_checkpoint, {now}
    FROM {given} JOIN jobs ON id = given_id
    WHERE attempt_id = given_attempt AND lease_owner = given_owner AND COALESCE(jobs.status, '') = 'running'
      AND lease_until > {now}
    ON CONFLICT (run_id, node_id) DO UPDATE SET attempt_id = excluded.attempt_id, checkpoint = excluded.checkpoint,
        updated_at = excluded.updated_at
    RETURNING run_id
    """,
    input_columns={"given_id": "text", "given_attempt": "bigint", "given_owner": "text", "given_checkpoint": "jsonb"},
)

LOCK_OLD_RUNS = Statement(
    "chain_runs.lock_old",
    "Lock runs past their retention so that nobody reopens one before it is deleted.",
    """
    SELECT id FROM chain_runs WHERE finished_at IS NOT NULL AND finished_at < {now} - :older_than_us
    ORDER BY finished_at LIMIT :limit
    FOR UPDATE SKIP LOCKED
    """,
)

DELETE_DEAD_LETTERS = Statement(
    "chain_runs.delete_dead_letters",
    "Delete the dead letters of jobs of expired runs.",
    """
    DELETE FROM dead_letters WHERE id IN (
        SELECT dead_letters.id FROM {given}
        JOIN jobs ON chain_run_id = given_id AND chain_run_id IS NOT NULL
        JOIN dead_letters ON job_id = jobs.id)
    """,
    input_columns={"given_id": "text"},
)

DELETE_JOBS = Statement(
    "chain_runs.delete_jobs",
    "Delete the jobs of expired runs with their attempts and logs.",
    """
    DELETE FROM jobs WHERE id IN (
        SELECT jobs.id FROM {given} JOIN jobs ON chain_run_id = given_id AND chain_run_id IS NOT NULL)
    """,
    input_columns={"given_id": "text"},
)

DELETE_RUNS = Statement(
    "chain_runs.delete",
    "Delete expired runs with their nodes, checkpoints and logs.",
    "DELETE FROM chain_runs WHERE id IN (SELECT given_id FROM {given}) AND finished_at IS NOT NULL",
    input_columns={"given_id": "text"},
)


async def insert_run(tx: Tx, chain_id: str, row: Sequence[object]) -> int | None:
    """Insert a run with the next number of its chain, and return the number; None if nothing was inserted.

    The chain is locked until the transaction ends, so that its runs are numbered in the order of their commits.
    """
    for inserted in await tx.fetch(sql.INSERT_RUN, [row]):
        number = int(inserted["number"])
        if tx.dialect is Dialect.SQLITE:
            await tx.execute(sql.COUNT_RUN, chain_id=chain_id, number=number)
        return number
    return None


async def append_log(tx: Tx, run_id: str, node_id: str, *, attempt: int, lines: Sequence[str]) -> None:
    """Insert log lines of a node, and notify readers."""
    if lines:
        rows = [(line,) for line in lines]
        await tx.execute(APPEND_LOG, rows, run_id=run_id, node_id=node_id, attempt=attempt)
        tx.notify(CHANGED)


async def save_checkpoint(tx: Tx, fence: Fence, *, attempt: int, document: Any) -> None:
    """Store a checkpoint for the next attempt; refused if the attempt was superseded."""
    row = (fence.job_id, fence.attempt_id, fence.lease_owner, encode_json(document, "checkpoint"))
    if not await tx.fetch(SAVE_CHECKPOINT, [row], attempt=attempt):
        raise FenceRefused(fence.job_id, RefusalReason.LEASE_LOST_OR_OWNER_MISMATCH)


async def delete_old_runs(tx: Tx, *, older_than_ms: int, limit: int = 100) -> int:
    """Delete runs that ended more than ``older_than_ms`` ago, and everything that belongs to them; return how many."""
    rows = [(row["id"],) for row in await tx.fetch(LOCK_OLD_RUNS, older_than_us=older_than_ms * 1_000, limit=limit)]
    if not rows:
        return 0
    await tx.execute(DELETE_DEAD_LETTERS, rows)
    await tx.execute(DELETE_JOBS, rows)
    return await tx.execute(DELETE_RUNS, rows)
