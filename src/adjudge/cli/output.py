"""Console output: lines are wrapped on a terminal only."""

from __future__ import annotations

from typing import Final

from rich.console import Console

_PIPE_WIDTH: Final = 10_000
"""Width of a pipe: one table row per line."""


def make_console(*, stderr: bool = False) -> Console:
    """A console that wraps lines only on a terminal."""
    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal:
        made.width = _PIPE_WIDTH
    return made
