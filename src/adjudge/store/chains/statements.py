"""SQL statements by which runs advance.

Rows are locked in one order: jobs, then chains whose runs share slots (``concurrency.py``), then runs (newest first, so
that a sub-chain run comes before the run that waits for it), then nodes. A node with an unfinished job changes only
under the lock of that job; every other change of a node happens under the lock of its run, or of the chain whose slots
the run shares. So the transaction that counts a finished node also decides what follows, and no node is counted twice.
The locks are ``NO KEY`` locks, so that inserting rows that refer to a run (log lines, jobs) does not wait.
"""

from __future__ import annotations

from adjudge.store.chains.models import (
    ChainRunFinished,
    CountedNode,
    FinishedNode,
    LockedChainRun,
    NodeState,
    NumberedRun,
)
from adjudge.store.engine.script import Script, Step
from adjudge.store.engine.statement import Dialect, Statement

NODE_STATUS = "COALESCE(chain_nodes.status, '')"
RUN_STATUS = "COALESCE(chain_runs.status, '')"
IS_GIVEN_NODE = "chain_nodes.run_id = given_run_id AND chain_nodes.node_id = given_node_id"
KEY = {"given_run_id": "text", "given_node_id": "text"}
COUNTS = {
    **KEY,
    "given_ended": "bigint",
    "given_success": "bigint",
    "given_failed": "bigint",
    "given_skipped": "bigint",
}
DEPENDENCY_COUNTS = {
    "waiting": "waiting_on",
    "success": "deps_success",
    "failed": "deps_failed",
    "skipped": "deps_skipped",
}
"""The columns of ``DependencyCounts``. For a mapped node they count its instances."""
FINISHED_NODE = {
    "duration_sec": "CAST(ended_at - started_at AS double precision) / 1000000",
    "pool": "concurrency_pool",
}
"""The columns of ``FinishedNode``."""

# Runs.


LOCK_RUNS = Statement(
    "chain_runs.lock",
    "Lock runs and read their state.",
    """
    SELECT {columns} FROM {given} JOIN chain_runs ON id = given_id
    ORDER BY id DESC FOR NO KEY UPDATE OF chain_runs
    """,
    input_columns={"given_id": "text"},
    row=LockedChainRun,
)

UPDATE_NODE_COUNTS = Statement(
    "chain_runs.update_node_counts",
    "Update the node counts of runs; the rows stay locked until commit.",
    """
    UPDATE chain_runs SET nodes_total = nodes_total + given_total, nodes_open = nodes_open + given_open,
        nodes_failed = nodes_failed + given_failed, updated_at = {now}
    FROM {given} WHERE id = given_id
    RETURNING {columns}
    """,
    input_columns={"given_id": "text", "given_total": "bigint", "given_open": "bigint", "given_failed": "bigint"},
    row=LockedChainRun,
)

_INSERT_RUN = """
    INSERT INTO chain_runs (id, chain_id, number, chain_version, idempotency_key, dag, parameters, trigger_kind, actor,
                            started_by, reason, trace_id, nodes_total, nodes_open, parent_run_id, parent_node_id,
                            origin_run_id, slot, authority, created_at, updated_at)
    SELECT given_id, given_chain_id, {number}, given_version, given_idempotency_key, chain_versions.dag,
           given_parameters, given_trigger_kind, given_actor, given_actor, given_reason, given_trace_id, given_total,
           given_open, given_parent_run_id, given_parent_node_id, given_origin_run_id, given_slot, given_authority,
           {{now}}, {{now}}
    FROM {{given}} JOIN chain_versions ON chain_id = given_chain_id AND chain_versions.version = given_version
    JOIN {counter} ON {counter}.id = given_chain_id
    WHERE true
    ON CONFLICT (chain_id, idempotency_key) DO NOTHING
    RETURNING number
    """
INSERT_RUN = Statement(
    "chain_runs.insert",
    "Insert a run with the next number of its chain and a DAG snapshot; a known idempotency key inserts nothing.",
    """
    WITH counted AS (
        UPDATE chains SET last_run_number = last_run_number + 1
        FROM {given} WHERE chains.id = given_chain_id AND NOT EXISTS (
            SELECT 1 FROM chain_runs WHERE chain_id = given_chain_id AND idempotency_key = given_idempotency_key)
        RETURNING chains.id AS id, last_run_number)
    """
    + _INSERT_RUN.format(number="last_run_number", counter="counted"),
    sqlite_sql=_INSERT_RUN.format(number="last_run_number + 1", counter="chains"),
    input_columns={
        "given_id": "text",
        "given_chain_id": "text",
        "given_version": "bigint",
        "given_idempotency_key": "text",
        "given_parameters": "jsonb",
        "given_trigger_kind": "text",
        "given_actor": "text",
        "given_reason": "text",
        "given_trace_id": "text",
        "given_total": "bigint",
        "given_open": "bigint",
        "given_parent_run_id": "text",
        "given_parent_node_id": "text",
        "given_origin_run_id": "text",
        "given_slot": "text",
        "given_authority": "jsonb",
    },
)

COUNT_RUN = Statement(
    "chains.count_run",
    "Count a run that was inserted; PostgreSQL does it in the statement that inserts the run.",
    "UPDATE chains SET last_run_number = :number WHERE id = :chain_id",
    only_dialect=Dialect.SQLITE,
)

FIND_BY_KEY = Statement(
    "chain_runs.find_by_key",
    "Find the run of an idempotency key.",
    "SELECT {columns} FROM chain_runs WHERE chain_id = :chain_id AND idempotency_key = :idempotency_key",
    row=NumberedRun,
)

_RUN_STARTS = (
    "prior_status = status, status = 'running', started_at = {now}, updated_at = {now}, reason = 'first_node_ready'"
)

START_RUNS = Statement(
    "chain_runs.start",
    "Set runs to running when their first node starts.",
    f"""
    UPDATE chain_runs SET {_RUN_STARTS}
    FROM {{given}} WHERE id = given_id AND {RUN_STATUS} = 'pending'
    """,
    input_columns={"given_id": "text"},
)

FINISH_RUNS = Statement(
    "chain_runs.finish",
    "Finish runs that have no open node.",
    f"""
    UPDATE chain_runs SET prior_status = status, status = given_status, finished_at = {{now}}, updated_at = {{now}},
        reason = given_reason, slot = NULL
    FROM {{given}} WHERE id = given_id AND {RUN_STATUS} IN ('running', 'stopping') AND nodes_open = 0
    RETURNING {{columns}}
    """,
    input_columns={"given_id": "text", "given_status": "text", "given_reason": "text"},
    row=ChainRunFinished,
    columns={"run_id": "id"},
)

# Nodes.

INSERT_NODES = Statement(
    "chain_nodes.insert",
    "Insert the nodes of a run, or the instances of a mapped node.",
    """
    INSERT INTO chain_nodes (run_id, node_id, type, ordinal, priority, waiting_on, deps_success, job_id, parent_id,
                             item, concurrency_pool, updated_at)
    SELECT given_run_id, given_node_id, given_type, given_ordinal, given_priority, given_waiting_on, given_success,
           given_job_id, given_parent_id, given_item, given_pool, {now}
    FROM {given}
    """,
    input_columns={
        **KEY,
        "given_type": "text",
        "given_ordinal": "bigint",
        "given_priority": "bigint",
        "given_waiting_on": "bigint",
        "given_success": "bigint",
        "given_job_id": "text",
        "given_parent_id": "text",
        "given_item": "jsonb",
        "given_pool": "text",
    },
)

COPY_NODES = Statement(
    "chain_nodes.copy",
    "Copy succeeded nodes and their instances from another run.",
    """
    INSERT INTO chain_nodes (run_id, node_id, type, status, attempt, artifact, artifact_digest, artifact_bytes, actor,
                             reason, updated_at, started_at, ended_at, ordinal, priority, parent_id, item,
                             concurrency_pool)
    SELECT :run_id, node_id, type, status, attempt, artifact, artifact_digest, artifact_bytes, actor,
           'taken over from an earlier run', {now}, started_at, ended_at, ordinal, priority, parent_id, item,
           CAST(:pool AS text)
    FROM {given} JOIN chain_nodes ON chain_nodes.run_id = :origin_run_id
        AND (node_id = given_node_id OR COALESCE(parent_id, '') = given_node_id)
    """,
    input_columns={"given_node_id": "text"},
)

_START = f"""
    UPDATE chain_nodes SET prior_status = status, status = 'running', attempt = given_attempt, started_at = {{now}},
        ended_at = NULL, actor = given_actor, reason = given_reason, updated_at = {{now}}
    FROM {{given}}
    WHERE {IS_GIVEN_NODE} AND job_id = given_job_id AND {NODE_STATUS} IN ('pending', 'retrying')
    """
_STARTED = {
    **KEY,
    "given_job_id": "text",
    "given_attempt": "bigint",
    "given_actor": "text",
    "given_reason": "text",
}

START_NODES = Statement(
    "chain_nodes.start", "Set nodes whose jobs were claimed to running.", _START, input_columns=_STARTED
)

START_CLAIMED = Script(
    "chain_nodes.start_claimed",
    "Set nodes whose jobs were claimed to running, and their runs with their first node.",
    {"root_run": {"root_run_id": "text"}, "claim": _STARTED},
    (
        Step(
            "begun_run",
            f"""
            UPDATE chain_runs SET {_RUN_STARTS}
            FROM {{root_run}} WHERE id = root_run_id AND {RUN_STATUS} = 'pending'
            RETURNING chain_runs.id AS begun_id
            """,
            ("begun_id",),
            is_output=False,
        ),
        Step(
            "started_node",
            f"""
            UPDATE chain_nodes SET attempt = given_attempt, started_at = {{now}}, actor = given_actor,
                reason = given_reason, updated_at = {{now}},
                prior_status = CASE WHEN chain_nodes.status = 'running' THEN prior_status ELSE chain_nodes.status END,
                ended_at = CASE WHEN chain_nodes.status = 'running' THEN ended_at END, status = 'running'
            FROM {{claim}}
            WHERE {IS_GIVEN_NODE} AND job_id = given_job_id AND {NODE_STATUS} IN ('pending', 'retrying', 'running')
            """,
            after="begun_run",
            is_output=False,
        ),
    ),
)
"""A node that is running already gets another attempt: the lease of the previous one expired."""

RELEASE_NODES = Statement(
    "chain_nodes.release",
    "Set nodes to retrying, with the reason.",
    f"""
    UPDATE chain_nodes SET prior_status = status, status = 'retrying', actor = given_actor, reason = given_reason,
        last_error = COALESCE((SELECT COALESCE(error, error_code) FROM jobs WHERE id = given_job_id), last_error),
        updated_at = {{now}}
    FROM {{given}}
    WHERE {IS_GIVEN_NODE} AND job_id = given_job_id AND {NODE_STATUS} = 'running'
    """,
    input_columns={**KEY, "given_job_id": "text", "given_actor": "text", "given_reason": "text"},
)

FINISH_NODES = Statement(
    "chain_nodes.finish",
    "Finish nodes whose jobs failed or were canceled without a result of their worker.",
    f"""
    UPDATE chain_nodes SET prior_status = status, status = given_status, ended_at = {{now}}, updated_at = {{now}},
        actor = given_actor, reason = given_reason, artifact = NULL, artifact_digest = NULL, artifact_bytes = 0,
        slot = NULL,
        last_error = COALESCE((SELECT COALESCE(error, error_code) FROM jobs WHERE id = given_job_id), last_error)
    FROM {{given}}
    WHERE {IS_GIVEN_NODE} AND job_id = given_job_id AND {NODE_STATUS} IN ('pending', 'running', 'retrying')
    RETURNING {{columns}}
    """,
    input_columns={
        **KEY,
        "given_job_id": "text",
        "given_status": "text",
        "given_actor": "text",
        "given_reason": "text",
    },
    row=FinishedNode,
    columns=FINISHED_NODE,
)

CLOSE_NODES = Statement(
    "chain_nodes.close",
    "Finish nodes that have no running job: resumed, joined, completed manually or stopped.",
    f"""
    UPDATE chain_nodes SET prior_status = status, status = given_status, ended_at = {{now}}, updated_at = {{now}},
        actor = given_actor, reason = given_reason, last_error = given_error,
        artifact = CASE WHEN given_bytes = 0 THEN artifact ELSE given_artifact END,
        artifact_digest = CASE WHEN given_bytes = 0 THEN artifact_digest ELSE given_digest END,
        artifact_bytes = CASE WHEN given_bytes = 0 THEN artifact_bytes ELSE given_bytes END, slot = NULL,
        wait_on = NULL, wait_key = NULL, wait_until = NULL
    FROM {{given}}
    WHERE {IS_GIVEN_NODE} AND {NODE_STATUS} = given_from
      AND (given_wait_on IS NULL OR (wait_on = given_wait_on AND wait_key = given_wait_key))
    RETURNING {{columns}}
    """,
    input_columns={
        **KEY,
        "given_from": "text",
        "given_status": "text",
        "given_actor": "text",
        "given_reason": "text",
        "given_error": "text",
        "given_artifact": "jsonb",
        "given_digest": "text",
        "given_bytes": "bigint",
        "given_wait_on": "text",
        "given_wait_key": "text",
    },
    row=FinishedNode,
    columns=FINISHED_NODE,
)

_COUNTED = """waiting_on = waiting_on - given_ended, deps_success = deps_success + given_success,
        deps_failed = deps_failed + given_failed, deps_skipped = deps_skipped + given_skipped"""

COUNT_DEPS = Statement(
    "chain_nodes.count_deps",
    "Count finished dependencies; assigns the job of a node that needs nothing but their success.",
    f"""
    UPDATE chain_nodes SET {_COUNTED},
        job_id = CASE WHEN given_job_id IS NOT NULL AND waiting_on = given_ended AND deps_failed + given_failed = 0
            AND deps_skipped + given_skipped = 0 THEN given_job_id ELSE job_id END
    FROM {{given}}
    WHERE {IS_GIVEN_NODE} AND {NODE_STATUS} = 'pending'
    RETURNING {{columns}}
    """,
    input_columns={**COUNTS, "given_job_id": "text"},
    row=CountedNode,
    columns=DEPENDENCY_COUNTS,
)

COUNT_INSTANCES = Statement(
    "chain_nodes.count_instances",
    "Count finished instances for their mapped nodes.",
    f"""
    UPDATE chain_nodes SET {_COUNTED}
    FROM {{given}}
    WHERE {IS_GIVEN_NODE} AND {NODE_STATUS} = 'running'
    RETURNING {{columns}}
    """,
    input_columns=COUNTS,
    row=CountedNode,
    columns=DEPENDENCY_COUNTS,
)

SKIP_NODES = Statement(
    "chain_nodes.skip",
    "Skip nodes whose dependency rule can no longer be met.",
    f"""
    UPDATE chain_nodes SET prior_status = status, status = 'skipped', ended_at = {{now}}, updated_at = {{now}},
        actor = 'engine', reason = given_reason
    FROM {{given}}
    WHERE {IS_GIVEN_NODE} AND {NODE_STATUS} = 'pending'
    """,
    input_columns={**KEY, "given_reason": "text"},
)

SELECT_STATES = Statement(
    "chain_nodes.select_states",
    "Read the state of all nodes of a run.",
    "SELECT {columns} FROM chain_nodes WHERE run_id = :run_id ORDER BY ordinal, node_id",
    row=NodeState,
    columns=DEPENDENCY_COUNTS,
)

SET_COUNTS = Statement(
    "chain_nodes.set_counts",
    "Write recomputed dependency counts of waiting nodes.",
    f"""
    UPDATE chain_nodes SET waiting_on = given_ended, deps_success = given_success, deps_failed = given_failed,
        deps_skipped = given_skipped, slot = NULL, job_id = NULL
    FROM {{given}}
    WHERE {IS_GIVEN_NODE} AND {NODE_STATUS} = 'pending'
    """,
    input_columns=COUNTS,
)
