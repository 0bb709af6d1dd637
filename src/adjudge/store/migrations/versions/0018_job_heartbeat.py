"""Jobs keep when their lease was last renewed: a claim without one may never have started.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("heartbeat_at", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "heartbeat_at")
