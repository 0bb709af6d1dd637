"""The MetaData and the few column shapes that every table is made of."""

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
    Integer,
    MetaData,
    Text,
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
"""A counter: SQLite only counts INTEGER primary keys."""


def id_column() -> Column[str]:
    """The primary key of a thing that people and programs name."""
    return Column("id", Text, primary_key=True)


def foreign_key(name: str, target: str, *, nullable: bool = False, ondelete: str | None = None) -> Column[str]:
    """A foreign key. What is history refuses the deletion of what it speaks of, unless ``ondelete`` says otherwise."""
    return Column(name, Text, ForeignKey(f"{target}.id", ondelete=ondelete), nullable=nullable)


def log_foreign_key(name: str, target: str) -> tuple[Column[str], ForeignKeyConstraint]:
    """What a row of a log speaks of, and is deleted with: a foreign key on SQLite alone.

    PostgreSQL would look for it once more with every row that is appended. It is there: its own trigger appends, or the
    statement that creates it, and a sweep deletes as the foreign key would (``db_triggers.py``, decision 0047).
    """
    key = ForeignKeyConstraint([name], [f"{target}.id"], ondelete="CASCADE")
    return Column(name, Text, nullable=False), key.ddl_if(dialect="sqlite")


def timestamp_column(name: str, *, nullable: bool = False) -> Column[int]:
    """A point in time, in microseconds since the Unix epoch, UTC."""
    return Column(name, BigInteger, nullable=nullable)


def integer_column(name: str, default: int | None = 0, *, nullable: bool = False) -> Column[int]:
    """A count or a size."""
    return Column(name, BigInteger, nullable=nullable, server_default=None if default is None else str(default))


def text_column(name: str, *, nullable: bool = False, default: str | None = None) -> Column[str]:
    """Text of any length."""
    return Column(name, Text, nullable=nullable, server_default=default)


def json_column(name: str, *, nullable: bool = False, default: TextClause | None = None) -> Column[Any]:
    """A JSON document."""
    return Column(name, JSON_TEXT, nullable=nullable, server_default=default)


class DialectCondition(ColumnElement[bool]):
    """A condition that is spelled for each database."""

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
    """``column`` is one of ``values``, where ``pattern`` says ``{}``.

    PostgreSQL reads a CHECK anew in every statement that writes, and would put an IN together from its parts each time.
    A list that is one constant is read in half the time.
    """
    usual = f"{column} IN ({', '.join(map(repr, values))})"
    constant = f"{column} = ANY ('{{{','.join(values)}}}')" if len(values) > 1 else usual
    return DialectCondition(pattern.format(usual), pattern.format(constant))


def check_one_of(column: str, values: type[StrEnum] | Iterable[str]) -> CheckConstraint:
    """Hold ``column`` to the members of an enumeration, so that the two cannot drift apart."""
    return CheckConstraint(_among("{}", column, [str(value) for value in values]), name=f"{column}_known")


def check_set_exactly_when(column: str, status: str, values: Iterable[StrEnum]) -> CheckConstraint:
    """``column`` is set exactly when ``status`` is one of ``values``."""
    among = _among(f"({column} IS NOT NULL) = ({{}})", status, sorted(str(value) for value in values))
    return CheckConstraint(among, name=f"{column}_exactly_when")


class CurrentTransactionId(FunctionElement[int]):
    """The number of the transaction that writes the row: how a reader knows that nothing below a row can still appear.

    SQLite has one writer, so its counters already are in the order of commits, and the number is always 0.
    """

    inherit_cache = True


@compiles(CurrentTransactionId)
def _elsewhere(*_: Any, **__: Any) -> str:
    return "0"


@compiles(CurrentTransactionId, "postgresql")
def _on_postgres(*_: Any, **__: Any) -> str:
    return "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
