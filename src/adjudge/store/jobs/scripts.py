"""The scripts of jobs: operations that write jobs and the outbox together."""

from __future__ import annotations

from typing import Final

from adjudge.store.engine.script import Script, Step
from adjudge.store.jobs.models import HELD_AT
from adjudge.store.jobs.outbox import DELIVERY

BAND: Final = "CASE WHEN {0} < 0 THEN 0 WHEN {0} > 3 THEN 3 ELSE {0} END"
"""The priority band of a priority."""

TURN_US: Final = 10_000_000
"""How far the turns of one owner's waiting jobs in a band are apart.

Due jobs are taken by their turn. That of the first waiting job of an owner is its due time, so it stands before all but
the first of another owner's thousand; that of a later job passes in time, so nobody waits for ever.
"""

NEW_JOB: Final = {
    "given_id": "text",
    "given_kind": "text",
    "given_dedupe_key": "text",
    "given_submission_id": "text",
    "given_rejudge_batch_id": "text",
    "given_chain_run_id": "text",
    "given_node_id": "text",
    "given_origin_job_id": "text",
    "given_max_attempts": "bigint",
    "given_priority": "bigint",
    "given_timeout_ms": "bigint",
    "given_delay_us": "bigint",
    "given_payload": "jsonb",
    "given_actor": "text",
    "given_trace_id": "text",
}

CREATE = Script(
    "jobs.create",
    "Create jobs with their outbox rows; one whose dedupe key exists already is left out.",
    {"new_job": NEW_JOB},
    (
        Step(
            "created_job",
            """
            INSERT INTO jobs (id, kind, dedupe_key, submission_id, rejudge_batch_id, chain_run_id, node_id,
                              origin_job_id, max_attempts, priority, timeout_ms, available_at, payload, actor, trace_id,
                              created_at, updated_at)
            SELECT given_id, given_kind, given_dedupe_key, given_submission_id, given_rejudge_batch_id,
                   given_chain_run_id, given_node_id, given_origin_job_id, given_max_attempts, given_priority,
                   given_timeout_ms, {now} + given_delay_us, given_payload, given_actor, given_trace_id, {now}, {now}
            FROM {new_job} WHERE true
            ON CONFLICT (kind, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
            RETURNING id AS job_id, priority AS job_priority, available_at AS due_at, COALESCE(actor, '') AS job_owner
            """,
            ("job_id", "job_priority", "due_at", "job_owner"),
        ),
        Step(
            "owner_turn",
            f"""
            SELECT owner_band, turn_owner, (
                SELECT max(turn_at) + {TURN_US} FROM outbox
                WHERE state = 'pending' AND priority = owner_band AND owner = turn_owner AND turn_at < {HELD_AT}
            ) AS next_turn_at
            FROM (
                SELECT DISTINCT {BAND.format("job_priority")} AS owner_band, job_owner AS turn_owner
                FROM {{created_job}}
            ) AS owners WHERE turn_owner <> ''
            """,
            ("owner_band", "turn_owner", "next_turn_at"),
            is_output=False,
        ),
        Step(
            "announced",
            f"""
            INSERT INTO outbox (job_id, priority, owner, next_attempt_at, turn_at, due_at)
            SELECT job_id, job_band, job_owner, due_at, CASE
                    WHEN turn_owner IS NULL OR due_at >= {HELD_AT} THEN due_at
                    WHEN next_turn_at > due_at THEN next_turn_at + {TURN_US} * (job_position - 1)
                    ELSE due_at + {TURN_US} * (job_position - 1)
                END, due_at
            FROM (
                SELECT job_id, {BAND.format("job_priority")} AS job_band, job_owner, due_at, row_number() OVER (
                    PARTITION BY {BAND.format("job_priority")}, job_owner ORDER BY job_id
                ) AS job_position FROM {{created_job}}
            ) AS numbered LEFT JOIN {{owner_turn}} ON turn_owner = job_owner AND owner_band = job_band
            ORDER BY job_id
            """,
            is_output=False,
        ),
    ),
)

MARK_DELIVERED = Script(
    "jobs.mark_delivered",
    "Note deliveries, of the jobs and in the outbox; each job is locked before its outbox row.",
    {"delivery": DELIVERY},
    (
        Step(
            "locked_job",
            """
            SELECT id AS locked_id, given_entry_id, given_dispatch_seq FROM {delivery} JOIN jobs ON id = given_id
            ORDER BY id FOR NO KEY UPDATE OF jobs
            """,
            ("locked_id", "given_entry_id", "given_dispatch_seq"),
            is_output=False,
            sqlite="SELECT given_id AS locked_id, given_entry_id, given_dispatch_seq FROM {delivery}",
        ),
        Step(
            "delivered",
            """
            UPDATE outbox SET state = 'delivered', dispatched_at = {now}, stream_entry_id = given_entry_id,
                last_error = NULL
            FROM {locked_job} WHERE job_id = locked_id AND COALESCE(state, '') = 'pending'
                AND dispatch_seq = given_dispatch_seq
            RETURNING job_id AS delivered_id
            """,
            ("delivered_id",),
            is_output=False,
        ),
        Step(
            "queued_job",
            """
            UPDATE jobs SET prior_status = status, status = 'queued', queued_at = {now}, actor = :actor,
                reason = 'delivered', updated_at = {now}
            FROM {delivered}
            WHERE id = delivered_id AND COALESCE(status, '') = 'pending'
            RETURNING id AS job_id, kind
            """,
            ("job_id", "kind"),
        ),
    ),
)

RESULT: Final = {
    "given_id": "text",
    "given_attempt": "bigint",
    "given_owner": "text",
    "given_status": "text",
    "given_result": "jsonb",
    "given_reason": "text",
    "given_error_code": "text",
    "given_error": "text",
    "given_delay_us": "bigint",
    "given_refund": "bigint",
    "given_letter_id": "text",
}
"""The result of an attempt; ``given_status`` is ``pending`` if the job is to be retried while it has an attempt left.
"""

_GOES_BACK: Final = "given_status = 'pending' AND attempt_id < max_attempts + given_refund"
_STATUS: Final = f"CASE WHEN given_status <> 'pending' OR {_GOES_BACK} THEN given_status ELSE 'failed' END"

FINISHED_JOB = Step(
    "finished_job",
    f"""
    UPDATE jobs SET prior_status = status, status = {_STATUS},
        max_attempts = max_attempts + CASE WHEN {_GOES_BACK} THEN given_refund ELSE 0 END,
        available_at = CASE WHEN {_GOES_BACK} AND available_at < {HELD_AT} THEN {{now}} + given_delay_us
            ELSE available_at END,
        result = given_result, lease_owner = NULL, lease_until = NULL, actor = given_owner, reason = given_reason,
        error_code = CASE WHEN given_status = 'pending' AND NOT ({_GOES_BACK})
            THEN COALESCE(given_error_code, 'RETRIES_EXHAUSTED') ELSE given_error_code END,
        error = given_error, finished_at = CASE WHEN {_GOES_BACK} THEN NULL ELSE {{now}} END, updated_at = {{now}}
    FROM {{result}}
    WHERE id = given_id AND attempt_id = given_attempt AND lease_owner = given_owner
      AND COALESCE(status, '') = 'running' AND lease_until > {{now}}
    RETURNING jobs.id AS job_id, jobs.attempt_id AS job_attempt, jobs.actor AS job_actor, jobs.status AS job_status,
              jobs.error_code AS job_error_code, jobs.finished_at AS job_finished_at,
              jobs.max_attempts AS job_max_attempts, jobs.kind AS job_kind, jobs.priority AS job_priority,
              jobs.available_at AS due_at
    """,
    (
        "job_id",
        "job_attempt",
        "job_actor",
        "job_status",
        "job_error_code",
        "job_finished_at",
        "job_max_attempts",
        "job_kind",
        "job_priority",
        "due_at",
    ),
    carries="result",
    key=(("job_id", "given_id"), ("job_attempt", "given_attempt"), ("job_actor", "given_owner")),
)
"""The fenced write: it names job, attempt, lease owner, an unexpired lease and 'running', or changes nothing."""

REQUEUED = Step(
    "requeued",
    f"""
    INSERT INTO outbox (job_id, priority, next_attempt_at, turn_at, due_at)
    SELECT job_id, {BAND.format("job_priority")}, due_at, due_at, due_at FROM {{finished_job}} WHERE true
    ON CONFLICT (job_id) DO UPDATE SET state = 'pending', attempts = 0, dispatch_seq = outbox.dispatch_seq + 1,
        next_attempt_at = excluded.next_attempt_at, turn_at = excluded.turn_at, due_at = excluded.due_at,
        dispatched_at = NULL, stream_entry_id = NULL, last_error = NULL
    RETURNING job_id AS requeued_id
    """,
    ("requeued_id",),
    only=("job_status", "pending"),
    is_output=False,
)

DEAD_LETTER = Step(
    "dead_letter",
    """
    INSERT INTO dead_letters (id, job_id, kind, attempt_id, error_code, error, created_at)
    SELECT given_letter_id, job_id, job_kind, given_attempt, COALESCE(job_error_code, 'UNKNOWN'), given_error, {now}
    FROM {finished_job} WHERE given_letter_id IS NOT NULL
    RETURNING id AS letter_id
    """,
    ("letter_id",),
    only=("job_status", "failed"),
    is_output=False,
)

FINISH = Script(
    "jobs.finish",
    "End attempts: jobs succeed, fail with a dead letter, or go back to the outbox for another attempt.",
    {"result": RESULT},
    (FINISHED_JOB, REQUEUED, DEAD_LETTER),
)
