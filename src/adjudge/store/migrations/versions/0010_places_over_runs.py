"""Chains may limit how many runs, and nodes of all runs, are under way at once; runs are listed by who started them.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

A_PLACE = sa.text("place IS NOT NULL")
A_SHARED_PLACE = sa.text("pool IS NOT NULL AND place IS NOT NULL")


def upgrade() -> None:
    op.add_column("chain_runs", sa.Column("place", sa.Text(), nullable=True))
    op.create_index(
        "chain_runs_places",
        "chain_runs",
        ["chain_id", "place", "id"],
        unique=False,
        postgresql_where=A_PLACE,
        sqlite_where=A_PLACE,
    )
    op.create_index(op.f("chain_runs_started_by_id"), "chain_runs", ["started_by", "id"], unique=False)
    op.add_column("chain_nodes", sa.Column("pool", sa.Text(), nullable=True))
    op.create_index(
        "chain_nodes_pools",
        "chain_nodes",
        ["pool", "place", "priority", "run_id", "ordinal", "node_id"],
        unique=False,
        postgresql_where=A_SHARED_PLACE,
        sqlite_where=A_SHARED_PLACE,
    )


def downgrade() -> None:
    op.drop_index("chain_nodes_pools", "chain_nodes")
    op.drop_column("chain_nodes", "pool")
    op.drop_index(op.f("chain_runs_started_by_id"), "chain_runs")
    op.drop_index("chain_runs_places", "chain_runs")
    op.drop_column("chain_runs", "place")
