"""Writes of manual actions on runs: stop a run, retry a node, complete a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from adjudge.domain.chain import DependencyCounts
from adjudge.domain.states import JobStatus
from adjudge.store.chains.commands import counts_row
from adjudge.store.chains.models import FinishedNode, SlotState
from adjudge.store.chains.statements import COUNTS, FINISHED_NODE, IS_GIVEN_NODE, KEY, NODE_STATUS, RUN_STATUS
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class OpenJob:
    """An unfinished job of a run."""

    id: str
    node_id: str
    status: JobStatus


REOPEN_RUN = Statement(
    "chain_runs.reopen",
    "Set a failed or stopped run back to running.",
    f"""
    UPDATE chain_runs SET prior_status = status, status = 'running', finished_at = NULL, stop_requested_at = NULL,
        actor = :actor, reason = :reason, slot = :slot, updated_at = {{now}}
    WHERE id = :run_id AND {RUN_STATUS} IN ('failed', 'stopped')
    """,
)

STOP_RUN = Statement(
    "chain_runs.stop",
    "Request that a run stops.",
    f"""
    UPDATE chain_runs SET prior_status = status, status = 'stopping', stop_requested_at = {{now}}, actor = :actor,
        reason = :reason, updated_at = {{now}}
    WHERE id = :run_id AND {RUN_STATUS} IN ('pending', 'running')
    """,
)

LOCK_OPEN_JOBS = Statement(
    "chain_runs.lock_open_jobs",
    "Lock the unfinished jobs of a run. Lock order: jobs before runs.",
    """
    SELECT {columns} FROM jobs
    WHERE chain_run_id = :run_id AND COALESCE(status, '') IN ('pending', 'queued', 'running')
    ORDER BY id
    FOR NO KEY UPDATE
    """,
    row=OpenJob,
)

REOPEN_NODES = Statement(
    "chain_nodes.reopen",
    "Set skipped nodes, and nodes stopped before they started, back to pending.",
    f"""
    UPDATE chain_nodes SET prior_status = status, status = 'pending', ended_at = NULL, job_id = NULL, last_error = NULL,
        actor = :actor, reason = :reason, updated_at = {{now}}
    FROM {{given}}
    WHERE {IS_GIVEN_NODE} AND {NODE_STATUS} IN ('skipped', 'stopped')
    """,
    input_columns=KEY,
)

SET_INSTANCE_COUNTS = Statement(
    "chain_nodes.set_instance_counts",
    "Write the recomputed instance counts of a mapped node.",
    f"""
    UPDATE chain_nodes SET waiting_on = given_ended, deps_success = given_success, deps_failed = given_failed,
        deps_skipped = given_skipped
    FROM {{given}}
    WHERE {IS_GIVEN_NODE} AND {NODE_STATUS} = 'running'
    """,
    input_columns=COUNTS,
)

RETRY_NODES = Statement(
    "chain_nodes.retry",
    "Set failed or stopped nodes to retrying.",
    f"""
    UPDATE chain_nodes SET prior_status = status, status = 'retrying', attempt = attempt + 1, ended_at = NULL,
        job_id = given_job_id, slot = NULL, wait_on = NULL, wait_key = NULL, wait_until = NULL,
        actor = :actor, reason = :reason, updated_at = {{now}}
    FROM {{given}}
    WHERE {IS_GIVEN_NODE} AND {NODE_STATUS} IN ('failed', 'stopped')
    """,
    input_columns={**KEY, "given_job_id": "text"},
)

RESUME_MAP = Statement(
    "chain_nodes.resume_map",
    "Set a retried mapped node back to waiting for its instances.",
    f"""
    UPDATE chain_nodes SET prior_status = status, status = 'running', updated_at = {{now}}, reason = 'mapped'
    WHERE run_id = :run_id AND node_id = :node_id AND {NODE_STATUS} = 'retrying'
    """,
)

STOP_IDLE = Statement(
    "chain_nodes.stop_idle",
    "Stop all nodes of a run that have no running job.",
    f"""
    UPDATE chain_nodes SET prior_status = status, status = 'stopped', ended_at = {{now}}, updated_at = {{now}},
        actor = :actor, reason = :reason, slot = NULL, wait_on = NULL, wait_key = NULL, wait_until = NULL
    WHERE run_id = :run_id AND {NODE_STATUS} IN ('pending', 'retrying', 'running')
      AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = chain_nodes.job_id
                      AND COALESCE(jobs.status, '') IN ('pending', 'queued', 'running'))
    RETURNING {{columns}}
    """,
    row=FinishedNode,
    columns={**FINISHED_NODE, "duration_sec": "NULL"},
)

RESOLVE_DEAD_LETTERS = Statement(
    "chain_nodes.resolve_dead_letters",
    "Resolve the dead letters of jobs whose nodes were retried or completed manually.",
    """
    UPDATE dead_letters SET state = :state, replayed_by_job_id = given_replayed_by, resolved_by = :actor, note = :note,
        resolved_at = {now}
    FROM {given}
    WHERE job_id = given_job_id AND COALESCE(state, '') = 'open'
    """,
    input_columns={"given_job_id": "text", "given_replayed_by": "text"},
)


async def lock_open_jobs(tx: Tx, run_id: str) -> list[OpenJob]:
    """Lock the unfinished jobs of a run until the transaction ends; must be called before the run is locked."""
    return await tx.fetch(LOCK_OPEN_JOBS, run_id=run_id)


async def stop_run(tx: Tx, run_id: str, *, actor: str, reason: str) -> None:
    """Set a run to stopping."""
    await tx.execute(STOP_RUN, run_id=run_id, actor=actor, reason=reason)


async def stop_idle_nodes(tx: Tx, run_id: str, *, actor: str, reason: str) -> list[FinishedNode]:
    """Stop the nodes of a run that have no unfinished job; return them."""
    return await tx.fetch(STOP_IDLE, run_id=run_id, actor=actor, reason=reason)


async def reopen_run(tx: Tx, run_id: str, *, slot: SlotState | None, actor: str, reason: str) -> None:
    """Set a failed or stopped run back to running."""
    await tx.execute(REOPEN_RUN, run_id=run_id, slot=slot, actor=actor, reason=reason)


async def retry_nodes(tx: Tx, run_id: str, job_ids: Mapping[str, str | None], *, actor: str, reason: str) -> None:
    """Set failed or stopped nodes to retrying, each with its job if it has one already."""
    rows = sorted((run_id, node_id, job_id) for node_id, job_id in job_ids.items())
    await tx.execute(RETRY_NODES, rows, actor=actor, reason=reason)


async def resume_map(tx: Tx, run_id: str, node_id: str, job_id: str | None, *, actor: str, reason: str) -> None:
    """Set a failed or stopped mapped node back to waiting for its instances."""
    await retry_nodes(tx, run_id, {node_id: job_id}, actor=actor, reason=reason)
    await tx.execute(RESUME_MAP, run_id=run_id, node_id=node_id)


async def set_instance_counts(tx: Tx, run_id: str, node_id: str, counts: DependencyCounts) -> None:
    """Write the recomputed counts of the instances of a mapped node."""
    await tx.execute(SET_INSTANCE_COUNTS, [counts_row((run_id, node_id), counts)])


async def reopen_nodes(tx: Tx, run_id: str, node_ids: Iterable[str], *, actor: str, reason: str) -> None:
    """Set skipped nodes, and nodes stopped before they started, back to pending."""
    rows = sorted((run_id, node_id) for node_id in node_ids)
    if rows:
        await tx.execute(REOPEN_NODES, rows, actor=actor, reason=reason)


async def resolve_dead_letters(
    tx: Tx, jobs: Mapping[str | None, str | None], *, state: str, actor: str, note: str
) -> None:
    """Resolve the dead letters of jobs, each with the job that replaces it."""
    rows = sorted((old, new) for old, new in jobs.items() if old is not None)
    if rows:
        await tx.execute(RESOLVE_DEAD_LETTERS, rows, state=state, actor=actor, note=note)
