"""Accounts, problems with their revisions, contests.

Frozen: later changes are later migrations. A test holds that all of them together arrive at ``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

JSON_TEXT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", SERIAL, autoincrement=True, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("object_kind", sa.Text(), nullable=False),
        sa.Column("object_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("details", JSON_TEXT, nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("audit_log_pkey")),
    )
    op.create_index(op.f("audit_log_object_kind_object_id"), "audit_log", ["object_kind", "object_id"], unique=False)
    op.create_table(
        "contests",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("starts_at", sa.BigInteger(), nullable=False),
        sa.Column("freezes_at", sa.BigInteger(), nullable=True),
        sa.Column("ends_at", sa.BigInteger(), nullable=False),
        sa.Column("rules", JSON_TEXT, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "freezes_at IS NULL OR (freezes_at >= starts_at AND freezes_at <= ends_at)",
            name=op.f("contests_freezes_within"),
        ),
        sa.CheckConstraint("starts_at < ends_at", name=op.f("contests_ends_after_start")),
        sa.PrimaryKeyConstraint("id", name=op.f("contests_pkey")),
        sa.UniqueConstraint("slug", name=op.f("contests_slug_key")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), server_default="contestant", nullable=False),
        sa.Column("disabled_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "role IN ('admin', 'setter', 'judge', 'contestant', 'service')", name=op.f("users_role_known")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("users_pkey")),
        sa.UniqueConstraint("email", name=op.f("users_email_key")),
        sa.UniqueConstraint("name", name=op.f("users_name_key")),
    )
    op.create_table(
        "api_tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("scopes", JSON_TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("api_tokens_user_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("api_tokens_pkey")),
        sa.UniqueConstraint("token_hash", name=op.f("api_tokens_token_hash_key")),
    )
    op.create_index(op.f("api_tokens_user_id"), "api_tokens", ["user_id"], unique=False)
    op.create_table(
        "idempotency_keys",
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("request_digest", sa.Text(), nullable=False),
        sa.Column("response_status", sa.BigInteger(), nullable=False),
        sa.Column("response", JSON_TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("idempotency_keys_user_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "key", name=op.f("idempotency_keys_pkey")),
    )
    op.create_index(op.f("idempotency_keys_expires_at"), "idempotency_keys", ["expires_at"], unique=False)
    op.create_table(
        "problems",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("published_revision_id", sa.Text(), nullable=True),
        sa.Column("tags", JSON_TEXT, nullable=False),
        sa.Column("difficulty", sa.Double(), nullable=True),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("problems_owner_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("problems_pkey")),
        sa.UniqueConstraint("slug", name=op.f("problems_slug_key")),
    )
    op.create_table(
        "contest_problems",
        sa.Column("contest_id", sa.Text(), nullable=False),
        sa.Column("problem_id", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["contest_id"], ["contests.id"], name=op.f("contest_problems_contest_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.id"], name=op.f("contest_problems_problem_id_fkey")),
        sa.PrimaryKeyConstraint("contest_id", "problem_id", name=op.f("contest_problems_pkey")),
        sa.UniqueConstraint("contest_id", "label", name=op.f("contest_problems_contest_id_label_key")),
    )
    op.create_table(
        "problem_revisions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("problem_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), server_default="draft", nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("manifest_digest", sa.Text(), nullable=False),
        sa.Column("definition", JSON_TEXT, nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("published_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("state IN ('draft', 'published', 'withdrawn')", name=op.f("problem_revisions_state_known")),
        sa.CheckConstraint("number > 0", name=op.f("problem_revisions_number_positive")),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("problem_revisions_created_by_fkey")),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.id"], name=op.f("problem_revisions_problem_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("problem_revisions_pkey")),
        sa.UniqueConstraint("problem_id", "number", name=op.f("problem_revisions_problem_id_number_key")),
    )
    op.create_table(
        "manifest_files",
        sa.Column("revision_id", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("is_secret", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.CheckConstraint("size_bytes >= 0", name=op.f("manifest_files_size_bytes_not_negative")),
        sa.ForeignKeyConstraint(
            ["revision_id"], ["problem_revisions.id"], name=op.f("manifest_files_revision_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("revision_id", "path", name=op.f("manifest_files_pkey")),
    )
    op.create_index(op.f("manifest_files_digest"), "manifest_files", ["digest"], unique=False)


def downgrade() -> None:
    op.drop_table("manifest_files")
    op.drop_table("problem_revisions")
    op.drop_table("contest_problems")
    op.drop_table("problems")
    op.drop_table("idempotency_keys")
    op.drop_table("api_tokens")
    op.drop_table("users")
    op.drop_table("contests")
    op.drop_table("audit_log")
