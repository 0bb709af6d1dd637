"""The SQL of what people do to runs: stop, retry, complete. Locks are taken as ``chain_statements`` says."""

from __future__ import annotations

from adjudge.store.chains.statements import COUNTS as _COUNTS
from adjudge.store.chains.statements import KEY as _KEY
from adjudge.store.chains.statements import NODE as _NODE
from adjudge.store.chains.statements import RUN_STANDS as _RUN
from adjudge.store.chains.statements import STANDS as _STANDS
from adjudge.store.engine.statement import Statement

REOPEN_RUN = Statement(
    "chain_runs.reopen",
    "Set a failed or stopped run back to running.",
    f"""
    UPDATE chain_runs SET prior_status = status, status = 'running', finished_at = NULL, stop_requested_at = NULL,
        actor = :actor, reason = :reason, slot = :slot, updated_at = {{now}}
    WHERE id = :run_id AND {_RUN} IN ('failed', 'stopped')
    """,
)

STOP_RUN = Statement(
    "chain_runs.stop",
    "Request that a run stops.",
    f"""
    UPDATE chain_runs SET prior_status = status, status = 'stopping', stop_requested_at = {{now}}, actor = :actor,
        reason = :reason, updated_at = {{now}}
    WHERE id = :run_id AND {_RUN} IN ('pending', 'running')
    """,
)

LOCK_OPEN_JOBS = Statement(
    "chain_runs.lock_open_jobs",
    "Find the jobs of a run that have not ended, and hold them: jobs are locked before runs.",
    """
    SELECT id, node_id, status FROM jobs
    WHERE chain_run_id = :run_id AND COALESCE(status, '') IN ('pending', 'queued', 'running')
    ORDER BY id
    FOR NO KEY UPDATE
    """,
)

REOPEN_NODES = Statement(
    "chain_nodes.reopen",
    "Set skipped nodes, and nodes stopped before they started, back to pending.",
    f"""
    UPDATE chain_nodes SET prior_status = status, status = 'pending', ended_at = NULL, job_id = NULL, last_error = NULL,
        actor = :actor, reason = :reason, updated_at = {{now}}
    FROM {{given}}
    WHERE {_NODE} AND {_STANDS} IN ('skipped', 'stopped')
    """,
    input_columns=_KEY,
)


SET_INSTANCE_COUNTS = Statement(
    "chain_nodes.set_instance_counts",
    "Write the recomputed instance counts of a mapped node.",
    f"""
    UPDATE chain_nodes SET waiting_on = given_ended, deps_success = given_success, deps_failed = given_failed,
        deps_skipped = given_skipped
    FROM {{given}}
    WHERE {_NODE} AND {_STANDS} = 'running'
    """,
    input_columns=_COUNTS,
)

RETRY_NODES = Statement(
    "chain_nodes.retry",
    "Set failed or stopped nodes to retrying.",
    f"""
    UPDATE chain_nodes SET prior_status = status, status = 'retrying', attempt = attempt + 1, ended_at = NULL,
        job_id = given_job_id, slot = NULL, wait_on = NULL, wait_key = NULL, wait_until = NULL,
        actor = :actor, reason = :reason, updated_at = {{now}}
    FROM {{given}}
    WHERE {_NODE} AND {_STANDS} IN ('failed', 'stopped')
    RETURNING chain_nodes.node_id AS node_id, attempt
    """,
    input_columns={**_KEY, "given_job_id": "text"},
)

RESUME_MAP = Statement(
    "chain_nodes.resume_map",
    "Set a retried mapped node back to waiting for its instances.",
    f"""
    UPDATE chain_nodes SET prior_status = status, status = 'running', updated_at = {{now}}, reason = 'mapped'
    WHERE run_id = :run_id AND node_id = :node_id AND {_STANDS} = 'retrying'
    """,
)

STOP_IDLE = Statement(
    "chain_nodes.stop_idle",
    "Stop all nodes of a run that have no running job.",
    f"""
    UPDATE chain_nodes SET prior_status = status, status = 'stopped', ended_at = {{now}}, updated_at = {{now}},
        actor = :actor, reason = :reason, slot = NULL, wait_on = NULL, wait_key = NULL, wait_until = NULL
    WHERE run_id = :run_id AND {_STANDS} IN ('pending', 'retrying', 'running')
      AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = chain_nodes.job_id
                      AND COALESCE(jobs.status, '') IN ('pending', 'queued', 'running'))
    RETURNING node_id, type, concurrency_pool
    """,
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
