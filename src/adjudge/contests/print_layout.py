"""Divides a text into printed pages: lines of a fixed width, pages of a fixed length."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

COLUMNS: Final = 96
LINES: Final = 60
_TAB: Final = 4
_FORM_FEED: Final = "\f"
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_WIDE: Final = ("W", "F")

Page = tuple[str, ...]


def paginate(text: str) -> list[Page]:
    """The pages of a text, at least one. Long lines continue on the next line, a form feed starts a page."""
    pages: list[Page] = []
    for section in _normalized(text).split(_FORM_FEED):
        lines = [piece for line in section.removesuffix("\n").split("\n") for piece in _wrap(line)]
        pages += [tuple(lines[start : start + LINES]) for start in range(0, len(lines), LINES)]
    return pages


def format_pages(pages: Sequence[Page], titles: Sequence[str]) -> str:
    """The pages as text for a printer: each begins with its title and ends with a form feed."""
    return "".join("\n".join((title, "", *page)) + f"\n{_FORM_FEED}" for title, page in zip(titles, pages, strict=True))


def _normalized(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _wrap(line: str) -> Iterator[str]:
    """The line with tabs as spaces and control characters replaced, in pieces of at most ``COLUMNS``."""
    piece, width = "", 0
    for character in line:
        shown = " " * (_TAB - width % _TAB) if character == "\t" else _visible(character)
        columns = len(shown) if character == "\t" else _columns(shown)
        if width + columns > COLUMNS:
            yield piece
            piece, width = "", 0
        piece, width = piece + shown, width + columns
    yield piece


def _visible(character: str) -> str:
    return _REPLACEMENT if unicodedata.category(character) == "Cc" else character


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1
