"""What the chain engine needs besides definitions, runs and nodes.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

JSON_TEXT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

EDGES = (
    "(OLD.status = 'pending' AND NEW.status IN ('running', 'skipped', 'stopped')) "
    "OR (OLD.status = 'running' AND NEW.status IN ('failed', 'retrying', 'stopped', 'success')) "
    "OR (OLD.status = 'retrying' AND NEW.status IN ('running', 'stopped')) "
    "OR (OLD.status = 'failed' AND NEW.status IN ('retrying', 'success')) "
    "OR (OLD.status = 'stopped' AND NEW.status IN ({stopped})) "
    "OR (OLD.status = 'skipped' AND NEW.status IN ('pending'))"
)
GUARD = {
    "sqlite": "CREATE TRIGGER chain_nodes_legal_edge BEFORE UPDATE OF status ON chain_nodes "
    "WHEN NOT ({edges}) BEGIN SELECT RAISE(ABORT, 'chain_nodes_legal_edge'); END",
    "postgresql": "CREATE TRIGGER chain_nodes_legal_edge BEFORE UPDATE OF status ON chain_nodes FOR EACH ROW "
    "WHEN (NOT ({edges})) EXECUTE FUNCTION adjudge_refuse('chain_nodes_legal_edge')",
}
UNGUARD = {
    "sqlite": "DROP TRIGGER chain_nodes_legal_edge",
    "postgresql": "DROP TRIGGER chain_nodes_legal_edge ON chain_nodes",
}


def run_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("nodes_total", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("nodes_open", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("nodes_failed", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("stop_requested_at", sa.BigInteger(), nullable=True),
        sa.Column("started_by", sa.Text(), nullable=True),
        sa.Column("parent_run_id", sa.Text(), nullable=True),
        sa.Column("parent_node_id", sa.Text(), nullable=True),
        sa.Column("origin_run_id", sa.Text(), nullable=True),
    ]


def node_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("ordinal", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("priority", sa.BigInteger(), server_default="2", nullable=False),
        sa.Column("waiting_on", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("deps_success", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("deps_failed", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("deps_skipped", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("item", JSON_TEXT, nullable=True),
        sa.Column("artifact_digest", sa.Text(), nullable=True),
        sa.Column("artifact_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("place", sa.Text(), nullable=True),
        sa.Column("wait_on", sa.Text(), nullable=True),
        sa.Column("wait_key", sa.Text(), nullable=True),
        sa.Column("wait_until", sa.BigInteger(), nullable=True),
    ]


INDEXES = (
    ("chain_runs_finished", "chain_runs", ["finished_at"], "finished_at IS NOT NULL"),
    ("chain_runs_stopping", "chain_runs", ["stop_requested_at"], "status = 'stopping'"),
    ("chain_runs_parent", "chain_runs", ["parent_run_id"], "parent_run_id IS NOT NULL"),
    ("chain_nodes_instances", "chain_nodes", ["run_id", "parent_id", "ordinal"], "parent_id IS NOT NULL"),
    ("chain_nodes_places", "chain_nodes", ["run_id", "place", "priority", "ordinal"], "place IS NOT NULL"),
    ("chain_nodes_waits", "chain_nodes", ["wait_on", "wait_key"], "wait_on IS NOT NULL"),
    ("chain_nodes_wait_until", "chain_nodes", ["wait_until"], "wait_until IS NOT NULL"),
)


def upgrade() -> None:
    extend_runs_and_nodes()
    create_node_logs()
    guard_nodes("'pending', 'retrying', 'success'")
    create_triggers()


def downgrade() -> None:
    drop_triggers()
    op.drop_table("chain_node_logs")
    for name, table, _, _ in reversed(INDEXES):
        op.drop_index(name, table_name=table)
    for table, columns in (("chain_nodes", node_columns()), ("chain_runs", run_columns())):
        for column in reversed(columns):
            op.drop_column(table, column.name)
    guard_nodes("'retrying', 'success'")


def extend_runs_and_nodes() -> None:
    for table, columns in (("chain_runs", run_columns()), ("chain_nodes", node_columns())):
        for column in columns:
            op.add_column(table, column)
    for name, table, keys, where in INDEXES:
        op.create_index(name, table, keys, unique=False, postgresql_where=sa.text(where), sqlite_where=sa.text(where))


def create_node_logs() -> None:
    op.create_table(
        "chain_node_logs",
        sa.Column("id", SERIAL, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["chain_runs.id"], name=op.f("chain_node_logs_run_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("chain_node_logs_pkey")),
    )
    op.create_index(
        op.f("chain_node_logs_run_id_node_id_id"), "chain_node_logs", ["run_id", "node_id", "id"], unique=False
    )


def guard_nodes(stopped: str) -> None:
    """A node that was stopped before it began may wait again."""
    dialect = op.get_bind().dialect.name
    op.get_bind().exec_driver_sql(UNGUARD[dialect])
    op.get_bind().exec_driver_sql(GUARD[dialect].format(edges=EDGES.format(stopped=stopped)))


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
        sa.UniqueConstraint("chain_id", "name", name=op.f("chain_triggers_chain_id_name_key")),
    )
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
