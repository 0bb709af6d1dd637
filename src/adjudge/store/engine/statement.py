"""A named SQL statement that both databases run.

One text serves both databases where possible. These placeholders are rendered for each dialect:

``:name``
    a parameter, passed by keyword;
``{now}``
    the clock of the database, in microseconds since the Unix epoch, UTC;
``{columns}``, ``{columns:table}``
    the columns that the row type of the statement is built from (``engine/rows.py``), qualified by ``table``;
``{given}``
    a relation of the rows passed as ``rows``, so that one statement works on any number of rows in one round trip.
    PostgreSQL gets arrays and ``unnest``, SQLite a JSON text and ``json_each``. A single row, the usual case of an idle
    server, is passed as plain values: they take less time to send and parse, and the plan is a look-up, not a join.

A row lock at the end of a text (``FOR UPDATE``) is left out on SQLite, which has one writer at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, cast

from adjudge.domain.errors import InvalidInput
from adjudge.store.engine.rows import column_names, row_builder, select_list

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # typing has defaults of type variables from Python 3.13 on
else:
    from typing import TypeVar

Rows = Sequence[Sequence[object]]

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_COLUMNS = re.compile(r"\{columns(?::(\w+))?\}")
_ROW_LOCK = re.compile(r"\s+FOR (?:NO KEY )?(?:UPDATE|SHARE)(?: OF \w+)?(?: SKIP LOCKED)?(?=\s*$)")


class Row(Protocol):
    """One row of a result, read by column name, or in the order of its columns."""

    def __getitem__(self, column: str, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]:
        """The values, in the order of the columns."""
        ...


class Dialect(StrEnum):
    """The supported databases."""

    SQLITE = "sqlite"
    POSTGRES = "postgresql"


RowT = TypeVar("RowT")
if TYPE_CHECKING:
    RowT_co = TypeVar("RowT_co", covariant=True, default=Row)
else:
    RowT_co = TypeVar("RowT_co", covariant=True)


@dataclass(frozen=True)
class Statement(Generic[RowT_co]):
    """A named SQL text with its purpose. ``fetch`` returns objects of ``row``, or rows as the driver has them."""

    name: str
    purpose: str
    sql: str
    input_columns: Mapping[str, str] = field(default_factory=dict)
    """Columns of ``{given}`` and their SQL types, in the order of the row's values."""
    row: type[RowT_co] | None = None
    """The dataclass or NamedTuple of the rows; its fields are the columns of ``{columns}``."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """SQL expressions of fields of ``row`` that are not read from the column of their name."""
    sqlite_sql: str | None = None
    """A separate text for SQLite, if one text cannot serve both."""
    only_dialect: Dialect | None = None
    """The only database that has this statement, if the other does the same with other statements."""
    force_custom_plan: bool = False
    """Whether PostgreSQL plans it for the values of each call even in a write transaction: a search by filters."""

    def __post_init__(self) -> None:
        """Reject a row type whose columns are not those of the text."""
        for text in (self.sql, self.sqlite_sql):
            if text is not None and bool(_COLUMNS.search(text)) != (self.row is not None):
                raise TypeError(f"{self.name}: give a row type and {{columns}} in the SQL, or neither")
        if self.columns and (self.row is None or not self.columns.keys() <= {*column_names(self.row)}):
            raise TypeError(f"{self.name}: columns must be fields of the row type")

    @cached_property
    def _build(self) -> Callable[[Iterable[Any]], RowT_co]:
        return row_builder(cast("type[RowT_co]", self.row))

    def build_rows(self, rows: list[Any]) -> list[RowT_co]:
        """The rows of a driver as what the statement returns."""
        return rows if self.row is None else [*map(self._build, rows)]


@dataclass(frozen=True)
class RenderedStatement:
    """A statement rendered for one database."""

    sql: str
    parameters: tuple[str, ...]
    column_count: int
    dialect: Dialect
    is_single_row: bool = False
    """Whether it takes one input row, as plain values."""

    def arguments(self, rows: Rows | None, named: Mapping[str, object]) -> list[object]:
        """Positional arguments: the input rows first, then the named parameters."""
        arguments = self._relation(rows) if self.column_count else []
        arguments.extend([named[parameter] for parameter in self.parameters])
        if self.dialect is Dialect.SQLITE:
            refuse_zero_bytes(arguments)
        return arguments

    def _relation(self, rows: Rows | None) -> list[object]:
        if rows is None:
            raise TypeError("this statement needs rows")
        if self.is_single_row:
            return list(rows[0])
        if self.dialect is Dialect.SQLITE:
            return [as_json(rows)]
        return [list(column) for column in zip(*rows, strict=True)] or [[]] * self.column_count


def as_json(rows: Rows) -> str:
    """The rows as one JSON text. An unpaired surrogate is kept, so that the driver rejects it as it does elsewhere."""
    text = json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
    if "\\u0000" in text:
        for row in rows:
            refuse_zero_bytes(row)
    return text


def refuse_zero_bytes(values: Iterable[object]) -> None:
    """PostgreSQL cannot store a NUL character and SQLite would cut the text there: reject it on both."""
    for value in values:
        if isinstance(value, str) and "\0" in value:
            raise InvalidInput(f"{value[:64]!r} contains a NUL character, which the database cannot store.")


class StatementCache:
    """Rendered statements of one dialect, each rendered on first use; ``now`` as for ``render``."""

    def __init__(self, dialect: Dialect, now: str) -> None:
        self._dialect = dialect
        self._now = now
        self._rendered: dict[tuple[str, bool], RenderedStatement] = {}

    def get(self, statement: Statement[Any], rows: Rows | None) -> RenderedStatement:
        """The text for this number of rows."""
        is_single = rows is not None and len(rows) == 1 and bool(statement.input_columns)
        rendered = self._rendered.get((statement.name, is_single))
        if rendered is None:
            rendered = render(statement, self._dialect, self._now, is_single=is_single)
            self._rendered[statement.name, is_single] = rendered
        return rendered


def render(statement: Statement[Any], dialect: Dialect, now: str, *, is_single: bool = False) -> RenderedStatement:
    """Render ``statement`` for ``dialect``; ``now`` is the SQL expression of the clock."""
    text = statement.sqlite_sql if dialect is Dialect.SQLITE and statement.sqlite_sql is not None else statement.sql
    if dialect is Dialect.SQLITE:
        text = _ROW_LOCK.sub("", text)
    if statement.row is not None:
        row = statement.row
        text = _COLUMNS.sub(lambda match: select_list(row, match[1] or "", statement.columns), text)
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
