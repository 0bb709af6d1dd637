"""Tables of jobs. The job row is the source of truth; the outbox lists what must be published to the stream."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    text,
)

from adjudge.domain.states import JOB, JobStatus
from adjudge.store.engine.columns import (
    METADATA,
    SERIAL,
    check_one_of,
    check_set_exactly_when,
    foreign_key,
    id_column,
    integer_column,
    json_column,
    log_foreign_key,
    partial_index,
    text_column,
    timestamp_column,
)
from adjudge.store.jobs.models import HELD_AT

OUTBOX_STATES = ("pending", "delivered", "dropped")
DEAD_LETTER_STATES = ("open", "replayed", "discarded")


jobs = Table(
    "jobs",
    METADATA,
    id_column(),
    text_column("kind"),
    text_column("dedupe_key", nullable=True),
    foreign_key("submission_id", "submissions", nullable=True),
    foreign_key("rejudge_batch_id", "rejudge_batches", nullable=True),
    foreign_key("chain_run_id", "chain_runs", nullable=True),
    text_column("node_id", nullable=True),
    foreign_key("origin_job_id", "jobs", nullable=True),
    text_column("status", default=JOB.initial.value),
    text_column("prior_status", nullable=True),
    integer_column("attempt_id"),
    integer_column("max_attempts", 4),
    integer_column("priority", 2),
    integer_column("timeout_ms", None, nullable=True),
    timestamp_column("available_at"),
    text_column("lease_owner", nullable=True),
    timestamp_column("lease_until", nullable=True),
    json_column("payload", default=text("'{}'")),
    json_column("result", nullable=True),
    text_column("actor", nullable=True),
    text_column("reason", nullable=True),
    text_column("error_code", nullable=True),
    text_column("error", nullable=True),
    text_column("trace_id", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("updated_at"),
    timestamp_column("queued_at", nullable=True),
    timestamp_column("started_at", nullable=True),
    timestamp_column("finished_at", nullable=True),
    timestamp_column("heartbeat_at", nullable=True),
    check_one_of("status", JobStatus),
    check_set_exactly_when("finished_at", "status", JOB.terminal),
    check_set_exactly_when("lease_owner", "status", {JobStatus.RUNNING}),
    check_set_exactly_when("lease_until", "status", {JobStatus.RUNNING}),
    CheckConstraint("attempt_id >= 0 AND attempt_id <= max_attempts", name="attempt_id_bounded"),
    # Renewing a lease touches no indexed column, so PostgreSQL can rewrite the row in its page.
    partial_index("jobs_running", "id", where="status = 'running'"),
    partial_index("jobs_queued", "queued_at", where="status = 'queued'"),
    partial_index("jobs_waiting", "priority", "available_at", where="status IN ('pending', 'queued')"),
    partial_index("jobs_held", "id", where=f"available_at >= {HELD_AT} AND finished_at IS NULL"),
    partial_index("jobs_dedupe", "kind", "dedupe_key", where="dedupe_key IS NOT NULL", unique=True),
    partial_index("jobs_submission", "submission_id", where="submission_id IS NOT NULL"),
    partial_index("jobs_batch", "rejudge_batch_id", where="rejudge_batch_id IS NOT NULL"),
    partial_index("jobs_node", "chain_run_id", "node_id", where="chain_run_id IS NOT NULL"),
    partial_index(
        "jobs_kept_a_while", "finished_at", where="kind IN ('execute', 'webhook') AND finished_at IS NOT NULL"
    ),
    partial_index("jobs_origin", "origin_job_id", where="origin_job_id IS NOT NULL"),
    postgresql_with={"fillfactor": "70", "autovacuum_vacuum_scale_factor": "0.02"},
)

job_attempts = Table(
    "job_attempts",
    METADATA,
    *log_foreign_key("job_id", "jobs"),
    integer_column("attempt_id", None),
    text_column("lease_owner"),
    timestamp_column("started_at"),
    timestamp_column("ended_at"),
    text_column("outcome"),
    text_column("reason", nullable=True),
    text_column("error_code", nullable=True),
    text_column("error", nullable=True),
    PrimaryKeyConstraint("job_id", "attempt_id"),
)

job_status_log = Table(
    "job_status_log",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    *log_foreign_key("job_id", "jobs"),
    text_column("from_status"),
    text_column("to_status"),
    integer_column("attempt_id", None),
    text_column("actor", nullable=True),
    text_column("reason", nullable=True),
    timestamp_column("at"),
    Index(None, "job_id"),
)

outbox = Table(
    "outbox",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    foreign_key("job_id", "jobs", ondelete="CASCADE"),
    integer_column("priority", 2),
    text_column("state", default="pending"),
    integer_column("attempts"),
    integer_column("dispatch_seq"),
    timestamp_column("next_attempt_at"),
    text_column("last_error", nullable=True),
    timestamp_column("dispatched_at", nullable=True),
    text_column("stream_entry_id", nullable=True),
    timestamp_column("created_at"),
    UniqueConstraint("job_id"),
    check_one_of("state", OUTBOX_STATES),
    partial_index("outbox_due", "priority", "next_attempt_at", "id", where="state = 'pending'"),
    postgresql_with={"fillfactor": "80", "autovacuum_vacuum_scale_factor": "0.02"},
)

dead_letters = Table(
    "dead_letters",
    METADATA,
    id_column(),
    foreign_key("job_id", "jobs", ondelete="CASCADE"),
    text_column("kind"),
    integer_column("attempt_id", None),
    text_column("error_code"),
    text_column("error", nullable=True),
    text_column("state", default="open"),
    foreign_key("replayed_by_job_id", "jobs", nullable=True),
    text_column("resolved_by", nullable=True),
    text_column("note", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("resolved_at", nullable=True),
    UniqueConstraint("job_id"),
    check_one_of("state", DEAD_LETTER_STATES),
    CheckConstraint("(resolved_at IS NULL) = (state = 'open')", name="resolved_at_exactly_when"),
    partial_index("dead_letters_open", "created_at", where="state = 'open'"),
    partial_index("dead_letters_replayed_by", "replayed_by_job_id", where="replayed_by_job_id IS NOT NULL"),
)

workers = Table(
    "workers",
    METADATA,
    id_column(),
    text_column("host"),
    integer_column("pid", None),
    text_column("version"),
    integer_column("slots", None),
    json_column("capabilities"),
    text_column("health", default="starting"),
    timestamp_column("started_at"),
    timestamp_column("seen_at"),
    timestamp_column("lease_until"),
    Index(None, "lease_until"),
)

job_progress = Table(
    "job_progress",
    METADATA,
    foreign_key("job_id", "jobs", ondelete="CASCADE"),
    integer_column("attempt_id", None),
    text_column("stage"),
    integer_column("done"),
    integer_column("total"),
    json_column("cases", default=text("'[]'")),
    timestamp_column("updated_at"),
    PrimaryKeyConstraint("job_id"),
    Index(None, "updated_at"),
    postgresql_with={"fillfactor": "70"},
)
