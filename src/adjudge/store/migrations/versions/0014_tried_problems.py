"""One index tells what somebody has solved, what they have tried, and how problems fare.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        op.f("submissions_judged"),
        "submissions",
        ["user_id", "problem_id", "verdict"],
        sqlite_where=sa.text("verdict IS NOT NULL"),
        postgresql_where=sa.text("verdict IS NOT NULL"),
    )
    op.drop_index(op.f("submissions_solved"), "submissions")


def downgrade() -> None:
    op.create_index(
        op.f("submissions_solved"),
        "submissions",
        ["user_id", "problem_id"],
        sqlite_where=sa.text("status = 'accepted'"),
        postgresql_where=sa.text("status = 'accepted'"),
    )
    op.drop_index(op.f("submissions_judged"), "submissions")
