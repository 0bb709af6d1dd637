"""Decodes JSON into models. Unknown fields are kept in ``extra``, so that old clients work with new servers."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Mapping
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from adjudge.client.errors import BadResponseError
from adjudge.client.sans_io import HttpResponse


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResponseModel:
    """Base of all response models."""

    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)
    """Fields that this client does not know."""


V = TypeVar("V", bound=ResponseModel)


@dataclasses.dataclass(frozen=True, slots=True)
class _Shape:
    """Fields of a model."""

    hints: Mapping[str, Any]
    required: tuple[str, ...]


_SHAPES: Final[dict[type[ResponseModel], _Shape]] = {}
"""Cached per model."""


def json_body(answer: HttpResponse) -> Any:
    """The JSON body of a response."""
    try:
        return json.loads(answer.body)
    except ValueError:
        raise BadResponseError("The response is not JSON. Is the URL an Adjudge server?") from None


def decode(kind: type[V], given: Any) -> V:
    """Decode a JSON object. A missing field gets its default, or None."""
    if not isinstance(given, Mapping):
        raise BadResponseError(f"Unexpected response: expected {kind.__name__}, got {type(given).__name__}.")
    shape = _shape(kind)
    values = {name: _convert(hint, given[name]) for name, hint in shape.hints.items() if name in given}
    left_out = {name: None for name in shape.required if name not in given}
    extra = {name: value for name, value in given.items() if name not in shape.hints}
    return kind(**values, **left_out, extra=extra)


def decode_list(kind: type[V], given: Any) -> tuple[V, ...]:
    """Decode the ``items`` of a list."""
    items = given.get("items") if isinstance(given, Mapping) else None
    if not isinstance(items, list):
        raise BadResponseError(f"Unexpected response: expected a list of {kind.__name__}.")
    return tuple(decode(kind, item) for item in items)


def _shape(kind: type[ResponseModel]) -> _Shape:
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
    """Decode nested models and tuples of them; other values stay as they are in JSON."""
    if isinstance(hint, type) and issubclass(hint, ResponseModel):
        return decode(hint, given)
    origin, args = get_origin(hint), get_args(hint)
    if origin is types.UnionType and given is not None:
        return _convert(args[0], given)
    if origin is tuple and isinstance(given, list):
        return tuple(_convert(args[0], item) for item in given)
    return given
