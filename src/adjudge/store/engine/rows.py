"""Maps rows to dataclasses: the fields of a class are the columns of a statement, in their order.

A field is read from the column of its name, unless the statement gives another SQL expression for it. ``bool`` and
enumerations are converted, because SQLite has no booleans and both databases store text. ``tuple``, ``frozenset``,
``list``, ``Sequence``, ``dict`` and ``Mapping`` are JSON columns; ``Annotated[Any, Json()]`` is a JSON column of any
shape, ``Annotated[X, Convert(function)]`` a column whose value a function converts. A field whose type is a dataclass
or NamedTuple stands for the columns of that class. Everything else is taken as the driver returns it. NULL stays None.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from itertools import islice
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
_SQL_TYPES = {bool: "boolean", int: "bigint", float: "double precision", str: "text"}
Converter = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Json:
    """Annotation of a field that is a JSON document, where its type does not say so."""


@dataclass(frozen=True, slots=True)
class Convert:
    """Annotation of a field that ``function`` makes of the value of its column."""

    function: Converter


def decode_json(found: str | float | None) -> Any:
    """The value of a JSON column. SQLite returns a document that is a number as a number."""
    return json.loads(found) if isinstance(found, str) else found


def select_list(row_type: type[Any], table: str = "", expressions: Mapping[str, str] = MappingProxyType({})) -> str:
    """The columns of a SELECT or RETURNING that ``row_type`` is built from.

    ``expressions`` are those of fields that are not read from the column of their name; the others are qualified by
    ``table``.
    """
    plain = f"{table}." if table else ""
    return ", ".join(
        f"{expressions.get(name, plain + name)} AS {name}" if name in expressions or table else name
        for name in column_names(row_type)
    )


def column_names(row_type: type[Any]) -> list[str]:
    return [
        column
        for name, hint in _hints(row_type).items()
        for column in (column_names(hint) if _is_row_type(hint) else [name])
    ]


def column_values(row: Any) -> dict[str, Any]:
    """The fields of a dataclass as parameters of a statement; enumerations by value, JSON documents as text."""
    return {item.name: _column_value(getattr(row, item.name)) for item in fields(row)}


def _column_value(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return json.dumps(list(value))
    return json.dumps(dict(value)) if isinstance(value, Mapping) else value


def given_columns(row_type: type[Any]) -> dict[str, str]:
    """The input columns of a statement that takes ``column_values`` of ``row_type``: ``given_NAME`` → SQL type."""
    return {f"given_{name}": _sql_type(hint) for name, hint in _hints(row_type).items()}


def _sql_type(hint: Any) -> str:
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    kind = kinds[0] if get_origin(hint) in (Union, UnionType) else hint
    kind = get_origin(kind) or kind
    return next((name for known, name in _SQL_TYPES.items() if issubclass(kind, known)), "jsonb")


def row_builder(row_type: type[T]) -> Callable[[Iterable[Any]], T]:
    """The function that builds a ``row_type`` from the values of ``select_list``."""
    if any(map(_is_row_type, _hints(row_type).values())):
        return _nested_builder(row_type)
    converters = [(index, found) for index, hint in enumerate(_hints(row_type).values()) if (found := _converter(hint))]
    if not converters:
        return lambda row: row_type(*row)

    def build(row: Iterable[Any]) -> T:
        values = list(row)
        for index, convert in converters:
            if values[index] is not None:
                values[index] = convert(values[index])
        return row_type(*values)

    return build


def _nested_builder(row_type: type[T]) -> Callable[[Iterable[Any]], T]:
    steps = [_step(hint) for hint in _hints(row_type).values()]

    def build(row: Iterable[Any]) -> T:
        values = iter(row)
        return row_type(*[step(values) for step in steps])

    return build


def _step(hint: Any) -> Callable[[Iterator[Any]], Any]:
    """The function that takes the values of one field from a row."""
    if _is_row_type(hint):
        inner, width = row_builder(hint), len(column_names(hint))
        return lambda values: inner(islice(values, width))
    convert = _converter(hint)
    if convert is None:
        return next
    return lambda values: None if (found := next(values)) is None else convert(found)


def _is_row_type(hint: Any) -> bool:
    return isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields"))


def _hints(row_type: type[Any]) -> dict[str, Any]:
    """The fields of a dataclass or NamedTuple with their types."""
    names = [item.name for item in fields(row_type)] if is_dataclass(row_type) else row_type._fields
    hints = get_type_hints(row_type, include_extras=True)
    return {name: hints[name] for name in names}


def _converter(hint: Any) -> Converter | None:
    """What turns a value that is not NULL into the type of the field; None if it already has it."""
    if get_origin(hint) is Annotated:
        kind, *marks = get_args(hint)
        for mark in marks:
            if isinstance(mark, Convert):
                return mark.function
            if isinstance(mark, Json):
                return decode_json
        return _converter(kind)
    if get_origin(hint) in (Union, UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        return _converter(kinds[0]) if len(kinds) == 1 else None
    kind = get_origin(hint) or hint
    return _class_converter(kind) if isinstance(kind, type) else None


def _class_converter(kind: type[Any]) -> Converter | None:
    if kind is bool:
        return bool
    if kind in (tuple, frozenset):
        return lambda found: kind(decode_json(found))
    if issubclass(kind, Enum):
        return {member.value: member for member in kind}.__getitem__
    return decode_json if kind is Sequence or issubclass(kind, (list, Mapping)) else None
