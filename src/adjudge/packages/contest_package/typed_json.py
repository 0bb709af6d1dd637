"""JSON values as frozen dataclasses, driven by their type hints. Every error names the path of the value.

Unknown keys and values of the wrong type are errors: a file of this format that is misread would give other results.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from functools import cache
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
Report = Callable[[str, str], None]
"""Called with the path of a value and what is wrong with it."""

_NAMES: Final = {str: "a string", int: "an integer", bool: "true or false", float: "a number"}
_MAX_INTEGER: Final = 1 << 62


class _Invalid(Exception):
    """A value that cannot be decoded; it was reported."""


def encode_value(value: object) -> Any:
    """Convert a dataclass to JSON values; fields with their default are left out."""
    return _encoder(cast("Any", type(value)))(value)


@cache
def _encoder(kind: Any) -> Callable[[Any], Any]:
    """The function that converts values of a type; made once, because a contest has millions of values."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        inner = _encoder(_member(args))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        item = _encoder(args[0])
        return lambda value: [item(entry) for entry in value]
    if dataclasses.is_dataclass(kind):
        return _object_encoder(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda value: value.value
    return lambda value: value  # scalars, and maps of JSON values


def _object_encoder(kind: Any) -> Callable[[Any], Any]:
    hints = _hints(kind)
    fields = [(item.name, _default(item), _encoder(hints[item.name])) for item in dataclasses.fields(kind)]

    def encode(value: object) -> dict[str, Any]:
        found = ((name, getattr(value, name), default, encoder) for name, default, encoder in fields)
        return {name: encoder(given) for name, given, default, encoder in found if given != default}

    return encode


def _default(item: dataclasses.Field[Any]) -> object:
    if item.default_factory is not dataclasses.MISSING:
        return item.default_factory()
    return item.default


def decode_value(kind: type[T], value: object, report: Report) -> T | None:
    """Convert a JSON value to a dataclass; None if it is invalid, after all errors were reported."""
    try:
        found: T = _decoder(cast("Any", kind))(value)
    except _Invalid:
        pass
    else:
        return found
    with suppress(_Invalid):
        _decode(kind, value, "", report)  # decodes it again, to name the paths of the errors
    return None


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """The function that converts a JSON value to a type and raises without a report."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        inner = _decoder(_member(args))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        item = _decoder(args[0])
        return lambda value: tuple(map(item, value)) if type(value) is list else _fail()
    if dataclasses.is_dataclass(kind):
        return _object_decoder(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        members = {item.value: item for item in kind}
        return lambda value: members[value] if type(value) is str and value in members else _fail()
    return _SCALARS.get(kind) or (lambda value: _decode(kind, value, "", _ignore))


def _object_decoder(kind: Any) -> Callable[[Any], Any]:
    hints = _hints(kind)
    decoders = {name: _decoder(hint) for name, hint in hints.items()}
    required = {item.name for item in dataclasses.fields(kind) if _default(item) is dataclasses.MISSING}

    def decode(value: Any) -> Any:
        if type(value) is not dict or not value.keys() <= decoders.keys() or not required <= value.keys():
            raise _Invalid
        return kind(**{name: decoders[name](given) for name, given in value.items()})

    return decode


def _fail() -> Any:
    raise _Invalid


_SCALARS: Final[Mapping[Any, Callable[[Any], Any]]] = {
    str: lambda value: value if type(value) is str and "\0" not in value else _fail(),
    int: lambda value: value if type(value) is int and -_MAX_INTEGER <= value <= _MAX_INTEGER else _fail(),
    bool: lambda value: value if type(value) is bool else _fail(),
}
"""The decoders of the most frequent values."""


def _ignore(path: str, message: str) -> None:
    """Errors are reported by a second pass."""


def _member(args: tuple[Any, ...]) -> Any:
    """The type of an optional value."""
    return next(arg for arg in args if arg is not type(None))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _decode(kind: Any, value: Any, path: str, report: Report) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return (
            None if value is None else _decode(next(arg for arg in args if arg is not type(None)), value, path, report)
        )
    if origin is tuple:
        return _decode_list(args[0], value, path, report)
    if origin is Mapping:
        return _decode_map(args[1], value, path, report)
    if dataclasses.is_dataclass(kind):
        return _decode_object(kind, value, path, report)
    return value if kind is Any else _decode_scalar(kind, value, path, report)


def _decode_list(kind: Any, value: Any, path: str, report: Report) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _invalid(path, "must be a list.", report)
    return tuple(_all([(kind, item, f"{path}[{index}]") for index, item in enumerate(value)], report))


def _decode_map(kind: Any, value: Any, path: str, report: Report) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _invalid(path, "must be an object.", report)
    return dict(zip(value, _all([(kind, item, _join(path, key)) for key, item in value.items()], report), strict=True))


def _decode_object(kind: Any, value: Any, path: str, report: Report) -> Any:
    if not isinstance(value, dict):
        raise _invalid(path, "must be an object.", report)
    hints, is_valid = _hints(kind), True
    for item in dataclasses.fields(kind):
        has_default = item.default is not dataclasses.MISSING or item.default_factory is not dataclasses.MISSING
        if item.name not in value and not has_default:
            report(_join(path, item.name), "is missing.")
            is_valid = False
    for name in sorted(value.keys() - hints.keys()):
        report(_join(path, name), "is not a key of this format.")
        is_valid = False
    known = [name for name in value if name in hints]
    decoded = _all([(hints[name], value[name], _join(path, name)) for name in known], report)
    if not is_valid:
        raise _Invalid
    return kind(**dict(zip(known, decoded, strict=True)))


def _decode_choice(kind: type[Enum], value: Any, path: str, report: Report) -> Enum:
    choices = [item.value for item in kind]
    if not isinstance(value, str) or value not in choices:
        raise _invalid(path, f"must be one of {', '.join(choices)}.", report)
    return kind(value)


def _decode_scalar(kind: Any, value: Any, path: str, report: Report) -> Any:
    if issubclass(kind, Enum):
        return _decode_choice(kind, value, path, report)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind:
        raise _invalid(path, f"must be {_NAMES[kind]}.", report)
    if kind is int and abs(value) > _MAX_INTEGER:
        raise _invalid(path, "is out of range.", report)
    if kind is str and "\0" in value:
        raise _invalid(path, "must not contain a null character.", report)
    return value


def _all(items: list[tuple[Any, Any, str]], report: Report) -> list[Any]:
    """Decode all items, so that every error is reported."""
    decoded, is_valid = [], True
    for kind, value, path in items:
        try:
            decoded.append(_decode(kind, value, path, report))
        except _Invalid:
            is_valid = False
    if not is_valid:
        raise _Invalid
    return decoded


def _join(path: str, name: str) -> str:
    return f"{path}.{name[:60]}" if path else name[:60]


def _invalid(path: str, message: str, report: Report) -> _Invalid:
    report(path or "document", message)
    return _Invalid()
