"""Progress of running jobs: one row per job, overwritten, fenced by the attempt.

It is for display only. Nothing depends on it, and a lost report is replaced by the next one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.notify import CHANNEL_JUDGING
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs.models import Fence


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """A progress report of an attempt."""

    fence: Fence
    stage: str
    done: int = 0
    total: int = 0
    cases: Sequence[Mapping[str, Any]] = ()
    """The latest steps, for display; small."""


@dataclass(frozen=True, slots=True)
class JobProgressRow:
    """The progress of a job."""

    job_id: str
    attempt_id: int
    stage: str
    done: int
    total: int
    cases: Sequence[Mapping[str, Any]]
    updated_at: int


UPSERT = Statement(
    "job_progress.upsert",
    "Store the progress of running jobs if the reporting attempt holds the lease.",
    """
    INSERT INTO job_progress (job_id, attempt_id, stage, done, total, cases, updated_at)
    SELECT jobs.id, given_attempt, given_stage, given_done, given_total, given_cases, {now}
    FROM {given} JOIN jobs ON jobs.id = given_id
    WHERE jobs.attempt_id = given_attempt AND jobs.lease_owner = given_owner AND COALESCE(status, '') = 'running'
    ON CONFLICT (job_id) DO UPDATE SET attempt_id = excluded.attempt_id, stage = excluded.stage, done = excluded.done,
        total = excluded.total, cases = excluded.cases, updated_at = excluded.updated_at
    WHERE job_progress.attempt_id <= excluded.attempt_id
    """,
    input_columns={
        "given_id": "text",
        "given_attempt": "bigint",
        "given_owner": "text",
        "given_stage": "text",
        "given_done": "bigint",
        "given_total": "bigint",
        "given_cases": "jsonb",
    },
)

SELECT = Statement(
    "job_progress.select",
    "Read the progress of jobs.",
    "SELECT {columns} FROM {given} JOIN job_progress ON job_id = given_id",
    input_columns={"given_id": "text"},
    row=JobProgressRow,
)

DELETE_OLD = Statement(
    "job_progress.delete_old",
    "Delete the progress of jobs finished some time ago.",
    """
    DELETE FROM job_progress WHERE job_id IN (
        SELECT job_id FROM job_progress JOIN jobs ON jobs.id = job_id
        WHERE job_progress.updated_at < {now} - :older_than_us AND jobs.finished_at IS NOT NULL
        ORDER BY job_progress.updated_at LIMIT :limit)
    """,
)


async def write(tx: Tx, reports: Sequence[ProgressReport]) -> None:
    """Write reports; those of superseded attempts change nothing."""
    if not reports:
        return
    rows = [
        (
            item.fence.job_id,
            item.fence.attempt_id,
            item.fence.lease_owner,
            item.stage,
            item.done,
            item.total,
            json.dumps(list(item.cases)),
        )
        for item in sorted(reports, key=lambda item: item.fence.job_id)
    ]
    await tx.execute(UPSERT, rows)
    tx.notify(CHANNEL_JUDGING)


async def find_by_jobs(tx: Tx, job_ids: Sequence[str]) -> dict[str, JobProgressRow]:
    """The progress of jobs that have reported any."""
    rows = await tx.fetch(SELECT, [(job_id,) for job_id in dict.fromkeys(job_ids)]) if job_ids else []
    return {row.job_id: row for row in rows}


async def delete_old(tx: Tx, *, older_than_ms: int, limit: int = 500) -> int:
    """Delete old progress; return how much."""
    return await tx.execute(DELETE_OLD, older_than_us=older_than_ms * 1_000, limit=limit)
