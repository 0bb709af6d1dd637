"""Line differences at a bounded cost.

``difflib`` takes quadratic time or worse: some thousand equal lines take minutes. This is Myers' algorithm with a
budget of edits and steps; a difference that exceeds it is reported as one replacement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

MOST_EDITS: Final = 400
"""Maximum edits. Memory grows with their square."""
MOST_STEPS: Final = 1_000_000
"""A fraction of a second. Thousands of equal lines need many steps for few edits."""
_CONTEXT: Final = 3


@dataclass(slots=True)
class Budget:
    """Edits and steps left; may be shared by several diffs."""

    steps: int = MOST_STEPS
    edits: int = MOST_EDITS


@dataclass(frozen=True, slots=True)
class Block:
    """The lines ``old[old_from:old_to]`` and ``new[new_from:new_to]``: equal, or one replaced by the other."""

    is_same: bool
    old_from: int
    old_to: int
    new_from: int
    new_to: int


def blocks(old: Sequence[str], new: Sequence[str], budget: Budget | None = None) -> list[Block]:
    """Both lists from start to end as blocks; equal and different blocks alternate."""
    begin = _common(old, new)
    end = _common(old[begin:][::-1], new[begin:][::-1])
    inner_old, inner_new = old[begin : len(old) - end], new[begin : len(new) - end]
    same = [(begin + i, begin + j) for i, j in _matches(inner_old, inner_new, budget or Budget())]
    pairs = [(i, i) for i in range(begin)] + same
    pairs += [(len(old) - end + i, len(new) - end + i) for i in range(end)]
    return list(_joined(pairs, len(old), len(new)))


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _matches(old: Sequence[str], new: Sequence[str], budget: Budget) -> list[tuple[int, int]]:
    """Index pairs of equal lines; empty if the budget is exceeded."""
    reached: dict[int, int] = {1: 0}
    history: list[dict[int, int]] = []
    for edits in range(min(budget.edits, len(old) + len(new)) + 1):
        if budget.steps <= 0:
            return []
        budget.steps -= edits + 1
        history.append(dict(reached))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1])
            begin = at = reached[diagonal + 1] if down else reached[diagonal - 1] + 1
            while at < len(old) and 0 <= at - diagonal < len(new) and old[at] == new[at - diagonal]:
                at += 1
            budget.steps -= at - begin
            reached[diagonal] = at
            if at >= len(old) and at - diagonal >= len(new):
                return _walked_back(history, len(old), len(new))
    return []


def _walked_back(history: Sequence[dict[int, int]], old_at: int, new_at: int) -> list[tuple[int, int]]:
    """Trace the shortest edit script back from its end; returns the index pairs of equal lines."""
    kept: list[tuple[int, int]] = []
    for edits in range(len(history) - 1, -1, -1):
        reached, diagonal = history[edits], old_at - new_at
        down = diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1])
        before = diagonal + 1 if down else diagonal - 1
        from_old = reached[before] if edits else 0
        from_new = from_old - before if edits else 0
        start = (from_old, from_new + 1) if down else (from_old + 1, from_new)
        start = start if edits else (0, 0)
        while old_at > start[0] and new_at > start[1]:
            old_at, new_at = old_at - 1, new_at - 1
            kept.append((old_at, new_at))
        old_at, new_at = from_old, from_new
    return kept[::-1]


def _joined(pairs: Sequence[tuple[int, int]], old_end: int, new_end: int) -> Iterator[Block]:
    """Blocks from the index pairs of equal lines."""
    old_at = new_at = begun = 0
    for i, j in [*pairs, (old_end, new_end)]:
        if (i, j) != (old_at, new_at):  # the lines before this pair differ
            if old_at > begun:
                yield Block(True, begun, old_at, new_at - (old_at - begun), new_at)
            yield Block(False, old_at, i, new_at, j)
            begun = i
        old_at, new_at = i + 1, j + 1
    if old_end > begun:
        yield Block(True, begun, old_end, new_end - (old_end - begun), new_end)


def unified(old: Sequence[str], new: Sequence[str], path: str, budget: Budget | None = None) -> Iterator[str]:
    """The lines of a unified diff (``diff -u``); none if there is no difference."""
    result = blocks(old, new, budget)
    if not any(not block.is_same for block in result):
        return
    yield f"--- {path}"
    yield f"+++ {path}"
    for hunk in _hunks(result):
        first, last = hunk[0], hunk[-1]
        yield f"@@ -{_range(first.old_from, last.old_to)} +{_range(first.new_from, last.new_to)} @@"
        for block in hunk:
            if block.is_same:
                yield from (f" {line}" for line in old[block.old_from : block.old_to])
            else:
                yield from (f"-{line}" for line in old[block.old_from : block.old_to])
                yield from (f"+{line}" for line in new[block.new_from : block.new_to])


def _hunks(result: Sequence[Block]) -> Iterator[list[Block]]:
    """Group nearby changes with their context lines."""
    hunk: list[Block] = []
    for number, block in enumerate(result):
        length = block.old_to - block.old_from
        if not block.is_same:
            hunk.append(block)
        elif not hunk:
            hunk.append(_tail(block, _CONTEXT))
        elif number == len(result) - 1 or length > 2 * _CONTEXT:
            hunk.append(_head(block, _CONTEXT))
            yield hunk
            hunk = [_tail(block, _CONTEXT)]
        else:
            hunk.append(block)
    if any(not block.is_same for block in hunk):
        yield hunk


def _head(block: Block, lines: int) -> Block:
    kept = min(lines, block.old_to - block.old_from)
    return Block(True, block.old_from, block.old_from + kept, block.new_from, block.new_from + kept)


def _tail(block: Block, lines: int) -> Block:
    kept = min(lines, block.old_to - block.old_from)
    return Block(True, block.old_to - kept, block.old_to, block.new_to - kept, block.new_to)


def _range(begin: int, end: int) -> str:
    length = end - begin
    return f"{begin + 1 if length else begin},{length}" if length != 1 else f"{begin + 1}"
