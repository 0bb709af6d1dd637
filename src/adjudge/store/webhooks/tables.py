"""What is watched while it runs, and who is told: progress, sources, executions, webhooks."""

from sqlalchemy import Boolean, Column, Index, PrimaryKeyConstraint, Table, false, text, true

from adjudge.domain.verdict import Verdict
from adjudge.store.engine.columns import (
    METADATA,
    check_one_of,
    foreign_key,
    id_column,
    integer_column,
    json_column,
    text_column,
    timestamp_column,
)

EXECUTION_STATES = ("pending", "finished", "failed", "canceled")
DELIVERY_STATES = ("pending", "delivered", "failed", "canceled")

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

source_texts = Table(
    "source_texts",
    METADATA,
    Column("digest", text_column("digest").type, primary_key=True),
    text_column("body"),
    timestamp_column("created_at"),
)

executions = Table(
    "executions",
    METADATA,
    id_column(),
    foreign_key("user_id", "users", ondelete="CASCADE"),
    foreign_key("job_id", "jobs", ondelete="CASCADE"),
    text_column("language"),
    text_column("source"),
    json_column("limits"),
    text_column("state", default="pending"),
    text_column("verdict", nullable=True),
    text_column("compile_message", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("finished_at", nullable=True),
    timestamp_column("expires_at"),
    integer_column("kept_bytes", 0),
    check_one_of("state", EXECUTION_STATES),
    check_one_of("verdict", Verdict),
    Index(None, "user_id", "id"),
    Index(None, "job_id"),
    Index(None, "expires_at"),
)

execution_runs = Table(
    "execution_runs",
    METADATA,
    foreign_key("execution_id", "executions", ondelete="CASCADE"),
    integer_column("ordinal", None),
    text_column("stdin"),
    text_column("verdict", nullable=True),
    integer_column("time_ms", None, nullable=True),
    integer_column("wall_ms", None, nullable=True),
    integer_column("mem_kb", None, nullable=True),
    integer_column("exit_code", None, nullable=True),
    integer_column("exit_signal", None, nullable=True),
    text_column("limit_hit", nullable=True),
    text_column("stdout", nullable=True),
    text_column("stderr", nullable=True),
    Column("is_base64", Boolean, nullable=False, server_default=false()),
    Column("is_truncated", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("execution_id", "ordinal"),
    check_one_of("verdict", Verdict),
)

webhooks = Table(
    "webhooks",
    METADATA,
    id_column(),
    foreign_key("user_id", "users", ondelete="CASCADE"),
    text_column("url"),
    text_column("secret"),
    json_column("events"),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    timestamp_column("created_at"),
    timestamp_column("updated_at"),
    integer_column("failures"),
    timestamp_column("disabled_at", nullable=True),
    text_column("disabled_reason", nullable=True),
    Index(None, "user_id", "id"),
)

webhook_deliveries = Table(
    "webhook_deliveries",
    METADATA,
    id_column(),
    foreign_key("webhook_id", "webhooks", ondelete="CASCADE"),
    foreign_key("job_id", "jobs", ondelete="CASCADE"),
    text_column("event"),
    text_column("body"),
    text_column("state", default="pending"),
    integer_column("response_status", None, nullable=True),
    text_column("error", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("finished_at", nullable=True),
    check_one_of("state", DELIVERY_STATES),
    Index(None, "webhook_id", "id"),
    Index(None, "job_id"),
    Index(None, "created_at"),
)
