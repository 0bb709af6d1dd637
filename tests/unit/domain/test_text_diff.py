"""Text diffs are correct, minimal within the budget, and bounded in time."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from adjudge.domain.text_diff import MOST_STEPS, Block, Budget, blocks, unified

LINES = st.lists(st.sampled_from("abcd"), max_size=30)


class Counted(str):
    """A line that counts how often it is compared."""

    compared = 0
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, str(other))

    def __hash__(self) -> int:
        return str.__hash__(self)


def applied(old: Sequence[str], new: Sequence[str], found: Sequence[Block]) -> list[str]:
    """What becomes of ``old`` by the blocks, checked on the way."""
    result: list[str] = []
    old_at = new_at = 0
    was_same: bool | None = None
    for block in found:
        assert (block.old_from, block.new_from) == (old_at, new_at)
        assert block.is_same is not was_same
        kept, put = old[block.old_from : block.old_to], new[block.new_from : block.new_to]
        assert kept or put
        assert not block.is_same or list(kept) == list(put)
        result += put
        old_at, new_at, was_same = block.old_to, block.new_to, block.is_same
    assert (old_at, new_at) == (len(old), len(new))
    return result


@given(LINES, LINES, st.sampled_from([0, 1, 3, 400]))
def test_blocks_transform_old_into_new(old: list[str], new: list[str], most_edits: int) -> None:
    assert applied(old, new, blocks(old, new, Budget(edits=most_edits))) == new


@given(LINES, LINES)
def test_diff_is_minimal(old: list[str], new: list[str]) -> None:
    ours = sum(block.old_to - block.old_from for block in blocks(old, new) if block.is_same)
    theirs = sum(match.size for match in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())
    assert ours >= theirs


@given(st.lists(st.integers(0, 60), unique=True, max_size=40).map(sorted))
def test_unified_equals_difflib(gone: list[int]) -> None:
    old = [f"line {i}" for i in range(61)]
    new = [line for i, line in enumerate(old) if i not in set(gone)]
    theirs = list(difflib.unified_diff(old, new, "a", "a", lineterm=""))
    assert list(unified(old, new, "a")) == theirs


def test_different_texts_take_bounded_work() -> None:
    old = [Counted(f"old {i}") for i in range(30_000)]
    new = [Counted(f"new {i}") for i in range(30_000)]
    Counted.compared = 0
    assert blocks(old, new) == [Block(False, 0, 30_000, 0, 30_000)]
    assert Counted.compared < 400_000


def test_repeated_lines_take_bounded_work() -> None:
    """Every diagonal can be followed to its end: few edits, and yet some fifty million steps without a budget."""
    middle = [Counted("")] * 60_000
    old = [Counted("a"), *middle, *(Counted(f"old {i}") for i in range(300))]
    new = [Counted("b"), *middle, *(Counted(f"new {i}") for i in range(300))]
    Counted.compared = 0
    assert applied(old, new, blocks(old, new)) == new
    assert Counted.compared < 2 * MOST_STEPS + 10 * len(old)


def test_budget_can_be_shared() -> None:
    budget = Budget(steps=100)
    old, new = [f"old {i}" for i in range(50)], [f"new {i}" for i in range(50)]
    blocks(old, new, budget)
    assert budget.steps <= 0
    assert blocks(["a", "x", "b"], ["a", "y", "b"], budget) == [
        Block(True, 0, 1, 0, 1),
        Block(False, 1, 2, 1, 2),
        Block(True, 2, 3, 2, 3),
    ], "what both begin and end with costs nothing"
    assert blocks(["a", "k", "b"], ["c", "k", "d"], budget) == [Block(False, 0, 3, 0, 3)]
