"""What steps of chains are written with: one statement for all of a step on PostgreSQL, a few on SQLite.

Within one statement of PostgreSQL every part reads the same snapshot. Still nobody counts twice: an UPDATE that had to
wait for a row goes on with that row's latest version, and all that is decided is decided from rows updated here. A
session plans it once, for a row of each kind: no two of its long lists may be held against each other, but for those
who follow against those who end, whose product ``EDGES_MAX`` bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from adjudge.store.chains import statements as nodes
from adjudge.store.engine.statement import Dialect, Statement

EDGES_MAX: Final = 100_000
Spelled = Callable[[str], str]
"""How a value of a follower is written, given its name."""


def _ready(number: str) -> str:
    return f"waiting_on = {number} AND deps_failed = 0 AND deps_skipped = 0"


def _begins(number: str, of: Spelled) -> str:
    """How a dependent is counted down, and begins where that was the last and a worker takes it on."""
    taken = f"{_ready(number)} AND {of('worker')} IS NOT NULL"
    return f"""
        waiting_on = waiting_on - {number}, deps_success = deps_success + {number}, updated_at = {{now}},
        prior_status = CASE WHEN {taken} THEN chain_nodes.status ELSE chain_nodes.prior_status END,
        status = CASE WHEN {taken} THEN 'running' ELSE chain_nodes.status END,
        attempt = CASE WHEN {taken} THEN 1 ELSE chain_nodes.attempt END,
        started_at = CASE WHEN {taken} THEN {{now}} ELSE chain_nodes.started_at END,
        actor = CASE WHEN {taken} THEN {of("worker")} ELSE chain_nodes.actor END,
        reason = CASE WHEN {taken} THEN 'claimed' ELSE chain_nodes.reason END,
        job_id = CASE WHEN {_ready(number)} THEN {of("job_id")} ELSE chain_nodes.job_id END""".strip()


def _born(of: Spelled) -> str:
    """How a follower's job is created: running where a worker takes it on, pending where none does."""
    is_left = f"CASE WHEN {of('worker')} IS NULL THEN"
    return f"""
        INSERT INTO jobs (id, kind, chain_run_id, node_id, max_attempts, priority, timeout_ms, available_at, payload,
                          actor, trace_id, created_at, updated_at, status, prior_status, attempt_id, lease_owner,
                          lease_until, reason, started_at)
        SELECT {of("job_id")}, 'node', {of("run_id")}, {of("node_id")}, {of("max_attempts")}, {of("priority")},
               {of("timeout_ms")}, {{now}}, {of("payload")}, COALESCE({of("worker")}, 'engine'), {of("trace_id")},
               {{now}}, {{now}}, {is_left} 'pending' ELSE 'running' END, {is_left} NULL ELSE 'pending' END,
               {is_left} 0 ELSE 1 END, {of("worker")}, {is_left} NULL ELSE {{now}} + :lease_us END,
               {is_left} NULL ELSE 'claimed' END, {is_left} NULL ELSE {{now}} END""".strip()


FOLLOW: Final = {
    "run_id": "text",
    "node_id": "text",
    "job_id": "text",
    "worker": "text",
    "max_attempts": "bigint",
    "priority": "bigint",
    "timeout_ms": "bigint",
    "payload": "jsonb",
    "trace_id": "text",
}
"""What is given of a node that may follow."""
FOLLOW_AFTER: Final = {**FOLLOW, "after": "text"}
"""The same, with the jobs that it comes after."""

_ENDS: Final = {
    "given_id": "text",
    "given_attempt": "bigint",
    "given_owner": "text",
    "given_result": "jsonb",
    **nodes.KEY,
    "given_artifact": "jsonb",
    "given_digest": "text",
    "given_bytes": "bigint",
}
_ENDED: Final = f"""
    WITH ended_job AS (
        UPDATE jobs SET prior_status = status, status = 'succeeded', result = given_result,
            lease_owner = NULL, lease_until = NULL, actor = given_owner, reason = 'finished', error_code = NULL,
            error = NULL, finished_at = {{now}}, updated_at = {{now}}
        FROM {{given}}
        WHERE id = given_id AND attempt_id = given_attempt AND lease_owner = given_owner
          AND COALESCE(status, '') = 'running' AND lease_until > {{now}}
        RETURNING id, given_owner, given_run_id, given_node_id, given_artifact, given_digest, given_bytes
    ), ended_node AS (
        UPDATE chain_nodes SET prior_status = status, status = 'success', ended_at = {{now}}, updated_at = {{now}},
            actor = given_owner, reason = 'finished', artifact = given_artifact, artifact_digest = given_digest,
            artifact_bytes = given_bytes, slot = NULL, last_error = NULL
        FROM ended_job
        WHERE {nodes.NODE} AND job_id = ended_job.id AND {nodes.STANDS} IN ('running', 'retrying')
        RETURNING chain_nodes.run_id AS run_id, job_id, started_at, ended_at
    )"""


def _counted(number: str) -> str:
    """What is left open of a run; one that would end or is to stop makes the statement fail."""
    continues = f"{nodes.RUN_STANDS} = 'running' AND nodes_open > {number}"
    return f"updated_at = {{now}}, nodes_open = nodes_open - {number} / CASE WHEN {continues} THEN 1 ELSE 0 END"


def _moved(number: str, of: Spelled) -> str:
    """What becomes of a dependent; one that would be skipped makes the statement fail."""
    is_skipped = f"waiting_on = {number} AND deps_failed + deps_skipped > 0"
    return f"{_begins(number, of)}, deps_failed = deps_failed / CASE WHEN {is_skipped} THEN 0 ELSE 1 END"


_NOTED: Final = """
        RETURNING id, priority, status, lease_owner, lease_until, started_at
    ), noted AS (
        INSERT INTO job_status_log (job_id, from_status, to_status, attempt_id, actor, reason, at)
        SELECT id, 'pending', 'running', 1, lease_owner, 'claimed', started_at FROM born WHERE status = 'running'
    ), told AS (
        INSERT INTO outbox (job_id, priority, next_attempt_at, created_at)
        SELECT id, LEAST(GREATEST(priority, 0), 3), {now}, {now} FROM born WHERE status = 'pending'
    )
    SELECT ended_job.id AS id, 'succeeded' AS status, started_at, ended_at AS until
    FROM ended_job LEFT JOIN ended_node ON job_id = ended_job.id
    UNION ALL SELECT id, status, started_at, lease_until FROM born
    """

FINISH_AND_CLAIM_NEXT = Statement(
    "chain_advance.finish_and_claim_next",
    "Finish succeeded nodes, count them for their dependents, and claim the dependents that became ready.",
    f"""{_ENDED}, run AS (
        UPDATE chain_runs SET {_counted("n")}
        FROM (SELECT run_id, count(*) AS n FROM ended_node GROUP BY run_id ORDER BY run_id DESC) AS ended
        WHERE id = ended.run_id
        RETURNING id
    ), ended AS MATERIALIZED (
        SELECT job_id FROM ended_node JOIN run ON run.id = ended_node.run_id
    ), follow AS MATERIALIZED (
        SELECT {", ".join(FOLLOW)},
            (SELECT count(*) FROM ended WHERE ended.job_id = ANY (CAST(after AS text[]))) AS n
        FROM unnest({", ".join(f"CAST(:{name} AS {kind}[])" for name, kind in FOLLOW_AFTER.items())})
            AS given_follow({", ".join(FOLLOW_AFTER)})
    ), moved AS (
        UPDATE chain_nodes SET {_moved("n", lambda name: f"follow.{name}")}
        FROM follow
        WHERE n > 0 AND chain_nodes.run_id = follow.run_id AND chain_nodes.node_id = follow.node_id
          AND {nodes.STANDS} = 'pending'
        RETURNING chain_nodes.job_id AS given_job_id, follow.*
    ), born AS (
        {_born(lambda name: name)}
        FROM moved WHERE given_job_id = job_id
    {_NOTED}""",
    input_columns=_ENDS,
    only_dialect=Dialect.POSTGRES,
)


def _value(name: str) -> str:
    return f"CAST(:{name} AS {FOLLOW[name]})"


TAKE_ONE = Statement(
    "chain_steps.take_one",
    "End a node that succeeded, count it for the only one that depends on it, and let that begin, all at once.",
    f"""{_ENDED}, run AS (
        UPDATE chain_runs SET {_counted("1")} FROM ended_node WHERE id = ended_node.run_id RETURNING id
    ), moved AS (
        UPDATE chain_nodes SET {_moved("1", _value)}
        FROM run
        WHERE chain_nodes.run_id = run.id AND chain_nodes.node_id = {_value("node_id")} AND {nodes.STANDS} = 'pending'
        RETURNING chain_nodes.job_id AS given_job_id
    ), born AS (
        {_born(_value)}
        FROM moved WHERE given_job_id = {_value("job_id")}
    {_NOTED}""",
    input_columns=_ENDS,
    only_dialect=Dialect.POSTGRES,
)
"""Every line of nodes is made of these: without lists, groups and what they are held together by."""


def _given(name: str) -> str:
    return f"given_{name}"


COUNT_SUCCESS = Statement(
    "chain_advance.count_success",
    "Count succeeded dependencies; assigns and starts the job of a node that became ready.",
    f"""
    UPDATE chain_nodes SET {_begins("given_ended", _given)}
    FROM {{given}}
    WHERE {nodes.NODE} AND {nodes.STANDS} = 'pending'
    RETURNING waiting_on, deps_failed, deps_skipped, job_id
    """,
    input_columns={**nodes.KEY, "given_ended": "bigint", "given_job_id": "text", "given_worker": "text"},
    only_dialect=Dialect.SQLITE,
)

INSERT_CLAIMED_JOBS = Statement(
    "chain_advance.insert_jobs",
    "Insert node jobs; one that a worker claims is inserted as running.",
    f"""
    {_born(_given)}
    FROM {{given}} WHERE true RETURNING id, status, lease_owner, lease_until, started_at
    """,
    input_columns={_given(name): kind for name, kind in FOLLOW.items()},
    only_dialect=Dialect.SQLITE,
)

LOG_CLAIMS = Statement(
    "chain_advance.log_claims",
    "Log the claims of jobs inserted as running.",
    """
    INSERT INTO job_status_log (job_id, from_status, to_status, attempt_id, actor, reason, at)
    SELECT given_id, 'pending', 'running', 1, given_worker, 'claimed', given_at FROM {given}
    """,
    input_columns={"given_id": "text", "given_worker": "text", "given_at": "bigint"},
    only_dialect=Dialect.SQLITE,
)
