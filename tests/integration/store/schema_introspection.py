"""Everything a database's own catalogue says of its schema, in one comparable value."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import asyncpg

Catalogue = dict[str, list[str]]

_POSTGRES = {
    "columns": """
        SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' '
               || coalesce(column_default, '')
        FROM information_schema.columns WHERE table_schema = 'public'""",
    "constraints": """
        SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
    "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "triggers": "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "functions": "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    "tables": """
        SELECT relname || ' ' || coalesce(array_to_string(reloptions, ','), '')
        FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S')""",
}


async def of_postgres(url: str) -> Catalogue:
    connection = await asyncpg.connect(url)
    try:
        found = {part: [row[0] for row in await connection.fetch(sql)] for part, sql in _POSTGRES.items()}
    finally:
        await connection.close()
    return {part: sorted(line for line in lines if "alembic_version" not in line) for part, lines in found.items()}


def of_sqlite(path: Path) -> Catalogue:
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        columns = [
            f"{table}: {column}"
            for kind, table, _ in rows
            if kind == "table" and table != "alembic_version"
            for column in connection.execute(f"PRAGMA table_xinfo({table})").fetchall()
        ]
    finally:
        connection.close()
    found: Catalogue = {"columns": sorted(columns)}
    for kind, name, sql in rows:
        if name != "alembic_version":
            found.setdefault(kind, []).append(_parts(sql))
    return {part: sorted(lines) for part, lines in found.items()}


def _parts(sql: str) -> str:
    """A table's text with its columns and constraints sorted: the order they stand in says nothing."""
    text = re.sub(r"\s+", " ", sql.replace('"', "")).strip()
    if not text.startswith("CREATE TABLE"):
        return text
    head, _, body = text.partition("(")
    lines, depth, current = [], 0, ""
    for character in body.rpartition(")")[0]:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            lines.append(current.strip())
            current = ""
        else:
            current += character
    return f"{head.strip()} ({', '.join(sorted([*lines, current.strip()]))})"
