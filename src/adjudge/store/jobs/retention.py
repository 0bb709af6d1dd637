"""Deletes ended jobs whose owner is gone: those of executions and their callbacks, evaluations and webhooks.

Their outbox rows, attempts, logs and progress go with them. Jobs of runs and imports are deleted with
these, and those of submissions are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

SELECT_ORPHANED = Statement(
    "jobs.select_orphaned",
    "Hold ended jobs of executions, evaluations and deliveries that are gone; a replayed one waits for its replay.",
    """
    SELECT id FROM jobs
    WHERE kind IN ('callback', 'evaluate', 'execute', 'webhook') AND finished_at IS NOT NULL
      AND finished_at <= {now} - :older_than_us
      AND NOT EXISTS (SELECT 1 FROM executions WHERE executions.job_id = jobs.id)
      AND NOT EXISTS (SELECT 1 FROM evaluation_items WHERE evaluation_items.job_id = jobs.id)
      AND NOT EXISTS (SELECT 1 FROM webhook_deliveries WHERE webhook_deliveries.job_id = jobs.id)
      AND NOT EXISTS (SELECT 1 FROM jobs AS replays WHERE replays.origin_job_id = jobs.id)
      AND NOT EXISTS (SELECT 1 FROM dead_letters WHERE dead_letters.job_id = jobs.id AND dead_letters.state = 'open')
    ORDER BY finished_at LIMIT :limit
    FOR UPDATE OF jobs SKIP LOCKED
    """,
)

UNLINK_LETTERS = Statement(
    "jobs.unlink_letters",
    "Let dead letters no longer name the replays that are deleted.",
    """
    UPDATE dead_letters SET replayed_by_job_id = NULL FROM {given}
    WHERE replayed_by_job_id = given_id AND replayed_by_job_id IS NOT NULL
    """,
    input_columns={"given_id": "text"},
)

DELETE_ORPHANED = Statement(
    "jobs.delete_orphaned",
    "Delete ended jobs, with their outbox rows, attempts and logs.",
    "DELETE FROM jobs WHERE id IN (SELECT given_id FROM {given}) AND finished_at IS NOT NULL",
    input_columns={"given_id": "text"},
)


async def forget(tx: Tx, *, older_than_ms: int, limit: int = 500) -> int:
    """Delete jobs that are no longer needed; return how many."""
    rows = await tx.fetch(SELECT_ORPHANED, older_than_us=older_than_ms * 1_000, limit=limit)
    return await delete_ended(tx, sorted(row["id"] for row in rows))


async def delete_ended(tx: Tx, job_ids: Sequence[str]) -> int:
    """Delete ended jobs that nothing refers to; return how many."""
    if not job_ids:
        return 0
    ids = [(job_id,) for job_id in job_ids]
    await tx.execute(UNLINK_LETTERS, ids)
    return await tx.execute(DELETE_ORPHANED, ids)
