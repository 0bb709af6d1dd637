"""The base class of response models."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from enum import Enum
from functools import partial
from typing import Annotated, Any, ClassVar, Final, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

from adjudge.domain.timestamps import format_timestamp

TIMESTAMP_EXAMPLE: Final = "2026-01-31T12:00:00.000Z"


class Described:
    """Description and examples of a type in OpenAPI."""

    def __init__(self, description: str = "", examples: Sequence[object] = ()) -> None:
        self._about = {"description": description, "examples": [*examples]}

    def __get_pydantic_json_schema__(self, schema: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Called by pydantic, which the API uses."""
        return handler(schema) | {name: value for name, value in self._about.items() if value}


def doc(description: str = "", **more: object) -> dict[str, object]:
    """The metadata of a field in OpenAPI: description, examples, bounds."""
    return {"description": description or None, **more}


_TIMESTAMP: Final = Described(examples=[TIMESTAMP_EXAMPLE])
Timestamp = Annotated[str, _TIMESTAMP]
"""RFC 3339; ``of`` converts it from microseconds since the Unix epoch."""
NextCursor = Annotated[str | None, Described("Cursor of the next page; null on the last page.")]

Convert = Callable[[Any], Any]


class ResponseModel:
    """Base of all response models, which are frozen dataclasses."""

    sources: ClassVar[Mapping[str, str]] = {}
    """Attributes of the source that have another name than their field, by field."""
    _extra: Mapping[str, Any]

    @classmethod
    def of(cls, source: object, **values: Any) -> Self:
        """Build it from the attributes (or items) of ``source``; ``values`` are the fields that it does not have."""
        read = partial(_item, source) if isinstance(source, Mapping) else partial(getattr, source)
        for field in _plan(cls):
            if field.name not in values:
                values[field.name] = _converted(read(field.source), field.convert)
        return cls(**values)

    @classmethod
    def from_json(cls, given: Any) -> Self:
        """Decode a JSON object. A missing field gets its default, or None; unknown fields are kept in ``extra``."""
        if not isinstance(given, Mapping):
            raise ValueError(f"expected {cls.__name__}, got {type(given).__name__}")  # wrong data, not a wrong call
        plan = _plan(cls)
        values = {field.name: _converted(given[field.name], field.decode) for field in plan if field.name in given}
        values |= {field.name: None for field in plan if field.is_required and field.name not in given}
        made = cls(**values)
        extra = {name: value for name, value in given.items() if name not in values}
        object.__setattr__(made, "_extra", extra)
        return made

    @property
    def extra(self) -> Mapping[str, Any]:
        """The fields of a decoded response that this version does not know."""
        return getattr(self, "_extra", {})


class _FieldPlan(NamedTuple):
    name: str
    source: str
    is_required: bool
    convert: Convert | None
    decode: Convert | None


_PLANS: Final[dict[type[ResponseModel], tuple[_FieldPlan, ...]]] = {}


def _plan(kind: type[ResponseModel]) -> tuple[_FieldPlan, ...]:
    if kind not in _PLANS:
        _PLANS[kind] = _new_plan(kind)
    return _PLANS[kind]


def _new_plan(kind: type[ResponseModel]) -> tuple[_FieldPlan, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        _FieldPlan(
            field.name,
            kind.sources.get(field.name, field.name),
            field.default is MISSING and field.default_factory is MISSING,
            _converter(hints[field.name], is_json=False),
            _converter(hints[field.name], is_json=True),
        )
        for field in fields(kind)  # type: ignore[arg-type]  # every subclass is a dataclass
    )


def _converter(hint: Any, *, is_json: bool) -> Convert | None:
    """The conversion of a value to ``hint``; None if it stays as it is. Unknown values of enums stay, too."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _timestamp if _TIMESTAMP in args[1:] else _converter(args[0], is_json=is_json)
    if origin in (Union, types.UnionType):
        (inner, *others) = [arg for arg in args if arg is not type(None)]
        return None if others else _converter(inner, is_json=is_json)
    if origin is list:
        item = _converter(args[0], is_json=is_json)
        return list if item is None else partial(_list_of, item)
    if origin is dict:
        return dict  # rows hold other mappings
    return _class_converter(hint, is_json=is_json) if isinstance(hint, type) else None


def _class_converter(hint: type, *, is_json: bool) -> Convert | None:
    if issubclass(hint, ResponseModel):
        return hint.from_json if is_json else hint.of
    if issubclass(hint, Enum):
        return partial(_known, {member.value: member for member in hint})
    return None if is_json or hint not in (bool, float) else hint


def _converted(value: Any, convert: Convert | None) -> Any:
    return value if convert is None or value is None else convert(value)


def _item(source: Mapping[str, Any], name: str) -> Any:
    return source[name]


def _known(members: Mapping[Any, Enum], value: Any) -> Any:
    return members.get(value, value)


def _list_of(convert: Convert, values: Sequence[Any]) -> list[Any]:
    return [convert(value) for value in values]


def _timestamp(value: Any) -> Any:
    return format_timestamp(value) if isinstance(value, int) else value
