"""Tables of operations: processes, pauses of judging, orders to workers, metrics, audit log, cache revisions."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from adjudge.store.engine.columns import (
    METADATA,
    SERIAL,
    check_one_of,
    foreign_key,
    id_column,
    integer_column,
    json_column,
    partial_index,
    text_column,
    timestamp_column,
)

PAUSE_SCOPES = ("all", "language", "problem")
WORKER_MODES = ("pause", "drain")
MAIL_STATES = ("pending", "sent", "failed")
OPERATIONAL_EVENTS = ("ops.worker_lost", "ops.dead_letter", "ops.chain_failed")

processes = Table(
    "processes",
    METADATA,
    id_column(),
    text_column("role"),
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

judging_pauses = Table(
    "judging_pauses",
    METADATA,
    text_column("scope"),
    text_column("subject"),
    text_column("actor"),
    text_column("reason"),
    timestamp_column("created_at"),
    PrimaryKeyConstraint("scope", "subject"),
    check_one_of("scope", PAUSE_SCOPES),
    CheckConstraint("(subject = '') = (scope = 'all')", name="subject_unless_all"),
)

worker_controls = Table(
    "worker_controls",
    METADATA,
    text_column("worker"),
    text_column("mode"),
    text_column("actor"),
    text_column("reason"),
    timestamp_column("created_at"),
    PrimaryKeyConstraint("worker"),
    check_one_of("mode", WORKER_MODES),
)

operational_events = Table(
    "operational_events",
    METADATA,
    id_column(),
    text_column("kind"),
    text_column("subject"),
    text_column("detail"),
    timestamp_column("created_at"),
    timestamp_column("mailed_at", nullable=True),
    UniqueConstraint("kind", "subject"),
    check_one_of("kind", OPERATIONAL_EVENTS),
    Index(None, "created_at"),
    partial_index("operational_events_unmailed", "created_at", where="mailed_at IS NULL"),
)

mails = Table(
    "mails",
    METADATA,
    id_column(),
    text_column("recipient"),
    text_column("subject"),
    text_column("body", nullable=True),
    text_column("state", default="pending"),
    text_column("error", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("finished_at", nullable=True),
    check_one_of("state", MAIL_STATES),
    CheckConstraint("(finished_at IS NULL) = (state = 'pending')", name="finished_at_exactly_when"),
    Index(None, "created_at"),
)

metric_samples = Table(
    "metric_samples",
    METADATA,
    text_column("source"),
    timestamp_column("at"),
    json_column("sample"),
    PrimaryKeyConstraint("source", "at"),
    Index(None, "at"),
)

system_metrics = Table(
    "system_metrics",
    METADATA,
    integer_column("only_row", None),
    timestamp_column("claimed_at"),
    timestamp_column("taken_at", nullable=True),
    integer_column("took_us", None, nullable=True),
    json_column("gauges", nullable=True),
    PrimaryKeyConstraint("only_row"),
    CheckConstraint("only_row = 1", name="one_row"),
)

installation = Table(
    "installation",
    METADATA,
    integer_column("only_row", None),
    text_column("id"),
    PrimaryKeyConstraint("only_row"),
    CheckConstraint("only_row = 1", name="one_row"),
)

idempotency_keys = Table(
    "idempotency_keys",
    METADATA,
    foreign_key("user_id", "users", ondelete="CASCADE"),
    text_column("key"),
    text_column("request_digest"),
    integer_column("response_status", None),
    json_column("response"),
    timestamp_column("created_at"),
    timestamp_column("expires_at"),
    PrimaryKeyConstraint("user_id", "key"),
    Index(None, "expires_at"),
)

audit_log = Table(
    "audit_log",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    text_column("actor"),
    text_column("action"),
    text_column("object_kind"),
    text_column("object_id"),
    # Of a contest, its participants and its submissions; without a foreign key, because the log outlives them.
    text_column("contest_id", nullable=True),
    text_column("reason", nullable=True),
    json_column("details", nullable=True),
    timestamp_column("at"),
    Index(None, "object_kind", "object_id"),
    Index(None, "actor", "id"),
    Index(None, "contest_id", "id"),
)

cache_revisions = Table(
    "cache_revisions",
    METADATA,
    Column("name", Text, primary_key=True),
    integer_column("revision", None),
    Index(None, "revision"),
)
