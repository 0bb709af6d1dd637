"""Figures over time, for the pages of operators.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

JSON_TEXT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "figures",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("sample", JSON_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("source", "at", name=op.f("figures_pkey")),
    )
    op.create_index(op.f("figures_at"), "figures", ["at"], unique=False)


def downgrade() -> None:
    op.drop_table("figures")
