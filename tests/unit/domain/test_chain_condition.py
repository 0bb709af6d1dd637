"""Parser and evaluator of ``if``."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.domain.chain_condition import parse_condition
from adjudge.domain.errors import InvalidInput

SCOPE: dict[str, Any] = {
    "parameters": {"mode": "full", "n": 3, "zero": 0, "flag": True, "none": None},
    "artifacts": {"my-node": {"tests": [1, 2, 3], "name": "sum", "0": "nought"}, "b": {"deep": {"x": 1.5}}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("parameters.n == 3", True),
        ("parameters.n == 3.0", True),
        ("parameters.flag == 1", False),
        ("parameters.n >= 3 and parameters.n < 4", True),
        ("parameters.n > 3 or artifacts.b.deep.x > 1", True),
        ("not parameters.zero", True),
        ("not not parameters.zero", False),
        ("parameters.mode in ['full', \"fast\"]", True),
        ("parameters.mode not in ['full']", False),
        ("2 in artifacts.my-node.tests", True),
        ("true in artifacts.my-node.tests", False),
        ("'um' in artifacts.my-node.name", True),
        ("'tests' in artifacts.my-node", True),
        ("artifacts.my-node.tests[0] == 1", True),
        ('artifacts["my-node"].name == "sum"', True),
        ("artifacts.my-node.0 == 'nought'", True),
        ("artifacts.ghost.x == null", True),
        ("artifacts.my-node.tests[9] == null", True),
        ("parameters.none", False),
        ("(parameters.zero or parameters.flag) and true", True),
        ("false or false or parameters.mode != 'x'", True),
        ("-1 < 0", True),
        ("'b' > 'a'", True),
        ("[] == []", True),
        ("not (true and false)", True),
    ],
)
def test_condition_values(text: str, value: bool) -> None:
    assert parse_condition(text).evaluate(SCOPE) is value


@pytest.mark.parametrize("text", ["parameters.n < 'x'", "parameters.none > 1", "1 in 2", "1 in 'x'"])
def test_incomparable_values_raise(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"cannot compare|right side of `in`|`in` on a string"):
        parse_condition(text).evaluate(SCOPE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a name or a value at the end"),
        ("a ==", "expected a name or a value at the end"),
        ("a b", "expected the end at 'b'"),
        ("a = 1", "expected a name, a value or an operator at"),
        ("f(x)", "expected the end at"),
        ("a.", "a name"),
        ("a[", "an index"),
        ("a[1", "']'"),
        ("(a", "')'"),
        ("and a", "a name or a value"),
        ("a not b", "'in'"),
        ('"\\q"', "not a JSON string"),
        ("__import__('os').system('x')", "expected the end at"),
        ("x" * 3_000, "longer than"),
        ("(" * 60 + "1" + ")" * 60, "deeper"),
    ],
)
def test_syntax_error_names_position(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_condition(text)
    assert said in refused.value.message
    assert "condition" in refused.value.message


@given(st.text(max_size=60))
def test_any_text_parses_or_raises_invalid_input(text: str) -> None:
    with suppress(InvalidInput):
        parse_condition(text).evaluate(SCOPE)


def test_condition_lists_its_paths() -> None:
    assert parse_condition("artifacts.a.x > 1 and parameters.m[0]").paths == (
        ("artifacts", "a", "x"),
        ("parameters", "m", 0),
    )
