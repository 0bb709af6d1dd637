"""The example of the guide to SQL statements is valid on SQLite and rendered for both databases."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import fields
from typing import Any

from adjudge.store.engine.statement import Dialect, Statement, render
from scripts.generate_docs import DOCS

PAGE = (DOCS / "how-to" / "write-a-statement.md").read_text()


def _example() -> Statement:
    block = re.search(r"```python\n(from adjudge\.store.*?)```", PAGE, re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    exec(block[1], names)  # that is what this test is for
    (found,) = (value for value in names.values() if isinstance(value, Statement))
    return found


def test_example_can_be_planned(sqlite_url: str) -> None:
    sql = render(_example(), Dialect.SQLITE, "0").sql
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        plan = connection.execute("EXPLAIN QUERY PLAN " + re.sub(r"\?1\b", "'[]'", sql).replace("?2", "0")).fetchall()
    assert not [row for row in plan if row[3].startswith("SCAN outbox")], "the guide's own rule: look rows up by key"


def test_placeholders_are_rendered_as_described() -> None:
    rendered = {dialect: render(_example(), dialect, "CLOCK").sql for dialect in Dialect}
    assert "CLOCK + $3" in rendered[Dialect.POSTGRES]
    assert "unnest(CAST($1 AS text[]), CAST($2 AS text[]))" in rendered[Dialect.POSTGRES]
    assert "CLOCK + ?2" in rendered[Dialect.SQLITE]
    assert "json_each(?1)" in rendered[Dialect.SQLITE]


def test_every_argument_of_a_statement_is_explained() -> None:
    table = PAGE.partition("| argument | meaning |")[2].partition("\n\n")[0]
    optional = {item.name for item in fields(Statement)} - {"name", "purpose", "sql"}
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == optional
