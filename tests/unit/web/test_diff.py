"""Alignment of expected and actual output."""

from __future__ import annotations

from adjudge.web.diff import LinePair, align_lines


def test_lines_are_aligned() -> None:
    assert align_lines("1\n2 \n3\n", "1\nx\n2\n4\n") == [
        LinePair("1", "1", is_same=True),
        LinePair(None, "x", is_same=False),
        LinePair("2 ", "2", is_same=True),
        LinePair("3", "4", is_same=False),
    ]


def test_empty_output_leaves_all_lines_expected() -> None:
    assert align_lines("1\n2\n", "") == [LinePair("1", None, is_same=False), LinePair("2", None, is_same=False)]
