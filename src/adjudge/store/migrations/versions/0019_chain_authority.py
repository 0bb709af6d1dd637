"""Runs, triggers and chains keep on whose authority they act, and named secrets are kept encrypted.

What was there acts for the user whose name, or id, is written on it, with all that this user may do.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
_OWNERS = {
    "chain_triggers": "SELECT users.id FROM users WHERE chain_triggers.created_by IN (users.id, users.name)",
    "chains": """
        SELECT users.id FROM users JOIN chain_versions ON chain_versions.actor IN (users.id, users.name)
        WHERE chain_versions.chain_id = chains.id AND chain_versions.version = chains.version
        """,
    "chain_runs": """
        SELECT users.id FROM users
        WHERE chain_runs.started_by IN (users.id, users.name) OR EXISTS (
            SELECT 1 FROM chain_triggers WHERE chain_runs.started_by = 'trigger:' || chain_triggers.id
            AND chain_triggers.created_by IN (users.id, users.name))
        """,
}


def upgrade() -> None:
    array, item = "json_array", "json_object"
    if op.get_bind().dialect.name == "postgresql":
        array, item = "jsonb_build_array", "jsonb_build_object"
    for table, owner in _OWNERS.items():
        op.add_column(table, sa.Column("authority", _JSON, nullable=True))
        found = f"({owner} ORDER BY users.id LIMIT 1)"
        op.execute(
            f"UPDATE {table} SET authority = {array}({item}('user_id', {found}, 'token_id', NULL)) "
            f"WHERE {found} IS NOT NULL"
        )
    op.create_table(
        "chain_secrets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("ciphertext", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_by", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="chain_secrets_pkey"),
    )


def downgrade() -> None:
    op.drop_table("chain_secrets")
    for table in _OWNERS:
        op.drop_column(table, "authority")
