"""Digests of tables that are equal on both databases, whatever the order of the rows and the form of JSON values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from hashlib import sha256
from typing import Any, Final

from sqlalchemy import JSON, Boolean, Double, Float, Table

from adjudge.store.schema import METADATA

_MODULUS: Final = 1 << 256
_EXACT: Final = Context(prec=150_000, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""More digits than a number of PostgreSQL can have."""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table, with those whose values differ between the databases."""

    name: str
    columns: tuple[str, ...]
    booleans: frozenset[int]
    floats: frozenset[int]
    documents: frozenset[int]

    @classmethod
    def of(cls, table: Table) -> TableColumns:
        kinds = list(table.columns)

        def places(*types: type[Any]) -> frozenset[int]:
            return frozenset(place for place, column in enumerate(kinds) if isinstance(column.type, types))

        return cls(
            table.name, tuple(column.name for column in kinds), places(Boolean), places(Double, Float), places(JSON)
        )

    def for_postgres(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """A row of SQLite as PostgreSQL takes it."""
        return tuple(None if value is None else self._value(place, value) for place, value in enumerate(values))

    def _value(self, place: int, value: Any) -> Any:
        if place in self.booleans:
            return bool(value)
        if place in self.floats:
            return float(value)
        if place in self.documents:
            return value if isinstance(value, str) else json.dumps(value)  # SQLite stores the text of a number as one
        return value


TABLES: Final = tuple(TableColumns.of(table) for table in METADATA.sorted_tables)
"""All tables, referenced ones first."""


@dataclass(slots=True)
class TableDigest:
    """The number of rows of a table, and the sum of their digests."""

    rows: int = 0
    total: int = 0

    def add(self, table: TableColumns, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows, as PostgreSQL has them."""
        for row in rows:
            self.rows += 1
            self.total = (self.total + int.from_bytes(_digest(table, row))) % _MODULUS

    def __str__(self) -> str:
        return f"{self.rows} {self.total:064x}"


def _digest(table: TableColumns, row: Sequence[Any]) -> bytes:
    values = [_canonical(value) if place in table.documents else value for place, value in enumerate(row)]
    return sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).digest()


def _canonical(document: str | None) -> Any:
    """A JSON value with numbers in one form: 1.0 and 1 are the same number, and ``jsonb`` may write either."""
    return None if document is None else [json.loads(document, parse_float=_plain, parse_int=_plain)]


def _plain(text: str) -> dict[str, str]:
    number = Decimal(text)
    return {"number": str(_EXACT.normalize(number)) if number else "0"}
