"""What is watched while it runs, and who is told: progress, sources, executions, webhooks."""

from sqlalchemy import Boolean, Column, Index, PrimaryKeyConstraint, Table, false, text, true

from adjudge.domain.verdict import Verdict
from adjudge.store.tables.base import METADATA, document, identifier, moment, number, one_of, reference, words

EXECUTION_STATES = ("pending", "finished", "failed", "canceled")
DELIVERY_STATES = ("pending", "delivered", "failed", "canceled")

job_progress = Table(
    "job_progress",
    METADATA,
    reference("job_id", "jobs", ondelete="CASCADE"),
    number("attempt_id", None),
    words("stage"),
    number("done"),
    number("total"),
    document("cases", default=text("'[]'")),
    moment("updated_at"),
    PrimaryKeyConstraint("job_id"),
    Index(None, "updated_at"),
    postgresql_with={"fillfactor": "70"},
)

source_texts = Table(
    "source_texts",
    METADATA,
    Column("digest", words("digest").type, primary_key=True),
    words("body"),
    moment("created_at"),
)

executions = Table(
    "executions",
    METADATA,
    identifier(),
    reference("user_id", "users", ondelete="CASCADE"),
    reference("job_id", "jobs", ondelete="CASCADE"),
    words("language"),
    words("source"),
    document("limits"),
    words("state", default="pending"),
    words("verdict", nullable=True),
    words("compile_message", nullable=True),
    moment("created_at"),
    moment("finished_at", nullable=True),
    moment("expires_at"),
    number("kept_bytes", 0),
    one_of("state", EXECUTION_STATES),
    one_of("verdict", Verdict),
    Index(None, "user_id", "id"),
    Index(None, "job_id"),
    Index(None, "expires_at"),
)

execution_runs = Table(
    "execution_runs",
    METADATA,
    reference("execution_id", "executions", ondelete="CASCADE"),
    number("ordinal", None),
    words("stdin"),
    words("verdict", nullable=True),
    number("time_ms", None, nullable=True),
    number("wall_ms", None, nullable=True),
    number("mem_kb", None, nullable=True),
    number("exit_code", None, nullable=True),
    number("exit_signal", None, nullable=True),
    words("limit_hit", nullable=True),
    words("stdout", nullable=True),
    words("stderr", nullable=True),
    Column("is_base64", Boolean, nullable=False, server_default=false()),
    Column("is_truncated", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("execution_id", "ordinal"),
    one_of("verdict", Verdict),
)

webhooks = Table(
    "webhooks",
    METADATA,
    identifier(),
    reference("user_id", "users", ondelete="CASCADE"),
    words("url"),
    words("secret"),
    document("events"),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    moment("created_at"),
    moment("updated_at"),
    number("failures"),
    moment("disabled_at", nullable=True),
    words("disabled_reason", nullable=True),
    Index(None, "user_id", "id"),
)

webhook_deliveries = Table(
    "webhook_deliveries",
    METADATA,
    identifier(),
    reference("webhook_id", "webhooks", ondelete="CASCADE"),
    reference("job_id", "jobs", ondelete="CASCADE"),
    words("event"),
    words("body"),
    words("state", default="pending"),
    number("response_status", None, nullable=True),
    words("error", nullable=True),
    moment("created_at"),
    moment("finished_at", nullable=True),
    one_of("state", DELIVERY_STATES),
    Index(None, "webhook_id", "id"),
    Index(None, "job_id"),
    Index(None, "created_at"),
)
