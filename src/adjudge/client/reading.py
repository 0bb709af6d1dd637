"""From JSON to values: what is known becomes a field, what is not is kept, so old clients survive new servers."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Mapping
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from adjudge.client.errors import Misunderstood
from adjudge.client.steps import Answer


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What came over the wire."""

    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)
    """Fields that this client does not know of."""


V = TypeVar("V", bound=Value)


@dataclasses.dataclass(frozen=True, slots=True)
class _Shape:
    """What is known of a kind of value."""

    hints: Mapping[str, Any]
    required: tuple[str, ...]


_SHAPES: Final[dict[type[Value], _Shape]] = {}
"""Found once for each kind."""


def document(answer: Answer) -> Any:
    """The JSON of an answer."""
    try:
        return json.loads(answer.body)
    except ValueError:
        raise Misunderstood("The response is not JSON. Is the URL an Adjudge server?") from None


def read(kind: type[V], given: Any) -> V:
    """A value of a JSON object. A field that the server left out is its default, or None."""
    if not isinstance(given, Mapping):
        raise Misunderstood(f"Unexpected response: expected {kind.__name__}, got {type(given).__name__}.")
    shape = _shape(kind)
    values = {name: _convert(hint, given[name]) for name, hint in shape.hints.items() if name in given}
    left_out = {name: None for name in shape.required if name not in given}
    extra = {name: value for name, value in given.items() if name not in shape.hints}
    return kind(**values, **left_out, extra=extra)


def read_all(kind: type[V], given: Any) -> tuple[V, ...]:
    """The ``items`` of a list."""
    items = given.get("items") if isinstance(given, Mapping) else None
    if not isinstance(items, list):
        raise Misunderstood(f"Unexpected response: expected a list of {kind.__name__}.")
    return tuple(read(kind, item) for item in items)


def _shape(kind: type[Value]) -> _Shape:
    if kind not in _SHAPES:
        hints = {name: hint for name, hint in get_type_hints(kind).items() if name != "extra"}
        missing = dataclasses.MISSING
        required = tuple(
            item.name
            for item in dataclasses.fields(kind)
            if item.default is missing and item.default_factory is missing
        )
        _SHAPES[kind] = _Shape(hints, required)
    return _SHAPES[kind]


def _convert(hint: Any, given: Any) -> Any:
    """Nested values and tuples of them; everything else stays as JSON has it."""
    if isinstance(hint, type) and issubclass(hint, Value):
        return read(hint, given)
    origin, args = get_origin(hint), get_args(hint)
    if origin is types.UnionType and given is not None:
        return _convert(args[0], given)
    if origin is tuple and isinstance(given, list):
        return tuple(_convert(args[0], item) for item in given)
    return given
