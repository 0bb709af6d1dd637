"""Whoever did something by hand is named by id: so are those who did so before.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "UPDATE audit_log SET actor = (SELECT users.id FROM users WHERE users.name = audit_log.actor) "
        "WHERE actor IN (SELECT name FROM users)"
    )


def downgrade() -> None:
    """Ids may stay: who was named by one before could not be told."""
