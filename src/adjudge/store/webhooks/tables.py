"""Tables of webhooks and their deliveries."""

from sqlalchemy import Boolean, Column, Index, Table, true

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

DELIVERY_STATES = ("pending", "delivered", "failed", "canceled")

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
