"""The SQL of jobs. Every write names the state that it expects, so a late write changes nothing.

``given_…`` columns are input; all others are columns of the row. ``prior_status`` stores the previous status, because
neither database can return the old value of an updated column.
"""

from __future__ import annotations

from adjudge.store.engine.statement import Dialect, Statement
from adjudge.store.jobs.models import (
    HELD_AT,
    DuplicateJob,
    ExpiredAttempt,
    ExpiredJob,
    Fence,
    Job,
    JobState,
    OpenDeadLetter,
    QueuedJob,
    RefundedJob,
)

_IS_HELD = f"available_at >= {HELD_AT}"


def _due_in(delay: str) -> str:
    """When a job is due that waits again; one that is held stays held."""
    return f"CASE WHEN {_IS_HELD} THEN available_at ELSE {{now}} + {delay} END"


_NOT_LEASED = "lease_owner = NULL, lease_until = NULL"
_STANDS = "COALESCE(status, '')"
"""The status as a filter only, for rows that are found by their key.

PostgreSQL estimates the partial indexes on a status as nearly empty, as they are when statistics are collected. It
would otherwise start from them and compare the whole backlog with the whole batch.
"""
_FENCE = f"id = given_id AND attempt_id = given_attempt AND lease_owner = given_owner AND {_STANDS} = 'running'"

FIND_DEDUPED = Statement(
    "jobs.find_deduped",
    "Find existing jobs with the same dedupe keys.",
    "SELECT {columns} FROM {given} JOIN jobs ON kind = given_kind AND dedupe_key = given_dedupe_key",
    input_columns={"given_id": "text", "given_kind": "text", "given_dedupe_key": "text"},
    row=DuplicateJob,
    columns={"new_id": "given_id", "existing_id": "jobs.id"},
)

_IS_WAITING = f"({_STANDS} IN ('pending', 'queued') AND available_at <= {{now}})"
_IS_EXPIRED = f"({_STANDS} = 'running' AND lease_until <= {{now}})"

CLAIM = Statement(
    "jobs.claim",
    "Claim jobs that wait or whose lease has expired: the compare-and-set before which nothing executes.",
    f"""
    UPDATE jobs SET prior_status = status, status = 'running', attempt_id = attempt_id + 1,
        lease_owner = :worker, lease_until = {{now}} + :lease_us, heartbeat_at = NULL, actor = :worker,
        reason = CASE WHEN status = 'running' THEN 'reclaimed' ELSE 'claimed' END,
        error_code = NULL, error = NULL, started_at = {{now}}, updated_at = {{now}}
    FROM {{given}}
    WHERE id = given_id AND ({_IS_WAITING} OR {_IS_EXPIRED}) AND attempt_id < max_attempts
    RETURNING {{columns}}
    """,
    input_columns={"given_id": "text"},
    row=Job,
)
"""The attempt id grows, so that writes of a worker whose lease expired match no row."""

FIND = Statement(
    "jobs.find",
    "Read running jobs of results whose caller does not have them.",
    f"SELECT {{columns}} FROM {{given}} JOIN jobs ON id = given_id WHERE {_STANDS} = 'running'",
    input_columns={"given_id": "text"},
    row=Job,
)

RENEW = Statement(
    "jobs.renew",
    "Extend the leases of a worker's jobs.",
    f"""
    UPDATE jobs SET lease_until = {{now}} + :lease_us, heartbeat_at = {{now}} FROM {{given}}
    WHERE {_FENCE} AND lease_until > {{now}}
    RETURNING {{columns}}
    """,
    input_columns={"given_id": "text", "given_attempt": "bigint", "given_owner": "text"},
    row=Fence,
    columns={"job_id": "id"},
)

SELECT_CANCELED = Statement(
    "jobs.select_canceled",
    "Find which of the given jobs were canceled.",
    "SELECT id FROM {given} JOIN jobs ON id = given_id WHERE COALESCE(status, '') = 'canceled'",
    input_columns={"given_id": "text"},
)

LOCK = Statement(
    "jobs.lock",
    "Lock jobs in id order before several statements update some of them.",
    "SELECT id FROM {given} JOIN jobs ON id = given_id ORDER BY id FOR NO KEY UPDATE OF jobs",
    input_columns={"given_id": "text"},
    only_dialect=Dialect.POSTGRES,
)

RELEASE_EXPIRED = Statement(
    "jobs.release_expired",
    "Free jobs whose lease has expired, to be tried again.",
    f"""
    UPDATE jobs SET prior_status = status, status = 'pending', available_at = {_due_in("given_delay_us")},
        {_NOT_LEASED}, max_attempts = max_attempts + given_free_attempts, actor = :actor, reason = given_reason,
        error_code = NULL, error = NULL, updated_at = {{now}}
    FROM {{given}}
    WHERE {_FENCE} AND lease_until <= {{now}} AND attempt_id < max_attempts + given_free_attempts
    RETURNING {{columns}}
    """,
    input_columns={
        "given_id": "text",
        "given_attempt": "bigint",
        "given_owner": "text",
        "given_delay_us": "bigint",
        "given_free_attempts": "bigint",
        "given_reason": "text",
    },
    row=Job,
)

DEAD_LETTER = Statement(
    "jobs.dead_letter",
    "Fail jobs that cannot be retried; guarded by the status that the caller read.",
    f"""
    UPDATE jobs SET prior_status = status, status = 'failed', {_NOT_LEASED},
        actor = COALESCE(CAST(:actor AS text), given_owner), reason = given_reason,
        error_code = given_error_code, error = given_error,
        finished_at = {{now}}, updated_at = {{now}}
    FROM {{given}}
    WHERE id = given_id AND attempt_id = given_attempt AND status = given_status
      AND (given_owner IS NULL OR (lease_owner = given_owner AND lease_until > {{now}}))
    RETURNING {{columns}}
    """,
    input_columns={
        "given_id": "text",
        "given_attempt": "bigint",
        "given_status": "text",
        "given_owner": "text",
        "given_reason": "text",
        "given_error_code": "text",
        "given_error": "text",
    },
    row=Job,
)

INSERT_DEAD_LETTERS = Statement(
    "jobs.insert_dead_letters",
    "Insert dead letters for failed jobs.",
    """
    INSERT INTO dead_letters (id, job_id, kind, attempt_id, error_code, error, created_at)
    SELECT given_letter_id, jobs.id, kind, attempt_id, COALESCE(error_code, 'UNKNOWN'), error, {now}
    FROM {given} JOIN jobs ON jobs.id = given_id
    """,
    input_columns={"given_letter_id": "text", "given_id": "text"},
)

CANCEL = Statement(
    "jobs.cancel",
    "Cancel unfinished jobs; the worker of a running one learns by notification or heartbeat.",
    f"""
    UPDATE jobs SET prior_status = status, status = 'canceled', {_NOT_LEASED},
        actor = :actor, reason = :reason, finished_at = {{now}}, updated_at = {{now}}
    FROM {{given}}
    WHERE id = given_id AND {_STANDS} IN ('pending', 'queued', 'running')
    RETURNING {{columns}}
    """,
    input_columns={"given_id": "text"},
    row=Job,
)

UNQUEUE = Statement(
    "jobs.unqueue",
    "Set queued jobs whose message was lost back to pending.",
    f"""
    UPDATE jobs SET prior_status = status, status = 'pending', available_at = {_due_in("0")},
        actor = :actor, reason = 'message_lost', updated_at = {{now}}
    FROM {{given}}
    WHERE id = given_id AND {_STANDS} = 'queued'
    RETURNING {{columns}}
    """,
    input_columns={"given_id": "text"},
    row=Job,
)

SELECT_EXPIRED = Statement(
    "jobs.select_expired",
    "Find running jobs whose lease has expired.",
    """
    SELECT {columns} FROM jobs WHERE status = 'running' AND lease_until <= {now} AND id > :after
    ORDER BY id LIMIT :limit
    """,
    row=ExpiredJob,
)

LOCK_EXPIRED = Statement(
    "jobs.lock_expired",
    "Hold those of the jobs whose lease has expired, each watchdog its own.",
    f"""
    SELECT {{columns}} FROM {{given}} JOIN jobs ON id = given_id
    WHERE {_STANDS} = 'running' AND lease_until <= {{now}} ORDER BY id
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
    """,
    input_columns={"given_id": "text"},
    row=ExpiredAttempt,
)

COUNT_REFUNDS = Statement(
    "jobs.count_refunds",
    "Count the attempts of jobs that were refunded because they never started.",
    """
    SELECT {columns} FROM {given} JOIN job_attempts ON job_id = given_id
    WHERE reason IN ('never_started', 'no_heartbeat') GROUP BY job_id
    """,
    input_columns={"given_id": "text"},
    row=RefundedJob,
    columns={"refunds": "count(*)"},
)

DEFER = Statement(
    "jobs.defer",
    "Delay pending or queued jobs.",
    f"""
    UPDATE jobs SET prior_status = status, status = 'pending', available_at = {_due_in(":delay_us")},
        actor = :actor, reason = :reason, updated_at = {{now}}
    FROM {{given}}
    WHERE id = given_id AND {_STANDS} = 'queued'
    RETURNING {{columns}}
    """,
    input_columns={"given_id": "text"},
    row=Job,
)

DEFER_PENDING = Statement(
    "jobs.defer_pending",
    "Delay due pending jobs whose delivery is not marked yet.",
    f"""
    UPDATE jobs SET prior_status = status, available_at = {{now}} + :delay_us,
        actor = :actor, reason = :reason, updated_at = {{now}}
    FROM {{given}}
    WHERE id = given_id AND {_STANDS} = 'pending' AND available_at <= {{now}}
    RETURNING {{columns}}
    """,
    input_columns={"given_id": "text"},
    row=Job,
)
"""A message is often read before its delivery is noted. What is not due waits already, perhaps for longer."""

HOLD = Statement(
    "jobs.hold",
    "Hold jobs: they are not delivered until they are released. One that runs is held if it has to wait again.",
    f"""
    UPDATE jobs SET prior_status = status, available_at = {HELD_AT}, updated_at = {{now}}
    FROM {{given}}
    WHERE id = given_id AND {_STANDS} IN ('pending', 'running') AND NOT ({_IS_HELD})
    RETURNING {{columns}}
    """,
    input_columns={"given_id": "text"},
    row=Job,
)

HOLD_QUEUED = Statement(
    "jobs.hold_queued",
    "Hold jobs whose message is in the stream; a claim by it is refused.",
    f"""
    UPDATE jobs SET prior_status = status, status = 'pending', available_at = {HELD_AT},
        actor = :actor, reason = :reason, updated_at = {{now}}
    FROM {{given}}
    WHERE id = given_id AND {_STANDS} = 'queued'
    RETURNING {{columns}}
    """,
    input_columns={"given_id": "text"},
    row=Job,
)

UNHOLD = Statement(
    "jobs.unhold",
    "Let held jobs be due now.",
    f"""
    UPDATE jobs SET prior_status = status, available_at = {{now}}, updated_at = {{now}}
    FROM {{given}}
    WHERE id = given_id AND {_STANDS} IN ('pending', 'queued', 'running') AND {_IS_HELD}
    RETURNING {{columns}}
    """,
    input_columns={"given_id": "text"},
    row=Job,
)

SELECT_LONG_QUEUED = Statement(
    "jobs.select_long_queued",
    "Find jobs queued for so long that their message may be lost.",
    """
    SELECT {columns} FROM jobs JOIN outbox ON job_id = jobs.id
    WHERE status = 'queued' AND queued_at <= {now} - :older_than_us
        AND queued_at >= :after_us AND (queued_at > :after_us OR jobs.id > :after_id)
    ORDER BY queued_at, jobs.id LIMIT :limit
    """,
    row=QueuedJob,
    columns={"job_id": "jobs.id", "priority": "jobs.priority", "entry_id": "stream_entry_id"},
)

INSPECT = Statement(
    "jobs.inspect",
    "Read the columns that explain a refused write.",
    """
    SELECT {columns} FROM {given} JOIN jobs ON id = given_id
    """,
    input_columns={"given_id": "text"},
    row=JobState,
    columns={"now": "{now}"},
)

LOCK_OPEN_DEAD_LETTERS = Statement(
    "dead_letters.lock_open",
    "Read dead letters that are still open, with the job that each speaks of. They are locked last, when they close.",
    """
    SELECT {columns}
    FROM {given} JOIN dead_letters ON dead_letters.id = given_id JOIN jobs ON jobs.id = dead_letters.job_id
    WHERE dead_letters.state = 'open' ORDER BY dead_letters.id
    """,
    input_columns={"given_id": "text"},
    row=OpenDeadLetter,
    columns={"letter_id": "dead_letters.id", "job_id": "jobs.id", "kind": "jobs.kind"},
)

RESOLVE_DEAD_LETTERS = Statement(
    "dead_letters.resolve",
    "Mark open dead letters as replayed or discarded.",
    """
    UPDATE dead_letters SET state = :state, replayed_by_job_id = given_job_id, resolved_by = :actor, note = :note,
        resolved_at = {now}
    FROM {given}
    WHERE id = given_id AND state = 'open'
    RETURNING id
    """,
    input_columns={"given_id": "text", "given_job_id": "text"},
)
