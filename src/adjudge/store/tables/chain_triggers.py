"""What starts chains without a person, and every tick that it gave."""

from sqlalchemy import Boolean, Column, Index, PrimaryKeyConstraint, Table, UniqueConstraint, text, true

from adjudge.store.tables.base import METADATA, document, identifier, moment, number, one_of, reference, words

TRIGGER_KINDS = ("cron", "delay", "event", "webhook", "chain")
TICK_STATES = ("pending", "started", "failed")

chain_triggers = Table(
    "chain_triggers",
    METADATA,
    identifier(),
    reference("chain_id", "chains", ondelete="CASCADE"),
    words("name"),
    words("kind"),
    document("spec"),
    words("event", nullable=True),
    words("secret_hash", nullable=True),
    Column("enabled", Boolean, nullable=False, server_default=true()),
    moment("next_at", nullable=True),
    words("last_tick", nullable=True),
    words("last_error", nullable=True),
    number("version", 1),
    words("created_by", nullable=True),
    moment("created_at"),
    moment("updated_at"),
    # Of whoever saved it last.
    document("authority", nullable=True),
    one_of("kind", TRIGGER_KINDS),
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
    reference("trigger_id", "chain_triggers", ondelete="CASCADE"),
    words("tick"),
    moment("due_at"),
    document("payload", default=text("'{}'")),
    words("state", default="pending"),
    words("run_id", nullable=True),
    words("error", nullable=True),
    moment("created_at"),
    moment("settled_at", nullable=True),
    PrimaryKeyConstraint("trigger_id", "tick"),
    one_of("state", TICK_STATES),
    Index(
        "chain_trigger_ticks_pending",
        "due_at",
        postgresql_where=text("state = 'pending'"),
        sqlite_where=text("state = 'pending'"),
    ),
)
