"""Openings: first nodes of runs, claimed and begun by one statement.

A run begins with nodes that depend on nothing. This is the short way for them, on PostgreSQL: it does what
``jobs.claim``, ``chain_nodes.start_first`` and ``chain_nodes.tasks`` do one after another, with the same conditions and
locks in the same order. What it does not claim, for whatever reason, is left for the long way, which says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adjudge.store.chains import statements as nodes
from adjudge.store.chains.queries import node_task_from_columns
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Dialect, Statement
from adjudge.store.jobs import statements as jobs
from adjudge.store.jobs.models import MILLISECOND, Job, job_from_row

OPEN = Statement(
    "chain_openings.claim",
    "Win first nodes of runs for one worker, let them and their runs begin, and read what they need to know.",
    f"""
    WITH claimed AS (
        {jobs.WIN.strip()} AND kind = 'node' AND origin_job_id IS NULL
        RETURNING {jobs.RETURNED}
    ), begun AS (
        UPDATE chain_runs SET {nodes.RUN_BEGINS}
        FROM (SELECT DISTINCT chain_run_id FROM claimed ORDER BY chain_run_id DESC) AS runs
        WHERE id = runs.chain_run_id AND {nodes.RUN_STANDS} = 'pending'
        RETURNING id
    ), started AS (
        UPDATE chain_nodes SET prior_status = chain_nodes.status, status = 'running', started_at = {{now}},
            ended_at = NULL, attempt = claimed.attempt_id + COALESCE(CAST(payload ->> 'attempts_before' AS bigint), 0),
            actor = claimed.actor, reason = claimed.reason, updated_at = {{now}}
        FROM claimed
        WHERE chain_nodes.run_id = claimed.chain_run_id AND chain_nodes.node_id = claimed.node_id
          AND chain_nodes.job_id = claimed.id AND {nodes.STANDS} IN ('pending', 'retrying')
          AND (SELECT count(*) FROM begun) >= 0
        RETURNING chain_nodes.job_id AS job_id, chain_nodes.status AS status, type, attempt, item, parent_id
    )
    SELECT claimed.*, started.status, type, job_id, attempt, item, parent_id,
           CASE WHEN begun.id IS NULL THEN chain_runs.status ELSE 'running' END,
           parameters, chain_id, chain_version, name, started_by, chain_runs.authority,
           chain_runs.trace_id, checkpoint
    FROM claimed LEFT JOIN started ON job_id = claimed.id LEFT JOIN begun ON begun.id = claimed.chain_run_id
    JOIN chain_runs ON chain_runs.id = claimed.chain_run_id JOIN chains ON chains.id = chain_id
    LEFT JOIN chain_checkpoints
        ON chain_checkpoints.run_id = claimed.chain_run_id AND chain_checkpoints.node_id = claimed.node_id
    """,
    input_columns={"given_id": "text"},
    only_dialect=Dialect.POSTGRES,
)
"""The count is asked for so that the runs are locked before their nodes."""

_JOB: Final = len(Job._fields) - 1
"""How many columns are the job's; its brief is in no column."""


async def claim(tx: Tx, job_ids: Sequence[str], *, worker: str, lease_ms: int) -> tuple[Job, ...]:
    """Claim as the whole of a transaction; each job's brief is its node's task, unless the node has moved on."""
    rows = await tx.fetch_last(
        OPEN, [(job_id,) for job_id in sorted(set(job_ids))], worker=worker, lease_us=lease_ms * MILLISECOND
    )
    found = []
    for row in rows:
        values = list(row)
        job, task = values[:_JOB], values[_JOB:]
        found.append(job_from_row(job)._replace(preloaded=None if task[0] is None else node_task_from_columns(task)))
    return tuple(found)
