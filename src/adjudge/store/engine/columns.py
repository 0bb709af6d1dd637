"""The MetaData, and functions for the columns and constraints of all tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    MetaData,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.elements import ColumnElement, TextClause
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

METADATA = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s",
        "ix": "%(table_name)s_%(column_0_N_name)s",
    }
)

JSON_TEXT: TypeEngine[Any] = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
SERIAL: TypeEngine[int] = BigInteger().with_variant(Integer, "sqlite")
"""A serial number: SQLite generates only INTEGER primary keys."""


def id_column() -> Column[str]:
    """The primary key: a UUID as text."""
    return Column("id", Text, primary_key=True)


def foreign_key(name: str, target: str, *, nullable: bool = False, ondelete: str | None = None) -> Column[str]:
    """A foreign key; prevents the deletion of the referenced row unless ``ondelete`` is given."""
    return Column(name, Text, ForeignKey(f"{target}.id", ondelete=ondelete), nullable=nullable)


def log_foreign_key(name: str, target: str) -> tuple[Column[str], ForeignKeyConstraint]:
    """The reference of a log entry to its row: a foreign key on SQLite only.

    PostgreSQL would check it for every entry. The row exists, because its own trigger appends the entry, and a log
    cleanup trigger deletes the entries (``db_triggers.py``, decision 0047).
    """
    key = ForeignKeyConstraint([name], [f"{target}.id"], ondelete="CASCADE")
    return Column(name, Text, nullable=False), key.ddl_if(dialect="sqlite")


def number_column() -> Column[int]:
    """The number that people call a row by: from a sequence on PostgreSQL, given by the INSERT on SQLite (ADR 0087)."""
    return Column("number", BigInteger, Identity(always=True), nullable=False)


def timestamp_column(name: str, *, nullable: bool = False) -> Column[int]:
    """A point in time, in microseconds since the Unix epoch, UTC."""
    return Column(name, BigInteger, nullable=nullable)


def integer_column(name: str, default: int | None = 0, *, nullable: bool = False) -> Column[int]:
    """A count or a size."""
    return Column(name, BigInteger, nullable=nullable, server_default=None if default is None else str(default))


def text_column(name: str, *, nullable: bool = False, default: str | None = None) -> Column[str]:
    return Column(name, Text, nullable=nullable, server_default=default)


def json_column(name: str, *, nullable: bool = False, default: TextClause | None = None) -> Column[Any]:
    return Column(name, JSON_TEXT, nullable=nullable, server_default=default)


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """An index of the rows for which ``where`` holds."""
    return Index(name, *columns, unique=unique, postgresql_where=text(where), sqlite_where=text(where))


class DialectCondition(ColumnElement[bool]):
    """A condition with a separate text for PostgreSQL."""

    inherit_cache = False

    def __init__(self, usual: str, postgres: str) -> None:
        self.usual = usual
        self.postgres = postgres


@compiles(DialectCondition)
def _usual(element: DialectCondition, *_: Any, **__: Any) -> str:
    return element.usual


@compiles(DialectCondition, "postgresql")
def _for_postgres(element: DialectCondition, *_: Any, **__: Any) -> str:
    return element.postgres


def _among(pattern: str, column: str, values: Sequence[str]) -> DialectCondition:
    """``pattern`` with the condition that ``column`` is one of ``values``.

    PostgreSQL parses a CHECK in every write statement. An array constant is parsed in half the time of an IN list.
    """
    usual = f"{column} IN ({', '.join(map(repr, values))})"
    constant = f"{column} = ANY ('{{{','.join(values)}}}')" if len(values) > 1 else usual
    return DialectCondition(pattern.format(usual), pattern.format(constant))


def check_one_of(column: str, values: type[StrEnum] | Iterable[str]) -> CheckConstraint:
    return CheckConstraint(_among("{}", column, [str(value) for value in values]), name=f"{column}_known")


def check_set_exactly_when(column: str, status: str, values: Iterable[StrEnum]) -> CheckConstraint:
    among = _among(f"({column} IS NOT NULL) = ({{}})", status, sorted(str(value) for value in values))
    return CheckConstraint(among, name=f"{column}_exactly_when")


class CurrentTransactionId(FunctionElement[int]):
    """The id of the writing transaction, from which readers know that no earlier row can appear any more.

    On SQLite it is always 0: there is one writer, so serial numbers are in commit order.
    """

    inherit_cache = True


@compiles(CurrentTransactionId)
def _elsewhere(*_: Any, **__: Any) -> str:
    return "0"


@compiles(CurrentTransactionId, "postgresql")
def _on_postgres(*_: Any, **__: Any) -> str:
    return "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
