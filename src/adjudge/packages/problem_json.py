"""A problem as JSON document, in both directions.

The mapping is driven by the model's type hints, so a new field needs no code. Infinities become the strings ``inf`` and
``-inf``, because JSON has no such numbers.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from adjudge.domain.errors import InvalidInput
from adjudge.domain.problem import Problem

SCHEMA_VERSION = 1


def problem_to_json(problem: Problem) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, "problem": encode(problem)}


def problem_from_json(document: Mapping[str, Any]) -> Problem:
    if document.get("schema_version") != SCHEMA_VERSION:
        raise InvalidInput(f"schema_version: expected problem document version {SCHEMA_VERSION}.")
    try:
        problem = _decode(Problem, document["problem"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"The problem document is corrupt: {error}.") from error
    if not isinstance(problem, Problem):
        raise InvalidInput("The problem document is corrupt.")
    return problem


def encode(value: object) -> Any:
    """Convert any value of the model to JSON values."""
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, tuple | frozenset):
        items = [encode(item) for item in value]
        return sorted(items) if isinstance(value, frozenset) else items
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    return value


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _decode(kind: Any, value: Any) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else _decode(next(arg for arg in args if arg is not type(None)), value)
    if origin is tuple:
        inner = args[:1] * len(value) if args[1:] == (...,) else args
        return tuple(_decode(arg, item) for arg, item in zip(inner, value, strict=True))
    if origin is frozenset:
        return frozenset(_decode(args[0], item) for item in value)
    if origin is Mapping:
        return {key: _decode(args[1], item) for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind) if isinstance(kind, type) else {}
        known = {name: _decode(hints[name], item) for name, item in value.items() if name in hints}
        return kind(**known)  # type: ignore[operator]  # a dataclass is callable; the check above knows it
    return kind(value)
