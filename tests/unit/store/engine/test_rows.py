"""Rows become objects of the class that a statement is bound to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import pytest

from adjudge.store.engine.rows import (
    Convert,
    Json,
    column_names,
    column_values,
    given_columns,
    row_builder,
    select_list,
)
from adjudge.store.engine.statement import Dialect, Statement, render
from tests.support.store_harness import StoreHarness


class Color(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Paint:
    """All kinds of fields."""

    id: str
    is_dry: bool | None
    color: Color
    tags: tuple[str, ...]
    scopes: frozenset[str]
    details: Mapping[str, Any]
    value: Annotated[Any, Json()]
    count: int = 0


@dataclass(frozen=True, slots=True)
class Bucket:
    """A class with another one inside."""

    name: str
    paint: Paint
    is_full: bool


class Pair(NamedTuple):
    """A NamedTuple is bound like a dataclass."""

    left: int
    is_right: bool


class Measured(NamedTuple):
    """A function converts the only column."""

    length: Annotated[int | None, Convert(len)]


VALUES = ["p", 1, "red", '["a", "b"]', '["s"]', '{"k": [1]}', "[null]", 7]
PAINT = Paint("p", True, Color.RED, ("a", "b"), frozenset({"s"}), {"k": [1]}, [None], 7)


def test_values_are_converted_to_the_types_of_the_fields() -> None:
    assert row_builder(Paint)(VALUES) == PAINT
    assert row_builder(Paint)(VALUES).is_dry is True
    assert row_builder(Pair)([1, 0]) == Pair(1, False)


def test_function_converts_the_value_of_a_column_unless_it_is_null() -> None:
    assert row_builder(Measured)(["abc"]) == Measured(3)
    assert row_builder(Measured)([None]) == Measured(None)


def test_null_stays_none() -> None:
    found: Any = row_builder(Paint)(["p", None, "red", None, None, None, None, None])
    assert (found.is_dry, found.tags, found.details, found.value) == (None, None, None, None)


def test_unknown_member_of_an_enumeration_is_rejected() -> None:
    with pytest.raises(KeyError):
        row_builder(Paint)(["p", None, "blue", None, None, None, None, None])


def test_nested_class_takes_its_own_columns() -> None:
    assert column_names(Bucket) == ["name", *column_names(Paint), "is_full"]
    assert row_builder(Bucket)(["b", *VALUES, 0]) == Bucket("b", PAINT, False)


def test_select_list_follows_the_fields() -> None:
    assert select_list(Pair) == "left, is_right"
    assert select_list(Pair, "t") == "t.left AS left, t.is_right AS is_right"
    assert select_list(Pair, "", {"left": "count(*)"}) == "count(*) AS left, is_right"


def test_columns_are_rendered_into_the_text() -> None:
    statement = Statement(
        "test.pair", "Read.", "SELECT {columns:t} FROM t", row=Pair, columns={"left": "{now} - :since"}
    )
    rendered = render(statement, Dialect.SQLITE, "CLOCK")
    assert rendered.sql == "SELECT CLOCK - ?1 AS left, t.is_right AS is_right FROM t"
    assert rendered.parameters == ("since",)


@pytest.mark.parametrize(
    "arguments",
    [
        {"sql": "SELECT 1", "row": Pair},
        {"sql": "SELECT {columns}"},
        {"sql": "SELECT {columns}", "row": Pair, "sqlite_sql": "SELECT 1"},
        {"sql": "SELECT {columns}", "row": Pair, "columns": {"top": "1"}},
        {"sql": "SELECT 1", "columns": {"left": "1"}},
    ],
)
def test_statement_whose_columns_and_row_differ_is_rejected(arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"^test\.wrong: "):
        Statement("test.wrong", "Read.", **arguments)


async def test_both_databases_return_the_same_objects(store: StoreHarness) -> None:
    statement = Statement(
        "test.read_pair",
        "Read a pair of each input row.",
        "SELECT {columns} FROM {given} ORDER BY given_left",
        input_columns={"given_left": "bigint"},
        row=Pair,
        columns={"left": "given_left", "is_right": "given_left > 1"},
    )
    found = await store.database.read(lambda tx: tx.fetch(statement, [(1,), (2,)]))
    assert found == [Pair(1, False), Pair(2, True)]
    assert [item.is_right for item in found] == [False, True]


@dataclass(frozen=True, slots=True)
class NewPaint:
    """What a statement writes."""

    id: str
    color: Color | None
    count: int | None
    weight: float
    is_dry: bool
    tags: tuple[str, ...]
    details: Mapping[str, Any]


def test_fields_become_parameters_of_a_statement() -> None:
    paint = NewPaint("p", Color.RED, None, 1.5, True, ("a", "b"), {"k": [1]})
    values = {"id": "p", "color": "red", "count": None, "weight": 1.5, "is_dry": True}
    assert column_values(paint) == values | {"tags": '["a", "b"]', "details": '{"k": [1]}'}


def test_input_columns_have_the_order_and_types_of_the_fields() -> None:
    assert list(given_columns(NewPaint).items()) == [
        ("given_id", "text"),
        ("given_color", "text"),
        ("given_count", "bigint"),
        ("given_weight", "double precision"),
        ("given_is_dry", "boolean"),
        ("given_tags", "jsonb"),
        ("given_details", "jsonb"),
    ]


@pytest.mark.parametrize("lock", ["FOR UPDATE", "FOR NO KEY UPDATE OF jobs SKIP LOCKED", "FOR SHARE"])
def test_row_lock_is_left_out_on_sqlite(lock: str) -> None:
    statement = Statement("jobs.lock", "Lock a job.", f"SELECT id FROM jobs WHERE id = :id {lock}")
    assert render(statement, Dialect.SQLITE, "0").sql == "SELECT id FROM jobs WHERE id = ?1"
    assert render(statement, Dialect.POSTGRES, "0").sql == f"SELECT id FROM jobs WHERE id = $1 {lock}"
