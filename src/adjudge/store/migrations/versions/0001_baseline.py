"""Create the schema.

The DDL is in ``0001_baseline.sqlite.sql`` and ``0001_baseline.postgresql.sql``, one statement per paragraph. Frozen
from the first release on: a later change of the schema is a new migration (decision 0072).
"""

import re
from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_CREATED = re.compile(r"CREATE (TABLE|FUNCTION) (\w+)(\([^)]*\))?")


def upgrade() -> None:
    connection = op.get_bind()
    for statement in _statements(connection.dialect.name):
        connection.exec_driver_sql(statement)


def downgrade() -> None:
    """Drop what ``upgrade`` created, tables before functions; indexes and triggers are dropped with their tables."""
    connection = op.get_bind()
    created = [_CREATED.match(statement) for statement in reversed(_statements(connection.dialect.name))]
    for found in sorted(filter(None, created), key=lambda match: match[1] == "FUNCTION"):
        signature = found[3] or "" if found[1] == "FUNCTION" else ""
        connection.exec_driver_sql(f"DROP {found[1]} {found[2]}{signature}")


def _statements(dialect: str) -> list[str]:
    path = Path(__file__).with_suffix(f".{dialect}.sql")
    return path.read_text(encoding="utf-8").strip().split("\n\n")
