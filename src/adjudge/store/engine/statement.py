"""A named SQL statement that both databases run.

One text serves both wherever it can. Three things are written for the reader and rendered for each dialect:

``:name``
    a parameter, given by keyword;
``{now}``
    the database's clock, in microseconds since the Unix epoch, UTC;
``{given}``
    a relation of the rows passed as ``rows=``: this is how one statement works on a thousand jobs. PostgreSQL gets
    arrays and ``unnest``, SQLite a JSON text and ``json_each``; either way one round trip, whatever the number of rows.
    A single row, which is what an idle judge has most of the time, goes as plain values: they take less to send and to
    read, and a plan with them is a look-up instead of a join.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from adjudge.domain.errors import InvalidInput

Rows = Sequence[Sequence[object]]

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


class Row(Protocol):
    """One row of a result, read by column name, or in the order of its columns."""

    def __getitem__(self, column: str, /) -> Any:
        """Return the value of ``column``."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Go through the values."""
        ...


class Dialect(StrEnum):
    """The databases that Adjudge keeps its truth in."""

    SQLITE = "sqlite"
    POSTGRES = "postgresql"


@dataclass(frozen=True)
class Statement:
    """What to run, what it is called in logs and metrics, and why it exists."""

    name: str
    purpose: str
    sql: str
    input_columns: Mapping[str, str] = field(default_factory=dict)
    """Columns of ``{given}`` and their SQL types, in the order of the row's values."""
    sqlite_sql: str | None = None
    """SQLite's own text, where one cannot serve both."""
    only_dialect: Dialect | None = None
    """The one database that it is for, where the other does the same by other statements."""
    force_custom_plan: bool = False
    """Whether PostgreSQL plans it for the values of each call even where a transaction writes: a search by filters."""


@dataclass(frozen=True)
class RenderedStatement:
    """A statement as one database wants it."""

    sql: str
    parameters: tuple[str, ...]
    column_count: int
    dialect: Dialect
    is_single_row: bool = False
    """Whether it takes one given row, as values."""

    def arguments(self, rows: Rows | None, named: Mapping[str, object]) -> list[object]:
        """Positional arguments: the given relation first, then the named parameters."""
        arguments = self._relation(rows) if self.column_count else []
        arguments.extend([named[parameter] for parameter in self.parameters])
        if self.dialect is Dialect.SQLITE:
            refuse_zero_bytes(arguments)
        return arguments

    def _relation(self, rows: Rows | None) -> list[object]:
        if rows is None:
            raise TypeError("this statement works on rows")
        if self.is_single_row:
            return list(rows[0])
        if self.dialect is Dialect.SQLITE:
            return [as_json(rows)]
        return [list(column) for column in zip(*rows, strict=True)] or [[]] * self.column_count


def as_json(rows: Rows) -> str:
    """The rows as one text. Half a surrogate pair stays as it is, for the driver to refuse as it does elsewhere."""
    text = json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
    if "\\u0000" in text:
        for row in rows:
            refuse_zero_bytes(row)
    return text


def refuse_zero_bytes(values: Iterable[object]) -> None:
    """PostgreSQL has no text with a zero byte and SQLite would cut it there: neither may be given one."""
    for value in values:
        if isinstance(value, str) and "\0" in value:
            raise InvalidInput(f"{value[:64]!r} contains a NUL character, which the database cannot store.")


class StatementCache:
    """The statements of one dialect, each written when it is first asked for; ``now`` as for ``render``."""

    def __init__(self, dialect: Dialect, now: str) -> None:
        self._dialect = dialect
        self._now = now
        self._rendered: dict[tuple[str, bool], RenderedStatement] = {}

    def get(self, statement: Statement, rows: Rows | None) -> RenderedStatement:
        """The text for so many rows."""
        is_single = rows is not None and len(rows) == 1 and bool(statement.input_columns)
        rendered = self._rendered.get((statement.name, is_single))
        if rendered is None:
            rendered = render(statement, self._dialect, self._now, is_single=is_single)
            self._rendered[statement.name, is_single] = rendered
        return rendered


def render(statement: Statement, dialect: Dialect, now: str, *, is_single: bool = False) -> RenderedStatement:
    """Write ``statement`` for ``dialect``; ``now`` is the SQL expression of the clock."""
    text = statement.sqlite_sql if dialect is Dialect.SQLITE and statement.sqlite_sql is not None else statement.sql
    text = text.replace("{given}", _given(statement.input_columns, dialect, is_single)).replace("{now}", now)
    first = 1
    if statement.input_columns:
        first += 1 if dialect is Dialect.SQLITE and not is_single else len(statement.input_columns)
    order: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        position = order.setdefault(match[1], first + len(order))
        return f"?{position}" if dialect is Dialect.SQLITE else f"${position}"

    sql = _PARAMETER.sub(number, text)
    return RenderedStatement(sql, tuple(order), len(statement.input_columns), dialect, is_single)


def _given(columns: Mapping[str, str], dialect: Dialect, is_single: bool) -> str:
    names = ", ".join(columns)
    if is_single:
        one = "?{index}" if dialect is Dialect.SQLITE else "CAST(${index} AS {kind})"
        values = {name: one.format(index=index, kind=columns[name]) for index, name in enumerate(columns, 1)}
        cells = ", ".join(f"{value} AS {name}" for name, value in values.items())
        return f"(SELECT {cells}) AS given"
    if dialect is Dialect.POSTGRES:
        arrays = ", ".join(f"CAST(${index} AS {kind}[])" for index, kind in enumerate(columns.values(), 1))
        return f"unnest({arrays}) AS given({names})"
    cells = ", ".join(f"json_extract(value, '$[{index}]') AS {name}" for index, name in enumerate(columns))
    return f"(SELECT {cells} FROM json_each(?1)) AS given"


def json_from_column(found: str | float | None) -> Any:
    """A JSON value from its column: a document that is a mere number comes as one from SQLite."""
    return json.loads(found) if isinstance(found, str) else found
