"""An installation has an id, so that two that share one Redis namespace are noticed.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "installation",
        sa.Column("only_row", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.CheckConstraint("only_row = 1", name=op.f("installation_one_row")),
        sa.PrimaryKeyConstraint("only_row", name=op.f("installation_pkey")),
    )


def downgrade() -> None:
    op.drop_table("installation")
