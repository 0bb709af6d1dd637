"""Printed pages: wrapped lines, pages of a fixed length, nothing that a printer would obey."""

from __future__ import annotations

from adjudge.contests.print_layout import COLUMNS, LINES, format_pages, paginate


def test_long_lines_and_texts_continue() -> None:
    text = "\n".join(["x" * (COLUMNS + 1), *map(str, range(LINES))])
    first, second = paginate(text)
    assert first[:3] == ("x" * COLUMNS, "x", "0")
    assert (len(first), second) == (LINES, (str(LINES - 2), str(LINES - 1)))


def test_line_endings_tabs_wide_and_control_characters() -> None:
    assert paginate("a\tb\r\nc\rd\n") == [("a   b", "c", "d")]
    assert paginate("界" * COLUMNS) == [("界" * (COLUMNS // 2), "界" * (COLUMNS // 2))]
    assert paginate("\x1b[2Ja") == [("\N{REPLACEMENT CHARACTER}[2Ja",)]
    assert paginate("one\ftwo") == [("one",), ("two",)]
    assert paginate("") == [("",)]


def test_pages_for_a_printer_have_titles_and_form_feeds() -> None:
    assert format_pages([("a", "b"), ("c",)], ["1/2", "2/2"]) == "1/2\n\na\nb\n\f2/2\n\nc\n\f"
