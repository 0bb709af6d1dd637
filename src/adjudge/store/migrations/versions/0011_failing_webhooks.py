"""Webhooks that fail again and again are switched off, and say why.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("failures", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("webhooks", sa.Column("disabled_at", sa.BigInteger(), nullable=True))
    op.add_column("webhooks", sa.Column("disabled_reason", sa.Text(), nullable=True))


def downgrade() -> None:
    for name in ("disabled_reason", "disabled_at", "failures"):
        op.drop_column("webhooks", name)
