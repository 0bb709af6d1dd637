"""Jobs and what drives them: the row is the truth, the outbox tells the stream about it."""

from sqlalchemy import CheckConstraint, Column, Index, PrimaryKeyConstraint, Table, UniqueConstraint, text

from adjudge.domain.states import JOB, JobStatus
from adjudge.store.tables.base import (
    METADATA,
    SERIAL,
    document,
    exactly_when,
    identifier,
    logged,
    moment,
    number,
    one_of,
    reference,
    words,
)

OUTBOX_STATES = ("pending", "delivered", "dropped")
DEAD_LETTER_STATES = ("open", "replayed", "discarded")


def _partial(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    return Index(name, *columns, unique=unique, postgresql_where=text(where), sqlite_where=text(where))


jobs = Table(
    "jobs",
    METADATA,
    identifier(),
    words("kind"),
    words("dedupe_key", nullable=True),
    reference("submission_id", "submissions", nullable=True),
    reference("rejudge_batch_id", "rejudge_batches", nullable=True),
    reference("chain_run_id", "chain_runs", nullable=True),
    words("node_id", nullable=True),
    reference("origin_job_id", "jobs", nullable=True),
    words("status", default=JOB.initial.value),
    words("prior_status", nullable=True),
    number("attempt_id"),
    number("max_attempts", 4),
    number("priority", 2),
    number("timeout_ms", None, nullable=True),
    moment("available_at"),
    words("lease_owner", nullable=True),
    moment("lease_until", nullable=True),
    document("payload", default=text("'{}'")),
    document("result", nullable=True),
    words("actor", nullable=True),
    words("reason", nullable=True),
    words("error_code", nullable=True),
    words("error", nullable=True),
    words("trace_id", nullable=True),
    moment("created_at"),
    moment("updated_at"),
    moment("queued_at", nullable=True),
    moment("started_at", nullable=True),
    moment("finished_at", nullable=True),
    moment("heartbeat_at", nullable=True),
    one_of("status", JobStatus),
    exactly_when("finished_at", "status", JOB.terminal),
    exactly_when("lease_owner", "status", {JobStatus.RUNNING}),
    exactly_when("lease_until", "status", {JobStatus.RUNNING}),
    CheckConstraint("attempt_id >= 0 AND attempt_id <= max_attempts", name="attempt_id_bounded"),
    # Renewing a lease touches no indexed column, so PostgreSQL can rewrite the row in its page.
    _partial("jobs_running", "id", where="status = 'running'"),
    _partial("jobs_queued", "queued_at", where="status = 'queued'"),
    _partial("jobs_waiting", "priority", "available_at", where="status IN ('pending', 'queued')"),
    _partial("jobs_dedupe", "kind", "dedupe_key", where="dedupe_key IS NOT NULL", unique=True),
    _partial("jobs_submission", "submission_id", where="submission_id IS NOT NULL"),
    _partial("jobs_batch", "rejudge_batch_id", where="rejudge_batch_id IS NOT NULL"),
    _partial("jobs_node", "chain_run_id", "node_id", where="chain_run_id IS NOT NULL"),
    _partial("jobs_kept_a_while", "finished_at", where="kind IN ('execute', 'webhook') AND finished_at IS NOT NULL"),
    _partial("jobs_origin", "origin_job_id", where="origin_job_id IS NOT NULL"),
    postgresql_with={"fillfactor": "70", "autovacuum_vacuum_scale_factor": "0.02"},
)

job_attempts = Table(
    "job_attempts",
    METADATA,
    *logged("job_id", "jobs"),
    number("attempt_id", None),
    words("lease_owner"),
    moment("started_at"),
    moment("ended_at"),
    words("outcome"),
    words("reason", nullable=True),
    words("error_code", nullable=True),
    words("error", nullable=True),
    PrimaryKeyConstraint("job_id", "attempt_id"),
)

job_status_log = Table(
    "job_status_log",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    *logged("job_id", "jobs"),
    words("from_status"),
    words("to_status"),
    number("attempt_id", None),
    words("actor", nullable=True),
    words("reason", nullable=True),
    moment("at"),
    Index(None, "job_id"),
)

outbox = Table(
    "outbox",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    reference("job_id", "jobs", ondelete="CASCADE"),
    number("priority", 2),
    words("state", default="pending"),
    number("attempts"),
    number("takings"),
    moment("next_attempt_at"),
    words("last_error", nullable=True),
    moment("dispatched_at", nullable=True),
    words("stream_entry_id", nullable=True),
    moment("created_at"),
    UniqueConstraint("job_id"),
    one_of("state", OUTBOX_STATES),
    _partial("outbox_due", "priority", "next_attempt_at", "id", where="state = 'pending'"),
    postgresql_with={"fillfactor": "80", "autovacuum_vacuum_scale_factor": "0.02"},
)

dead_letters = Table(
    "dead_letters",
    METADATA,
    identifier(),
    reference("job_id", "jobs", ondelete="CASCADE"),
    words("kind"),
    number("attempt_id", None),
    words("error_code"),
    words("error", nullable=True),
    words("state", default="open"),
    reference("replayed_by_job_id", "jobs", nullable=True),
    words("resolved_by", nullable=True),
    words("note", nullable=True),
    moment("created_at"),
    moment("resolved_at", nullable=True),
    UniqueConstraint("job_id"),
    one_of("state", DEAD_LETTER_STATES),
    CheckConstraint("(resolved_at IS NULL) = (state = 'open')", name="resolved_at_exactly_when"),
    _partial("dead_letters_open", "created_at", where="state = 'open'"),
    _partial("dead_letters_replayed_by", "replayed_by_job_id", where="replayed_by_job_id IS NOT NULL"),
)

workers = Table(
    "workers",
    METADATA,
    identifier(),
    words("host"),
    number("pid", None),
    words("version"),
    number("slots", None),
    document("capabilities"),
    words("health", default="starting"),
    moment("started_at"),
    moment("seen_at"),
    moment("lease_until"),
    Index(None, "lease_until"),
)
