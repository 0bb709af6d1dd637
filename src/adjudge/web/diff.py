"""Side-by-side diff of expected output and actual output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from adjudge.domain.text_diff import Budget, blocks

_STEPS: Final = 50_000
"""Smaller than in other diffs, because it runs on the event loop."""
_EDITS: Final = 100


@dataclass(frozen=True, slots=True)
class LinePair:
    """A line of each side; None if a side has no line here."""

    expected: str | None
    got: str | None
    is_same: bool


def align_lines(expected: str, got: str) -> list[LinePair]:
    """Align both texts. Trailing white space is ignored, as by most checkers."""
    return list(_pairs(expected.splitlines(), got.splitlines()))


def _pairs(expected: list[str], got: list[str]) -> Iterator[LinePair]:
    ours, theirs = [line.rstrip() for line in expected], [line.rstrip() for line in got]
    for block in blocks(ours, theirs, Budget(_STEPS, _EDITS)):
        one, other = expected[block.old_from : block.old_to], got[block.new_from : block.new_to]
        for left, right in zip_longest(one, other):
            yield LinePair(left, right, block.is_same)
