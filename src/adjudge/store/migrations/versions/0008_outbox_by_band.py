"""The outbox is taken band by band.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

PENDING = sa.text("state = 'pending'")


def upgrade() -> None:
    op.execute("UPDATE outbox SET priority = 0 WHERE priority < 0")
    op.execute("UPDATE outbox SET priority = 3 WHERE priority > 3")
    op.drop_index("outbox_due", "outbox")
    op.create_index(
        "outbox_due",
        "outbox",
        ["priority", "next_attempt_at", "id"],
        unique=False,
        postgresql_where=PENDING,
        sqlite_where=PENDING,
    )


def downgrade() -> None:
    op.drop_index("outbox_due", "outbox")
    op.create_index(
        "outbox_due", "outbox", ["next_attempt_at", "id"], unique=False, postgresql_where=PENDING, sqlite_where=PENDING
    )
