"""Templates in a node's cfg: ``{{ artifacts.build.tests[0] }}`` inside JSON strings.

What belongs here: reading expressions and looking names up in a scope of plain JSON. What does not: what the scope
holds (the engine's), and anything that computes: an expression is a path, a literal, or the first of several that
exists (``a ?? b``), so a template can neither run code nor take long.

Grammar, inside double braces::

    expression = operand { "??" operand }
    operand    = path | JSON string, number, true, false, null
    path       = name { "." name | "[" index "]" | "[" JSON string "]" }

A string that is exactly one expression becomes the value with its JSON type; within longer text a string is put in as
it is and anything else as JSON. A literal ``{{`` is written ``{{ "{{" }}``. Names of objects are never templated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from adjudge.domain.errors import InvalidInput

_OPEN: Final = "{{"
_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<end>\}\})
      | (?P<text>"(?:[^"\\]|\\.)*")
      | (?P<number>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w-]))
      | (?P<name>[A-Za-z0-9_][A-Za-z0-9_-]*)
      | (?P<sign>\?\?|[.\[\]])
    )""",
    re.VERBOSE,
)
_CONSTANTS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
_SHOWN_NAMES: Final = 20


@dataclass(frozen=True, slots=True)
class TemplateLiteral:
    """A value that stands in the template itself."""

    value: Any


@dataclass(frozen=True, slots=True)
class TemplatePath:
    """Names and indexes to follow from the scope."""

    steps: tuple[str | int, ...]

    def __str__(self) -> str:
        return _spelled(self.steps)


@dataclass(frozen=True, slots=True)
class Expression:
    """The first operand that exists is the value."""

    operands: tuple[TemplatePath | TemplateLiteral, ...]


@dataclass(frozen=True, slots=True)
class TemplateReference:
    """A path that a template names, and where in the document it does."""

    place: str
    path: tuple[str | int, ...]
    is_optional: bool
    """Something stands behind it that takes its place where it does not exist."""


class _Missing(Exception):
    """A path leads nowhere; the message says where it ends and what is there instead."""


def is_templated(value: object) -> bool:
    """Whether a string holds an expression."""
    return isinstance(value, str) and _OPEN in value


def render(value: Any, scope: Mapping[str, Any], place: str = "cfg") -> Any:
    """Return ``value`` with every expression replaced; ``place`` names it in errors."""
    if isinstance(value, str):
        return _render_text(value, scope, place) if _OPEN in value else value
    if isinstance(value, Mapping):
        return {key: render(item, scope, f"{place}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [render(item, scope, f"{place}[{index}]") for index, item in enumerate(value)]
    return value


def references(value: Any, place: str = "cfg") -> Iterator[TemplateReference]:
    """Name every path that the templates in ``value`` follow; a template that cannot be read is refused."""
    if isinstance(value, str):
        for part in _parts(value, place):
            if isinstance(part, Expression):
                last = len(part.operands) - 1
                for index, operand in enumerate(part.operands):
                    if isinstance(operand, TemplatePath):
                        yield TemplateReference(place, operand.steps, index < last)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from references(item, f"{place}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from references(item, f"{place}[{index}]")


def _render_text(text: str, scope: Mapping[str, Any], place: str) -> Any:
    parts = list(_parts(text, place))
    if len(parts) == 1 and isinstance(parts[0], Expression):
        return _value(parts[0], scope, place)
    return "".join(part if isinstance(part, str) else _as_text(_value(part, scope, place)) for part in parts)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(expression: Expression, scope: Mapping[str, Any], place: str) -> Any:
    missing: _Missing | None = None
    for operand in expression.operands:
        if isinstance(operand, TemplateLiteral):
            return operand.value
        try:
            return _followed(operand, scope)
        except _Missing as error:
            missing = missing or error
    raise InvalidInput(f"{place}: {missing}", field=place)


def _followed(path: TemplatePath, scope: Mapping[str, Any]) -> Any:
    found: Any = scope
    for index, step in enumerate(path.steps):
        if not _has(found, step):
            raise _Missing(_explained(path, index, found))
        found = found[step]
    return found


def _has(found: Any, step: str | int) -> bool:
    if isinstance(step, str):
        return isinstance(found, Mapping) and step in found
    return isinstance(found, list | tuple) and 0 <= step < len(found)


def _explained(path: TemplatePath, index: int, found: Any) -> str:
    """Say where a path ends and what is there."""
    step = path.steps[index]
    above = f"in {_spelled(path.steps[:index])}" if index else "here"
    if isinstance(found, Mapping):
        names = sorted(map(str, found))
        shown = ", ".join(names[:_SHOWN_NAMES]) + (", …" if len(names) > _SHOWN_NAMES else "")
        there = f"the names are: {shown}" if names else "it is empty"
    elif isinstance(found, list | tuple):
        there = f"it is a list of {len(found)}"
    else:
        there = f"it is {_kind(found)}"
    return f"{{{{ {path} }}}}: there is no {step!r} {above}; {there}."


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return {str: "a text", bool: "true or false", int: "a number", float: "a number"}.get(type(value), "a value")


def _spelled(steps: tuple[str | int, ...]) -> str:
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*", step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
    return text


# ---- reading


def _parts(text: str, place: str) -> Iterator[str | Expression]:
    """Split a string into plain text and expressions."""
    at = 0
    while (start := text.find(_OPEN, at)) >= 0:
        if start > at:
            yield text[at:start]
        reader = _ExpressionParser(text, start + len(_OPEN), place)
        yield reader.expression()
        at = reader.at
    if at < len(text):
        yield text[at:]


class _ExpressionParser:
    """Reads one expression, from behind its braces."""

    def __init__(self, text: str, at: int, place: str) -> None:
        self._text, self.at, self._place = text, at, place
        self._start = at - len(_OPEN)

    def expression(self) -> Expression:
        operands = [self._operand()]
        while (token := self._next("'??' or '}}'"))[0] == "sign" and token[1] == "??":
            operands.append(self._operand())
        if token[0] != "end":
            raise self._refusal(f"{token[1]!r} where '??' or '}}}}' must stand")
        return Expression(tuple(operands))

    def _operand(self) -> TemplatePath | TemplateLiteral:
        kind, token = self._next("a name or a value")
        if kind == "text":
            return TemplateLiteral(self._text_of(token))
        if kind == "number":
            return TemplateLiteral(json.loads(token))
        if kind != "name":
            raise self._refusal(f"{token!r} where a name or a value must stand")
        if token in _CONSTANTS:
            return TemplateLiteral(_CONSTANTS[token])
        return TemplatePath((token, *self._steps()))

    def _steps(self) -> Iterator[str | int]:
        while (match := _TOKEN.match(self._text, self.at)) and match["sign"] in (".", "["):
            self.at = match.end()
            yield self._name() if match["sign"] == "." else self._index()

    def _name(self) -> str:
        kind, token = self._next("a name after '.'")
        if kind not in ("name", "number") or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*", token):
            raise self._refusal(f"{token!r} where a name must stand after '.'")
        return token

    def _index(self) -> str | int:
        kind, token = self._next("an index after '['")
        step: str | int
        if kind == "text":
            step = self._text_of(token)
        elif kind in ("name", "number") and token.isdecimal():
            step = int(token)
        else:
            raise self._refusal(f"{token!r} where an index from 0 or a quoted name must stand after '['")
        if self._next("']'")[1] != "]":
            raise self._refusal("a '[' without its ']'")
        return step

    def _text_of(self, token: str) -> str:
        try:
            return str(json.loads(token))
        except ValueError:
            raise self._refusal(f"{token} is not a JSON string") from None

    def _next(self, wanted: str) -> tuple[str, str]:
        match = _TOKEN.match(self._text, self.at)
        if match is None or match.lastgroup is None:
            rest = self._text[self.at : self.at + 20].strip()
            raise self._refusal(f"{rest!r} where {wanted} must stand" if rest else f"it ends where {wanted} must stand")
        self.at = match.end()
        return match.lastgroup, match[match.lastgroup]

    def _refusal(self, what: str) -> InvalidInput:
        shown = self._text[self._start : self._start + 60]
        return InvalidInput(f"{self._place}: the template {shown!r} cannot be read: {what}.", field=self._place)
