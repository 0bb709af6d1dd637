"""Live progress, events, webhooks and executions.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

JSON_TEXT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
XID = {"sqlite": "0", "postgresql": "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"}


def upgrade() -> None:
    op.create_table(
        "source_texts",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("source_texts_pkey")),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("events", JSON_TEXT, nullable=False),
        sa.Column("is_active", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("webhooks_user_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("webhooks_pkey")),
    )
    op.create_index(op.f("webhooks_user_id_id"), "webhooks", ["user_id", "id"], unique=False)
    op.create_table(
        "executions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("limits", JSON_TEXT, nullable=False),
        sa.Column("state", sa.Text(), server_default="pending", nullable=False),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("compile_message", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "state IN ('pending', 'finished', 'failed', 'canceled')", name=op.f("executions_state_known")
        ),
        sa.CheckConstraint(
            "verdict IN ('AC', 'PA', 'WA', 'OLE', 'TLE', 'MLE', 'RE', 'CE', 'SE')",
            name=op.f("executions_verdict_known"),
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("executions_job_id_fkey"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("executions_user_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("executions_pkey")),
    )
    op.create_index(op.f("executions_expires_at"), "executions", ["expires_at"], unique=False)
    op.create_index(op.f("executions_job_id"), "executions", ["job_id"], unique=False)
    op.create_index(op.f("executions_user_id_id"), "executions", ["user_id", "id"], unique=False)
    op.create_table(
        "job_progress",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("attempt_id", sa.BigInteger(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("done", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("total", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cases", JSON_TEXT, server_default=sa.text("'[]'"), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("job_progress_job_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", name=op.f("job_progress_pkey")),
        postgresql_with={"fillfactor": "70"},
    )
    op.create_index(op.f("job_progress_updated_at"), "job_progress", ["updated_at"], unique=False)
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("webhook_id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="pending", nullable=False),
        sa.Column("response_status", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "state IN ('pending', 'delivered', 'failed', 'canceled')", name=op.f("webhook_deliveries_state_known")
        ),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("webhook_deliveries_job_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("webhook_deliveries_webhook_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("webhook_deliveries_pkey")),
    )
    op.create_index(op.f("webhook_deliveries_created_at"), "webhook_deliveries", ["created_at"], unique=False)
    op.create_index(op.f("webhook_deliveries_job_id"), "webhook_deliveries", ["job_id"], unique=False)
    op.create_index(op.f("webhook_deliveries_webhook_id_id"), "webhook_deliveries", ["webhook_id", "id"], unique=False)
    op.create_table(
        "execution_runs",
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.BigInteger(), nullable=False),
        sa.Column("stdin", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("time_ms", sa.BigInteger(), nullable=True),
        sa.Column("wall_ms", sa.BigInteger(), nullable=True),
        sa.Column("mem_kb", sa.BigInteger(), nullable=True),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("exit_signal", sa.BigInteger(), nullable=True),
        sa.Column("limit_hit", sa.Text(), nullable=True),
        sa.Column("stdout", sa.Text(), nullable=True),
        sa.Column("stderr", sa.Text(), nullable=True),
        sa.Column("is_base64", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("is_truncated", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.CheckConstraint(
            "verdict IN ('AC', 'PA', 'WA', 'OLE', 'TLE', 'MLE', 'RE', 'CE', 'SE')",
            name=op.f("execution_runs_verdict_known"),
        ),
        sa.ForeignKeyConstraint(
            ["execution_id"], ["executions.id"], name=op.f("execution_runs_execution_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("execution_id", "ordinal", name=op.f("execution_runs_pkey")),
    )
    op.add_column("rejudge_batches", sa.Column("ended", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("rejudge_batches", sa.Column("revision", sa.Text(), server_default="pinned", nullable=False))
    op.add_column("rejudge_batches", sa.Column("actor", sa.Text(), nullable=True))
    op.add_column("rejudge_items", sa.Column("revision_id", sa.Text(), nullable=True))
    op.add_column("rejudge_items", sa.Column("old_version", sa.BigInteger(), nullable=True))
    op.add_column("rejudge_items", sa.Column("old_time_ms", sa.BigInteger(), nullable=True))
    op.add_column("rejudge_items", sa.Column("old_mem_kb", sa.BigInteger(), nullable=True))
    op.add_column("rejudge_items", sa.Column("old_job_id", sa.Text(), nullable=True))
    op.add_column("rejudge_items", sa.Column("new_verdict", sa.Text(), nullable=True))
    op.add_column("rejudge_items", sa.Column("new_score", sa.Double(), nullable=True))
    op.add_column("rejudge_items", sa.Column("new_time_ms", sa.BigInteger(), nullable=True))
    op.add_column("rejudge_items", sa.Column("new_mem_kb", sa.BigInteger(), nullable=True))
    op.add_column("rejudge_items", sa.Column("outcome", sa.Text(), nullable=True))
    op.add_column(
        "submission_status_log",
        sa.Column("xid", sa.BigInteger(), server_default=sa.text(XID[op.get_bind().dialect.name]), nullable=False),
    )
    op.create_index(op.f("submission_status_log_xid_id"), "submission_status_log", ["xid", "id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("submission_status_log_xid_id"), table_name="submission_status_log")
    op.drop_column("submission_status_log", "xid")
    op.drop_column("rejudge_items", "outcome")
    op.drop_column("rejudge_items", "new_mem_kb")
    op.drop_column("rejudge_items", "new_time_ms")
    op.drop_column("rejudge_items", "new_score")
    op.drop_column("rejudge_items", "new_verdict")
    op.drop_column("rejudge_items", "old_job_id")
    op.drop_column("rejudge_items", "old_mem_kb")
    op.drop_column("rejudge_items", "old_time_ms")
    op.drop_column("rejudge_items", "old_version")
    op.drop_column("rejudge_items", "revision_id")
    op.drop_column("rejudge_batches", "actor")
    op.drop_column("rejudge_batches", "revision")
    op.drop_column("rejudge_batches", "ended")
    op.drop_table("execution_runs")
    op.drop_table("webhook_deliveries")
    op.drop_table("job_progress")
    op.drop_table("executions")
    op.drop_table("webhooks")
    op.drop_table("source_texts")
