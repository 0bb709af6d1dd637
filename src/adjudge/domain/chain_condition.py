"""Parser and evaluator of a node's ``if``: a small expression over the parameters and artifacts of a run.

``artifacts.count.tests > 0 and parameters.mode in ["full", "fast"] and not artifacts.lint.broken``

::

    expression = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation   = "not" negation | comparison
    comparison = operand [ ("==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not" "in") operand ]
    operand    = path | JSON string, number, true, false, null | "[" list of operands "]" | "(" expression ")"
    path       = name { "." name | "[" index "]" | "[" string "]" }

A path that does not exist is ``null``. There are no calls, no arithmetic and no loops, so evaluation always terminates.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.domain.errors import InvalidInput

MAX_CHARACTERS: Final = 2_000
_MAX_DEPTH: Final = 50

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<text>"(?:[^"\\]|\\.)*"|'[^'\\]*')
      | (?P<number>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w-]))
      | (?P<name>[A-Za-z0-9_][A-Za-z0-9_-]*)
      | (?P<sign>==|!=|<=|>=|<|>|[.,()\[\]])
      | (?P<end>$)
    )""",
    re.VERBOSE,
)
_CONSTANTS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
_WORDS: Final = frozenset({"and", "or", "not", "in"})
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Scope = Mapping[str, Any]
_Evaluate = Callable[[Scope], Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed expression."""

    text: str
    paths: tuple[tuple[str | int, ...], ...]
    """All paths that the expression refers to."""
    _evaluate: _Evaluate

    def evaluate(self, scope: Scope) -> bool:
        """Evaluate the expression; raises InvalidInput if values cannot be compared."""
        return _truth(self._evaluate(scope))


def parse_condition(text: str) -> Condition:
    """Parse an expression; a syntax error raises InvalidInput with its position."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"the condition is longer than {MAX_CHARACTERS} characters")
    reader = _ConditionParser(text)
    evaluate = reader.expression(0)
    if reader.kind != "end":
        raise reader.refusal("the end")
    return Condition(text, tuple(reader.paths), evaluate)


class _ConditionParser:
    """Recursive-descent parser with one token of lookahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.paths: list[tuple[str | int, ...]] = []
        self.kind, self._token = "", ""
        self._advance()

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup is None:
            raise self.refusal("a name, a value or an operator")
        self._at = match.end()
        self.kind, self._token = match.lastgroup, match[match.lastgroup]

    def refusal(self, wanted: str) -> InvalidInput:
        if self.kind == "end":
            return InvalidInput(f"the condition {self._text!r}: expected {wanted} at the end")
        start = max(0, self._at - len(self._token))
        return InvalidInput(f"the condition {self._text!r}: expected {wanted} at {self._text[start : start + 20]!r}")

    def _takes(self, *tokens: str) -> str | None:
        if self.kind in ("sign", "name") and self._token in tokens:
            token = self._token
            self._advance()
            return token
        return None

    def _expects(self, token: str) -> None:
        if self._takes(token) is None:
            raise self.refusal(repr(token))

    def expression(self, depth: int) -> _Evaluate:
        if depth > _MAX_DEPTH:
            raise InvalidInput(f"the condition is nested deeper than {_MAX_DEPTH} levels")
        sides = [self._conjunction(depth)]
        while self._takes("or"):
            sides.append(self._conjunction(depth))
        return sides[0] if len(sides) == 1 else lambda scope: any(_truth(side(scope)) for side in sides)

    def _conjunction(self, depth: int) -> _Evaluate:
        sides = [self._negation(depth)]
        while self._takes("and"):
            sides.append(self._negation(depth))
        return sides[0] if len(sides) == 1 else lambda scope: all(_truth(side(scope)) for side in sides)

    def _negation(self, depth: int) -> _Evaluate:
        negated = False
        while self._takes("not"):
            negated = not negated
        inner = self._comparison(depth)
        return (lambda scope: not _truth(inner(scope))) if negated else inner

    def _comparison(self, depth: int) -> _Evaluate:
        left = self._operand(depth)
        if sign := self._takes("==", "!=", "<", "<=", ">", ">=", "in"):
            return _compared(sign, left, self._operand(depth))
        if self._takes("not"):
            self._expects("in")
            inside = _compared("in", left, self._operand(depth))
            return lambda scope: not inside(scope)
        return left

    def _operand(self, depth: int) -> _Evaluate:
        if self.kind == "text":
            return self._constant(_text_of(self._token))
        if self.kind == "number":
            return self._constant(json.loads(self._token))
        if self._takes("("):
            inner = self.expression(depth + 1)
            self._expects(")")
            return inner
        if self._takes("["):
            return self._list(depth + 1)
        if self.kind != "name" or self._token in _WORDS:
            raise self.refusal("a name or a value")
        if self._token in _CONSTANTS:
            return self._constant(_CONSTANTS[self._token])
        return self._path()

    def _constant(self, value: Any) -> _Evaluate:
        self._advance()
        return lambda _: value

    def _list(self, depth: int) -> _Evaluate:
        items: list[_Evaluate] = []
        while not self._takes("]"):
            items.append(self.expression(depth))
            if not self._takes(","):
                self._expects("]")
                break
        return lambda scope: [item(scope) for item in items]

    def _path(self) -> _Evaluate:
        steps = tuple(self._steps())
        self.paths.append(steps)
        return lambda scope: _followed(steps, scope)

    def _steps(self) -> Iterator[str | int]:
        yield self._token
        self._advance()
        while sign := self._takes(".", "["):
            if sign == "." and self.kind in ("name", "number"):
                yield self._token
            elif sign == "[" and self.kind == "text":
                yield _text_of(self._token)
            elif sign == "[" and self._token.isdecimal():
                yield int(self._token)
            else:
                raise self.refusal("a name" if sign == "." else "an index or a quoted name")
            self._advance()
            if sign == "[":
                self._expects("]")


def _text_of(token: str) -> str:
    if token.startswith("'"):
        return token[1:-1]
    try:
        return str(json.loads(token))
    except ValueError:
        raise InvalidInput(f"the condition has {token}, which is not a JSON string") from None


def _followed(steps: Sequence[str | int], scope: Scope) -> Any:
    result: Any = scope
    for step in steps:
        if isinstance(step, str) and isinstance(result, Mapping):
            result = result.get(step)
        elif isinstance(step, int) and isinstance(result, list) and step < len(result):
            result = result[step]
        else:
            return None
    return result


def _truth(value: Any) -> bool:
    return bool(value)


def _compared(sign: str, left: _Evaluate, right: _Evaluate) -> _Evaluate:
    def evaluate(scope: Scope) -> bool:
        a, b = left(scope), right(scope)
        if sign in ("==", "!="):
            return _same(a, b) is (sign == "==")
        if sign == "in":
            return _contains(b, a)
        if not (_is_number(a) and _is_number(b)) and not (isinstance(a, str) and isinstance(b, str)):
            raise InvalidInput(
                f"if: cannot compare {_shown(a)} {sign} {_shown(b)}: both must be numbers or both strings."
            )
        return _COMPARE[sign](a, b)

    return evaluate


def _same(a: Any, b: Any) -> bool:
    """JSON equality: ``true`` is not ``1``."""
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _contains(container: Any, item: Any) -> bool:
    if isinstance(container, str):
        if not isinstance(item, str):
            raise InvalidInput(f"if: {_shown(item)} in {_shown(container)}: `in` on a string needs a string before it.")
        return item in container
    if isinstance(container, Mapping):
        return isinstance(item, str) and item in container
    if isinstance(container, list):
        return any(_same(item, element) for element in container)
    raise InvalidInput(f"if: the right side of `in` must be a list, a string or an object, not {_shown(container)}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:60] + "…"
