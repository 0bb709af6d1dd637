"""What was expected beside what was written, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest


@dataclass(frozen=True, slots=True)
class Pair:
    """A line of either side; None where a side has none."""

    expected: str | None
    got: str | None
    is_same: bool


def compared(expected: str, got: str) -> list[Pair]:
    """Both texts in step. White space at the ends of lines makes no difference: most checkers see none in it."""
    return list(_pairs(expected.splitlines(), got.splitlines()))


def _pairs(expected: list[str], got: list[str]) -> Iterator[Pair]:
    ours, theirs = [line.rstrip() for line in expected], [line.rstrip() for line in got]
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        for one, other in zip_longest(expected[i1:i2], got[j1:j2]):
            yield Pair(one, other, kind == "equal")
