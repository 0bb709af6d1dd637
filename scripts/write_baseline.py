"""Writes the baseline migration from ``adjudge.store.schema``: one SQL file for each database.

Only until the first release: afterwards the baseline is frozen and a change of the schema is a new migration.
Usage: ``python scripts/write_baseline.py``.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from adjudge.store import migrations, schema
from adjudge.store.engine.db_triggers import trigger_ddl
from adjudge.store.engine.statement import Dialect

FOLDER = Path(migrations.__file__).parent / "versions"
DIALECTS = {Dialect.SQLITE: sqlite.dialect, Dialect.POSTGRES: postgresql.dialect}


def baseline_sql(dialect: Dialect) -> str:
    """All DDL of the schema for ``dialect``; statements are separated by an empty line and contain none."""
    compiler = DIALECTS[dialect]()
    ddl: list[str] = []
    for table in schema.METADATA.sorted_tables:
        ddl.append(str(CreateTable(table).compile(dialect=compiler)))
        ddl += [
            str(CreateIndex(index).compile(dialect=compiler))
            for index in sorted(table.indexes, key=lambda i: str(i.name))
        ]
    ddl += trigger_ddl(dialect)
    return "\n\n".join(_without_empty_lines(text) for text in ddl) + "\n"


def _without_empty_lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.expandtabs(4).splitlines() if line.strip())


def main() -> None:
    """Write both files."""
    for dialect in DIALECTS:
        (FOLDER / f"0001_baseline.{dialect}.sql").write_text(baseline_sql(dialect), encoding="utf-8")


if __name__ == "__main__":
    main()
