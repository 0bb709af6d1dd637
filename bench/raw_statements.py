"""The statements that the bare rows of the benchmarks run: one plain statement for each thing that the queue does.

They are kept apart from the store's own, so that the floor stays where it is when the store changes how it works.
"""

from __future__ import annotations

from typing import Final

from adjudge.store.engine.rows import select_list
from adjudge.store.engine.statement import Dialect, Statement
from adjudge.store.jobs.models import Job
from adjudge.store.jobs.outbox import DELIVERY
from adjudge.store.jobs.scripts import NEW_JOB

_STANDS: Final = "COALESCE(status, '')"
_FENCE: Final = f"id = given_id AND attempt_id = given_attempt AND lease_owner = given_owner AND {_STANDS} = 'running'"
_NOT_LEASED: Final = "lease_owner = NULL, lease_until = NULL"

_INSERT = """
    INSERT INTO jobs (id, kind, dedupe_key, submission_id, rejudge_batch_id, chain_run_id, node_id, origin_job_id,
                      max_attempts, priority, timeout_ms, available_at, payload, actor, trace_id,
                      created_at, updated_at)
    SELECT given_id, given_kind, given_dedupe_key, given_submission_id, given_rejudge_batch_id, given_chain_run_id,
           given_node_id, given_origin_job_id, given_max_attempts, given_priority, given_timeout_ms,
           {now} + given_delay_us, given_payload, given_actor, given_trace_id, {now}, {now}
    FROM {given} WHERE true
    ON CONFLICT (kind, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
    RETURNING id"""

INSERT = Statement(
    "jobs.insert",
    "Create jobs; one whose dedupe key exists already is left out.",
    _INSERT,
    input_columns=NEW_JOB,
)

INSERT_OUTBOX = Statement(
    "outbox.insert",
    "Insert outbox rows in the transaction that creates their jobs.",
    """
    INSERT INTO outbox (job_id, priority, next_attempt_at, turn_at, due_at)
    SELECT given_id, given_priority, {now} + given_delay_us, {now} + given_delay_us, {now} FROM {given}
    """,
    input_columns={"given_id": "text", "given_priority": "bigint", "given_delay_us": "bigint"},
)

FINISH = Statement(
    "raw.finish",
    "End jobs with a result: names job, attempt, owner, an unexpired lease and 'running', or changes nothing.",
    f"""
    UPDATE jobs SET prior_status = status, status = given_status, result = given_result, {_NOT_LEASED},
        actor = given_owner, reason = given_reason, error_code = given_error_code, error = given_error,
        finished_at = {{now}}, updated_at = {{now}}
    FROM {{given}}
    WHERE {_FENCE} AND lease_until > {{now}}
    RETURNING {select_list(Job)}
    """,
    input_columns={
        "given_id": "text",
        "given_attempt": "bigint",
        "given_owner": "text",
        "given_status": "text",
        "given_result": "jsonb",
        "given_reason": "text",
        "given_error_code": "text",
        "given_error": "text",
    },
)

_QUEUE = f"""
    UPDATE jobs SET prior_status = status, status = 'queued', queued_at = {{now}},
        actor = :actor, reason = 'delivered', updated_at = {{now}}
    FROM {{source}}
    WHERE id = {{key}} AND {_STANDS} = 'pending'
    RETURNING {select_list(Job)}
    """

NOTE_DELIVERED = """
    UPDATE outbox SET state = 'delivered', dispatched_at = {now}, stream_entry_id = given_entry_id, last_error = NULL
    FROM {given} WHERE job_id = given_id AND COALESCE(state, '') = 'pending' AND dispatch_seq = given_dispatch_seq
    RETURNING job_id
    """

DELIVERED = Statement(
    "outbox.delivered",
    "Note that messages are in the stream, unless the job has been put back for another delivery meanwhile.",
    NOTE_DELIVERED,
    input_columns=DELIVERY,
    only_dialect=Dialect.SQLITE,
)

MARK_QUEUED = Statement(
    "jobs.mark_queued",
    "Note that a message about the job is in the stream.",
    _QUEUE.replace("{source}", "{given}").replace("{key}", "given_id"),
    input_columns={"given_id": "text"},
    only_dialect=Dialect.SQLITE,
)

MARK_DELIVERED = Statement(
    "jobs.mark_delivered",
    "Note deliveries, of the jobs and in the outbox, in one round trip; each job is locked before its outbox row.",
    f"""
    WITH delivered AS (
        SELECT id AS given_id, given_entry_id, given_dispatch_seq FROM {{given}} JOIN jobs ON id = given_id
        ORDER BY id FOR NO KEY UPDATE OF jobs
    ), noted AS ({NOTE_DELIVERED.replace("{given}", "delivered")})
    {_QUEUE.replace("{source}", "noted").replace("{key}", "job_id")}
    """,
    input_columns=DELIVERY,
    only_dialect=Dialect.POSTGRES,
)

CAPACITIES: Final = ("urgent_capacity", "high_capacity", "ordinary_capacity", "low_capacity")


def _due(lock: str = "") -> str:
    return " UNION ALL ".join(
        f"""
        SELECT id FROM (
            SELECT id FROM outbox WHERE state = 'pending' AND priority = {band} AND next_attempt_at <= {{now}}
            ORDER BY turn_at, id LIMIT :{capacity} {lock}
        ) AS {capacity}
        """
        for band, capacity in enumerate(CAPACITIES)
    )


def _take(smaller: str) -> str:
    return f"""
    UPDATE outbox SET attempts = attempts + 1, dispatch_seq = dispatch_seq + 1,
        next_attempt_at = {{now}} + CAST(:base_us AS bigint) * (1 << CAST({smaller}(attempts, 10) AS integer))
    """


_MESSAGE = "jobs.id AS id, kind, jobs.priority AS priority, trace_id, payload, attempts"

TAKE_DUE = Statement(
    "outbox.take_due",
    "Take due rows of each band for delivery, and read the messages of their jobs.",
    f"""
    WITH taken AS (
        {_take("LEAST").strip()}
        WHERE id = ANY (ARRAY({_due("FOR UPDATE SKIP LOCKED")}))
        RETURNING outbox.id AS position, job_id, attempts, dispatch_seq, due_at
    )
    SELECT {_MESSAGE}, {{now}} - taken.due_at AS waited_us, dispatch_seq
    FROM taken JOIN jobs ON jobs.id = job_id ORDER BY position
    """,
    only_dialect=Dialect.POSTGRES,
)

TAKE = Statement(
    "outbox.take",
    "Take due rows of each band for delivery.",
    f"{_take('min')} WHERE id IN ({_due()}) RETURNING job_id",
    only_dialect=Dialect.SQLITE,
)

READ_TAKEN = Statement(
    "outbox.read_taken",
    "Read the messages of each job taken.",
    f"""
    SELECT {_MESSAGE}, {{now}} - outbox.due_at AS waited_us, dispatch_seq
    FROM {{given}} JOIN jobs ON jobs.id = given_id JOIN outbox ON outbox.job_id = jobs.id
    ORDER BY outbox.id
    """,
    input_columns={"given_id": "text"},
)
