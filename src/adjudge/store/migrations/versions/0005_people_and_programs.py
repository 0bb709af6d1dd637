"""Sessions, invitations, identities of other providers, and what else people and programs log in by.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("users", sa.Column("display_name", sa.Text(), nullable=True))
    op.add_column("users", sa.Column("must_change_password", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.create_index(op.f("audit_log_actor_id"), "audit_log", ["actor", "id"], unique=False)
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("user_agent", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("idle_until", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("sessions_user_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("sessions_pkey")),
        sa.UniqueConstraint("token_hash", name=op.f("sessions_token_hash_key")),
    )
    op.create_index(op.f("sessions_user_id"), "sessions", ["user_id"], unique=False)
    op.create_index(op.f("sessions_expires_at"), "sessions", ["expires_at"], unique=False)
    op.create_table(
        "invitations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), server_default="contestant", nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("max_uses", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("uses", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "role IN ('admin', 'setter', 'judge', 'contestant', 'service')", name=op.f("invitations_role_known")
        ),
        sa.CheckConstraint("uses >= 0 AND uses <= max_uses", name=op.f("invitations_uses_bounded")),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("invitations_created_by_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("invitations_pkey")),
        sa.UniqueConstraint("code_hash", name=op.f("invitations_code_hash_key")),
    )
    op.create_table(
        "identities",
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("identities_user_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("issuer", "subject", name=op.f("identities_pkey")),
    )
    op.create_index(op.f("identities_user_id"), "identities", ["user_id"], unique=False)


def downgrade() -> None:
    op.drop_table("identities")
    op.drop_table("invitations")
    op.drop_table("sessions")
    op.drop_index(op.f("audit_log_actor_id"), table_name="audit_log")
    op.drop_column("users", "must_change_password")
    op.drop_column("users", "display_name")
