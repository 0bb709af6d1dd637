"""What starts chains without a person, and every tick that it gave."""

from sqlalchemy import Boolean, Column, Index, PrimaryKeyConstraint, Table, UniqueConstraint, text, true

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

TRIGGER_KINDS = ("cron", "delay", "event", "webhook", "chain")
TICK_STATES = ("pending", "started", "failed")

chain_triggers = Table(
    "chain_triggers",
    METADATA,
    id_column(),
    foreign_key("chain_id", "chains", ondelete="CASCADE"),
    text_column("name"),
    text_column("kind"),
    json_column("spec"),
    text_column("event", nullable=True),
    text_column("secret_hash", nullable=True),
    Column("enabled", Boolean, nullable=False, server_default=true()),
    timestamp_column("next_at", nullable=True),
    text_column("last_tick", nullable=True),
    text_column("last_error", nullable=True),
    integer_column("version", 1),
    text_column("created_by", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("updated_at"),
    # Of whoever saved it last.
    json_column("authority", nullable=True),
    check_one_of("kind", TRIGGER_KINDS),
    UniqueConstraint("chain_id", "name"),
    Index("chain_triggers_due", "next_at", postgresql_where=text("enabled"), sqlite_where=text("enabled")),
    Index(
        "chain_triggers_event",
        "event",
        postgresql_where=text("event IS NOT NULL"),
        sqlite_where=text("event IS NOT NULL"),
    ),
)

chain_trigger_ticks = Table(
    "chain_trigger_ticks",
    METADATA,
    foreign_key("trigger_id", "chain_triggers", ondelete="CASCADE"),
    text_column("tick"),
    timestamp_column("due_at"),
    json_column("payload", default=text("'{}'")),
    text_column("state", default="pending"),
    text_column("run_id", nullable=True),
    text_column("error", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("settled_at", nullable=True),
    PrimaryKeyConstraint("trigger_id", "tick"),
    check_one_of("state", TICK_STATES),
    Index(
        "chain_trigger_ticks_pending",
        "due_at",
        postgresql_where=text("state = 'pending'"),
        sqlite_where=text("state = 'pending'"),
    ),
)
