"""What the chain engine needs besides definitions, runs and nodes.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

JSON_TEXT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    create_triggers()


def downgrade() -> None:
    drop_triggers()


def create_triggers() -> None:
    op.create_table(
        "chain_triggers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("chain_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("spec", JSON_TEXT, nullable=False),
        sa.Column("event", sa.Text(), nullable=True),
        sa.Column("secret_hash", sa.Text(), nullable=True),
        sa.Column("enabled", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=True),
        sa.Column("last_tick", sa.Text(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("created_by", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "kind IN ('cron', 'delay', 'event', 'webhook', 'chain')", name=op.f("chain_triggers_kind_known")
        ),
        sa.ForeignKeyConstraint(
            ["chain_id"], ["chains.id"], name=op.f("chain_triggers_chain_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("chain_triggers_pkey")),
    )
    op.create_index(op.f("chain_triggers_chain_id_name"), "chain_triggers", ["chain_id", "name"], unique=True)
    op.create_index(
        "chain_triggers_due",
        "chain_triggers",
        ["next_at"],
        unique=False,
        postgresql_where=sa.text("enabled"),
        sqlite_where=sa.text("enabled"),
    )
    op.create_index(
        "chain_triggers_event",
        "chain_triggers",
        ["event"],
        unique=False,
        postgresql_where=sa.text("event IS NOT NULL"),
        sqlite_where=sa.text("event IS NOT NULL"),
    )
    op.create_table(
        "chain_trigger_ticks",
        sa.Column("trigger_id", sa.Text(), nullable=False),
        sa.Column("tick", sa.Text(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("payload", JSON_TEXT, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("state", sa.Text(), server_default="pending", nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("settled_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("state IN ('pending', 'started', 'failed')", name=op.f("chain_trigger_ticks_state_known")),
        sa.ForeignKeyConstraint(
            ["trigger_id"], ["chain_triggers.id"], name=op.f("chain_trigger_ticks_trigger_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trigger_id", "tick", name=op.f("chain_trigger_ticks_pkey")),
    )
    op.create_index(
        "chain_trigger_ticks_pending",
        "chain_trigger_ticks",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text("state = 'pending'"),
        sqlite_where=sa.text("state = 'pending'"),
    )


def drop_triggers() -> None:
    op.drop_table("chain_trigger_ticks")
    op.drop_table("chain_triggers")
