"""Names and labels that PromQL expressions use, as far as our rules and dashboards need them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_KEYWORDS: Final = frozenset(
    {"by", "without", "on", "ignoring", "and", "or", "unless", "group_left", "group_right", "bool"}
)
_FUNCTIONS: Final = frozenset(
    {"sum", "max", "min", "avg", "count", "rate", "increase", "histogram_quantile", "time", "max_over_time", "absent"}
)
_SELECTOR: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{([^}]*)\})?")
_MATCHER: Final = re.compile(r"\s*([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)\s*\"(?:[^\"\\]|\\.)*\"\s*,?")
_GROUPING: Final = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
_RANGE: Final = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Selector:
    """One selected metric with the labels of its matchers."""

    metric: str
    labels: frozenset[str]
    values: tuple[tuple[str, str], ...]


def selectors(expression: str) -> list[Selector]:
    """Every metric that an expression selects."""
    text = _GROUPING.sub(" ", _RANGE.sub("", expression))
    found = []
    for name, matchers in _SELECTOR.findall(text):
        if name in _KEYWORDS | _FUNCTIONS or re.fullmatch(r"[eE]\d*", name):
            continue
        values = re.findall(r"([a-zA-Z_]\w*)\s*(?:=~|=)\s*\"([^\"]*)\"", matchers)
        assert not _MATCHER.sub("", matchers).strip(), f"cannot read the matchers {matchers!r}"
        found.append(Selector(name, frozenset(label for label, _ in values), tuple(values)))
    return found


def grouping_labels(expression: str) -> set[str]:
    """The labels of all ``by`` and ``on`` clauses."""
    return {label.strip() for group in _GROUPING.findall(expression) for label in group.split(",") if label.strip()}
