"""JSON documents that both databases can store and every response can contain.

Python accepts more: NaN and infinity, unpaired surrogates, NUL characters (which PostgreSQL cannot store) and unlimited
nesting (which encoders reject). Such a document would be accepted by one database only, or could be stored but never be
returned.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from adjudge.domain.errors import InvalidInput

MAX_DEPTH: Final = 100
"""Maximum nesting depth. Responses nest a document further, and encoders stop at 255."""


def encode_json(document: Any, path: str) -> str:
    """Encode a document; raises InvalidInput with the path of the value that cannot be stored."""
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except RecursionError:
        raise _too_deep(path) from None
    except (TypeError, ValueError) as error:
        raise InvalidInput(_find_problem(document, path) or f"{path}: not a JSON value: {error}.", field=path) from None
    if "\\u0000" in text and (problem := _find_problem(document, path)):
        raise InvalidInput(problem, field=path)
    if text.count("{") + text.count("[") > MAX_DEPTH and _is_deep(document):
        raise _too_deep(path)
    return text


def _too_deep(path: str) -> InvalidInput:
    return InvalidInput(f"{path}: nested deeper than {MAX_DEPTH} levels.", field=path)


def _is_deep(document: Any) -> bool:
    """Whether the document is nested deeper than MAX_DEPTH; visits every value once."""
    level = [document] if isinstance(document, dict | list | tuple) else []
    for _ in range(MAX_DEPTH):
        items = (item for value in level for item in (value.values() if isinstance(value, dict) else value))
        level = [item for item in items if isinstance(item, dict | list | tuple)]
    return bool(level)


def _find_problem(document: Any, path: str) -> str | None:
    """Find the first invalid value. Iterative, because the document may be nested deeply."""
    seen, waiting = set[int](), [(path, document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            if (problem := _text_problem(value)) is not None:
                return f"{path}: {problem}."
        elif isinstance(value, float):
            if value - value != 0:
                return f"{path}: {value} is not a JSON number; use a number or null."
        elif isinstance(value, Mapping | list | tuple) and id(value) not in seen:
            seen.add(id(value))
            for key in value if isinstance(value, Mapping) else ():
                if isinstance(key, str) and (problem := _text_problem(key)) is not None:
                    return f"{path}: invalid key: {problem}."
            waiting += reversed(_below(path, value))
    return None


def _below(path: str, value: Mapping[Any, Any] | list[Any] | tuple[Any, ...]) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(f"{path}.{key}", item) for key, item in value.items()]
    return [(f"{path}[{index}]", item) for index, item in enumerate(value)]


def _text_problem(text: str) -> str | None:
    if "\0" in text:
        return f"{text[:40]!r} contains a NUL character"
    for position, character in enumerate(text):
        if "\ud800" <= character <= "\udfff":
            return f"{text[:40]!r} contains an unpaired UTF-16 surrogate at character {position}"
    return None
