"""Deletes ended jobs whose owner is gone: those of executions and their callbacks, evaluations, mails and webhooks.

Their outbox rows, attempts, logs and progress go with them. Jobs of runs and imports are deleted with these,
and those of submissions are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job in the order in which jobs ended."""

    finished_at: int
    id: str


_KINDS = "kind IN ('callback', 'evaluate', 'execute', 'mail', 'webhook') AND finished_at IS NOT NULL"

PAGE_ENDED = Statement(
    "jobs.page_ended",
    "Page through ended jobs of executions, callbacks, evaluations and deliveries, in the order in which they ended.",
    f"""
    SELECT {{columns}} FROM jobs
    WHERE {_KINDS} AND finished_at <= {{now}} - CAST(:older_than_us AS bigint)
      AND finished_at >= :after AND (finished_at > :after OR id > :after_id)
    ORDER BY finished_at, id LIMIT :limit
    """,
    row=EndedJob,
)

SELECT_ORPHANED = Statement(
    "jobs.select_orphaned",
    "Hold those of ended jobs whose execution or delivery is gone; a replayed one waits for its replay.",
    f"""
    SELECT id FROM jobs
    WHERE id IN (SELECT given_id FROM {{given}}) AND {_KINDS}
      AND NOT EXISTS (SELECT 1 FROM executions WHERE executions.job_id = jobs.id)
      AND NOT EXISTS (SELECT 1 FROM evaluation_items WHERE evaluation_items.job_id = jobs.id)
      AND NOT EXISTS (SELECT 1 FROM webhook_deliveries WHERE webhook_deliveries.job_id = jobs.id)
      AND NOT EXISTS (SELECT 1 FROM jobs AS replays WHERE replays.origin_job_id = jobs.id)
      AND NOT EXISTS (SELECT 1 FROM dead_letters WHERE dead_letters.job_id = jobs.id AND dead_letters.state = 'open')
    ORDER BY id
    FOR UPDATE OF jobs SKIP LOCKED
    """,
    input_columns={"given_id": "text"},
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


async def delete_orphaned(
    tx: Tx, position: EndedJob | None, *, older_than_ms: int, limit: int = 500
) -> tuple[int, EndedJob | None]:
    """Delete jobs that are no longer needed, of those that ended after ``position``.

    Return how many, and the position of the next page; None if this was the last. Ended jobs may be needed for weeks,
    so they are not all looked at each time.
    """
    after = position or EndedJob(0, "")
    rows = await tx.fetch(
        PAGE_ENDED, older_than_us=older_than_ms * 1_000, after=after.finished_at, after_id=after.id, limit=limit
    )
    found = await tx.fetch(SELECT_ORPHANED, [(row.id,) for row in rows]) if rows else []
    deleted = await delete_ended(tx, [row["id"] for row in found])
    return deleted, rows[-1] if len(rows) == limit else None


async def delete_ended(tx: Tx, job_ids: Sequence[str]) -> int:
    """Delete ended jobs that nothing refers to; return how many."""
    if not job_ids:
        return 0
    ids = [(job_id,) for job_id in job_ids]
    await tx.execute(UNLINK_LETTERS, ids)
    return await tx.execute(DELETE_ORPHANED, ids)
