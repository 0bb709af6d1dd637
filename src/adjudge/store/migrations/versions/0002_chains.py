"""Chains, their runs and nodes.

Frozen: later changes are later migrations. A test holds that all of them together arrive at ``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

JSON_TEXT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

CREATE_TRIGGERS = {
    "sqlite": [
        "CREATE TRIGGER chain_runs_legal_edge BEFORE UPDATE OF status ON chain_runs WHEN NOT ((OLD.status = 'pending' AND NEW.status IN ('running', 'stopping')) OR (OLD.status = 'running' AND NEW.status IN ('failed', 'stopping', 'success')) OR (OLD.status = 'stopping' AND NEW.status IN ('stopped')) OR (OLD.status = 'failed' AND NEW.status IN ('running')) OR (OLD.status = 'stopped' AND NEW.status IN ('running'))) BEGIN SELECT RAISE(ABORT, 'chain_runs_legal_edge'); END",
        "CREATE TRIGGER chain_nodes_legal_edge BEFORE UPDATE OF status ON chain_nodes WHEN NOT ((OLD.status = 'pending' AND NEW.status IN ('running', 'skipped', 'stopped')) OR (OLD.status = 'running' AND NEW.status IN ('failed', 'retrying', 'stopped', 'success')) OR (OLD.status = 'retrying' AND NEW.status IN ('running', 'stopped')) OR (OLD.status = 'failed' AND NEW.status IN ('retrying', 'success')) OR (OLD.status = 'stopped' AND NEW.status IN ('retrying', 'success')) OR (OLD.status = 'skipped' AND NEW.status IN ('pending'))) BEGIN SELECT RAISE(ABORT, 'chain_nodes_legal_edge'); END",
        "CREATE TRIGGER chain_runs_log AFTER UPDATE OF status ON chain_runs WHEN OLD.status <> NEW.status BEGIN INSERT INTO chain_status_log (run_id, node_id, from_status, to_status, attempt, actor, reason, at) VALUES (NEW.id, NULL, OLD.status, NEW.status, NULL, NEW.actor, NEW.reason, NEW.updated_at); END",
        "CREATE TRIGGER chain_nodes_log AFTER UPDATE OF status ON chain_nodes WHEN OLD.status <> NEW.status BEGIN INSERT INTO chain_status_log (run_id, node_id, from_status, to_status, attempt, actor, reason, at) VALUES (NEW.run_id, NEW.node_id, OLD.status, NEW.status, NEW.attempt, NEW.actor, NEW.reason, NEW.updated_at); END",
    ],
    "postgresql": [
        "CREATE FUNCTION adjudge_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE integrity_constraint_violation USING CONSTRAINT = TG_ARGV[0], MESSAGE = TG_ARGV[0] || ' refused ' || OLD.status || ' -> ' || NEW.status; END $$",
        "CREATE TRIGGER chain_runs_legal_edge BEFORE UPDATE OF status ON chain_runs FOR EACH ROW WHEN (NOT ((OLD.status = 'pending' AND NEW.status IN ('running', 'stopping')) OR (OLD.status = 'running' AND NEW.status IN ('failed', 'stopping', 'success')) OR (OLD.status = 'stopping' AND NEW.status IN ('stopped')) OR (OLD.status = 'failed' AND NEW.status IN ('running')) OR (OLD.status = 'stopped' AND NEW.status IN ('running')))) EXECUTE FUNCTION adjudge_refuse('chain_runs_legal_edge')",
        "CREATE TRIGGER chain_nodes_legal_edge BEFORE UPDATE OF status ON chain_nodes FOR EACH ROW WHEN (NOT ((OLD.status = 'pending' AND NEW.status IN ('running', 'skipped', 'stopped')) OR (OLD.status = 'running' AND NEW.status IN ('failed', 'retrying', 'stopped', 'success')) OR (OLD.status = 'retrying' AND NEW.status IN ('running', 'stopped')) OR (OLD.status = 'failed' AND NEW.status IN ('retrying', 'success')) OR (OLD.status = 'stopped' AND NEW.status IN ('retrying', 'success')) OR (OLD.status = 'skipped' AND NEW.status IN ('pending')))) EXECUTE FUNCTION adjudge_refuse('chain_nodes_legal_edge')",
        "CREATE FUNCTION chain_runs_log() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off AS $$ BEGIN INSERT INTO chain_status_log (run_id, node_id, from_status, to_status, attempt, actor, reason, at) SELECT n.id, NULL, o.status, n.status, NULL, n.actor, n.reason, n.updated_at FROM old_rows o JOIN new_rows n ON o.id = n.id WHERE o.status <> n.status; RETURN NULL; END $$",
        "CREATE TRIGGER chain_runs_log AFTER UPDATE ON chain_runs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION chain_runs_log()",
        "CREATE FUNCTION chain_nodes_log() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off AS $$ BEGIN INSERT INTO chain_status_log (run_id, node_id, from_status, to_status, attempt, actor, reason, at) SELECT n.run_id, n.node_id, o.status, n.status, n.attempt, n.actor, n.reason, n.updated_at FROM old_rows o JOIN new_rows n ON o.run_id = n.run_id AND o.node_id = n.node_id WHERE o.status <> n.status; RETURN NULL; END $$",
        "CREATE TRIGGER chain_nodes_log AFTER UPDATE ON chain_nodes REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION chain_nodes_log()",
    ],
}
DROP_TRIGGERS = {
    "sqlite": [
        "DROP TRIGGER chain_nodes_log",
        "DROP TRIGGER chain_runs_log",
        "DROP TRIGGER chain_nodes_legal_edge",
        "DROP TRIGGER chain_runs_legal_edge",
    ],
    "postgresql": [
        "DROP TRIGGER chain_nodes_log ON chain_nodes",
        "DROP FUNCTION chain_nodes_log()",
        "DROP TRIGGER chain_runs_log ON chain_runs",
        "DROP FUNCTION chain_runs_log()",
        "DROP TRIGGER chain_nodes_legal_edge ON chain_nodes",
        "DROP TRIGGER chain_runs_legal_edge ON chain_runs",
        "DROP FUNCTION adjudge_refuse()",
    ],
}


def upgrade() -> None:
    op.create_table(
        "chains",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("enabled", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("dag", JSON_TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("version > 0", name=op.f("chains_version_positive")),
        sa.PrimaryKeyConstraint("id", name=op.f("chains_pkey")),
        sa.UniqueConstraint("name", name=op.f("chains_name_key")),
    )
    op.create_table(
        "chain_runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("chain_id", sa.Text(), nullable=False),
        sa.Column("chain_version", sa.BigInteger(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column("prior_status", sa.Text(), nullable=True),
        sa.Column("dag", JSON_TEXT, nullable=False),
        sa.Column("parameters", JSON_TEXT, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("trigger_kind", sa.Text(), server_default="manual", nullable=False),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("trace_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(finished_at IS NOT NULL) = (status IN ('failed', 'stopped', 'success'))",
            name=op.f("chain_runs_finished_at_exactly_when"),
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'running', 'stopping', 'success', 'failed', 'stopped')",
            name=op.f("chain_runs_status_known"),
        ),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("chain_runs_chain_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("chain_runs_pkey")),
        sa.UniqueConstraint("chain_id", "idempotency_key", name=op.f("chain_runs_chain_id_idempotency_key_key")),
    )
    op.create_index(op.f("chain_runs_chain_id_id"), "chain_runs", ["chain_id", "id"], unique=False)
    op.create_index(
        "chain_runs_open",
        "chain_runs",
        ["id"],
        unique=False,
        postgresql_where=sa.text("finished_at IS NULL"),
        sqlite_where=sa.text("finished_at IS NULL"),
    )
    op.create_table(
        "chain_versions",
        sa.Column("chain_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("dag", JSON_TEXT, nullable=False),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["chain_id"], ["chains.id"], name=op.f("chain_versions_chain_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("chain_id", "version", name=op.f("chain_versions_pkey")),
    )
    op.create_table(
        "chain_checkpoints",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("attempt_id", sa.BigInteger(), nullable=False),
        sa.Column("checkpoint", JSON_TEXT, nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["chain_runs.id"], name=op.f("chain_checkpoints_run_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "node_id", name=op.f("chain_checkpoints_pkey")),
    )
    op.create_table(
        "chain_nodes",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column("prior_status", sa.Text(), nullable=True),
        sa.Column("attempt", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("artifact", JSON_TEXT, nullable=True),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "status IN ('pending', 'running', 'retrying', 'success', 'failed', 'stopped', 'skipped')",
            name=op.f("chain_nodes_status_known"),
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["chain_runs.id"], name=op.f("chain_nodes_run_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "node_id", name=op.f("chain_nodes_pkey")),
    )
    op.create_table(
        "chain_status_log",
        sa.Column("id", SERIAL, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=True),
        sa.Column("from_status", sa.Text(), nullable=False),
        sa.Column("to_status", sa.Text(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=True),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["chain_runs.id"], name=op.f("chain_status_log_run_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("chain_status_log_pkey")),
    )
    op.create_index(op.f("chain_status_log_run_id"), "chain_status_log", ["run_id"], unique=False)
    for ddl in CREATE_TRIGGERS[op.get_bind().dialect.name]:
        op.get_bind().exec_driver_sql(ddl)


def downgrade() -> None:
    for ddl in DROP_TRIGGERS[op.get_bind().dialect.name]:
        op.get_bind().exec_driver_sql(ddl)
    op.drop_table("chain_status_log")
    op.drop_table("chain_nodes")
    op.drop_table("chain_checkpoints")
    op.drop_table("chain_versions")
    op.drop_table("chain_runs")
    op.drop_table("chains")
