"""Encoding of JSON documents, and rejection of values that cannot be stored."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.domain.strict_json import MAX_DEPTH, encode_json

CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
DEEP: list[Any] = []
for _ in range(5_000):
    DEEP = [DEEP]


@pytest.mark.parametrize("document", [None, [], {"ä": ["\N{GRINNING FACE}", 1.5, True]}, "\\u0000", {"a": "\\ud800"}])
def test_encode_json_round_trip(document: Any) -> None:
    assert json.loads(encode_json(document, "x")) == document


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"a": [0, {"b": math.nan}]}, "x.a[1].b: nan is not a JSON number; use a number or null."),
        ([-math.inf], "x[0]: -inf is not a JSON number; use a number or null."),
        ({"a": "b\0"}, "x.a: 'b\\x00' contains a NUL character."),
        ({"b\0": 1}, "x: invalid key: 'b\\x00' contains a NUL character."),
        (["\\u0000", "\ud800"], "x[1]: '\\ud800' contains an unpaired UTF-16 surrogate at character 0."),
        ({"a": {1, 2}}, "x: not a JSON value: Object of type set is not JSON serializable."),
        (CIRCLE, "x: not a JSON value: Circular reference detected."),
    ],
)
def test_invalid_value_is_rejected_with_path(document: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        encode_json(document, "x")
    assert refused.value.message == said


def _nested(times: int) -> Any:
    document: Any = {"a": "[" * 2 * MAX_DEPTH}
    for _ in range(times - 1):
        document = [0, document]
    return document


@pytest.mark.parametrize("document", [DEEP, _nested(MAX_DEPTH + 1), {"a": [[], _nested(MAX_DEPTH - 1)]}])
def test_deep_nesting_is_rejected(document: Any) -> None:
    with pytest.raises(InvalidInput, match="x: nested deeper than 100 levels"):
        encode_json(document, "x")


@pytest.mark.parametrize("document", [_nested(MAX_DEPTH), [[]] * 2 * MAX_DEPTH, "[" * 2 * MAX_DEPTH])
def test_long_document_is_accepted(document: Any) -> None:
    assert json.loads(encode_json(document, "x")) == document
