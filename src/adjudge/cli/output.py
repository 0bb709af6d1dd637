"""Where commands print: a terminal as wide as it is, a pipe without any width at all."""

from __future__ import annotations

from typing import Final

from rich.console import Console

_UNBROKEN: Final = 10_000
"""Columns of a pipe: whoever reads it wants a row on a line, not a picture of a narrow screen."""


def make_console(*, stderr: bool = False) -> Console:
    """A console that breaks lines for people only."""
    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal:
        made.width = _UNBROKEN
    return made
