"""An index finds the ended jobs of kinds that are kept for a while only.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

WHERE = sa.text("kind IN ('execute', 'webhook') AND finished_at IS NOT NULL")


def upgrade() -> None:
    op.create_index("jobs_kept_a_while", "jobs", ["finished_at"], postgresql_where=WHERE, sqlite_where=WHERE)


def downgrade() -> None:
    op.drop_index("jobs_kept_a_while", "jobs")
