"""A DAG in the terminal: boxes in layers from top to bottom, lines between them, colours by state.

An edge leaves its source downwards, runs sideways on a row that its source has to itself, and comes down upon its
target; so two edges share a line only where they come from, or lead to, the same node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import Final

from rich.text import Text

from adjudge.domain.graph_layout import EdgeWaypoint, GraphLayout, LayoutVertex, layout_graph

_GAP: Final = 3
_BOX_ROWS: Final = 4
_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_LINES: Final = {
    _UP: "╵",
    _DOWN: "╷",
    _LEFT: "╴",
    _RIGHT: "╶",
    _UP | _DOWN: "│",
    _LEFT | _RIGHT: "─",
    _DOWN | _RIGHT: "╭",
    _DOWN | _LEFT: "╮",
    _UP | _RIGHT: "╰",
    _UP | _LEFT: "╯",
    _UP | _DOWN | _RIGHT: "├",
    _UP | _DOWN | _LEFT: "┤",
    _DOWN | _LEFT | _RIGHT: "┬",
    _UP | _LEFT | _RIGHT: "┴",
    _UP | _DOWN | _LEFT | _RIGHT: "┼",
}


@dataclass(slots=True)
class _Canvas:
    """A grid of styled characters; crossing lines are merged."""

    cells: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)
    lines: dict[tuple[int, int], int] = field(default_factory=dict)

    def write(self, row: int, column: int, text: str, style: str) -> None:
        for offset, character in enumerate(text):
            self.cells[row, column + offset] = (character, style)

    def down(self, column: int, first: int, last: int) -> None:
        """A line from the top of one row to the bottom of another."""
        for row in range(first, last + 1):
            self._join(row, column, _UP | _DOWN)

    def _join(self, row: int, column: int, ways: int) -> None:
        self.lines[row, column] = self.lines.get((row, column), 0) | ways

    def fork(self, row: int, start: int, ends: Sequence[int]) -> None:
        """From above at ``start`` along a row, and down at every one of ``ends``."""
        left, right = min(start, *ends), max(start, *ends)
        for column in range(left, right + 1):
            sideways = (_LEFT if column > left else 0) | (_RIGHT if column < right else 0)
            self._join(row, column, sideways)
        self._join(row, start, _UP)
        for end in ends:
            self._join(row, end, _DOWN)

    def text(self) -> Text:
        drawn = {place: (_LINES[ways], "dim") for place, ways in self.lines.items()} | self.cells
        height = max((row for row, _ in drawn), default=-1) + 1
        whole = Text(no_wrap=True, overflow="ignore")
        for row in range(height):
            width = max((column for at, column in drawn if at == row), default=-1) + 1
            for column in range(width):
                character, style = drawn.get((row, column), (" ", ""))
                whole.append(character, style)
            if row < height - 1:
                whole.append("\n")
        return whole


def draw(dependencies: Mapping[str, Sequence[str]], caption: Callable[[str], str], style: Callable[[str], str]) -> Text:
    """Draw a graph; ``caption`` is a node's second line, ``style`` its colour."""
    layout = layout_graph(dependencies)
    width = {node: max(len(node), len(caption(node))) + 4 for node in dependencies}
    columns = _columns(layout, width)
    canvas, row = _Canvas(), 0
    for upper, lower in zip_longest(layout.layers, layout.layers[1:], fillvalue=()):
        for place in upper:
            if isinstance(place, EdgeWaypoint):
                canvas.down(columns[place], row, row + _BOX_ROWS - 1)
            else:
                _box(canvas, row, columns[place] - width[place] // 2, (place, caption(place)), style(place))
        row += _BOX_ROWS
        row += _connect(canvas, row, _targets(layout, upper, lower), columns)
    return canvas.text()


def _box(canvas: _Canvas, row: int, left: int, words: Sequence[str], style: str) -> None:
    inside = max(len(word) for word in words) + 2
    canvas.write(row, left, f"┌{'─' * inside}┐", style)
    for offset, word in enumerate(words, start=1):
        canvas.write(row + offset, left, f"│ {word:<{inside - 2}} │", style)
    canvas.write(row + len(words) + 1, left, f"└{'─' * inside}┘", style)


def _columns(layout: GraphLayout, width: Mapping[str, int]) -> dict[LayoutVertex, int]:
    """The centre of each vertex; layers are centred."""

    def taken(place: LayoutVertex) -> int:
        return 1 if isinstance(place, EdgeWaypoint) else width[place]

    whole = [sum(taken(place) + _GAP for place in layer) - _GAP for layer in layout.layers]
    columns: dict[LayoutVertex, int] = {}
    for layer, wide in zip(layout.layers, whole, strict=True):
        left = (max(whole) - wide) // 2
        for place in layer:
            columns[place] = left + taken(place) // 2
            left += taken(place) + _GAP
    return columns


def _targets(
    layout: GraphLayout, upper: Sequence[LayoutVertex], lower: Sequence[LayoutVertex]
) -> dict[LayoutVertex, list[LayoutVertex]]:
    found: dict[LayoutVertex, list[LayoutVertex]] = {}
    above, below = set(upper), set(lower)
    for edge in layout.edges:
        for source, target in pairwise(edge):
            if source in above and target in below and target not in found.setdefault(source, []):
                found[source].append(target)
    return found


def _connect(
    canvas: _Canvas,
    row: int,
    targets: Mapping[LayoutVertex, Sequence[LayoutVertex]],
    columns: Mapping[LayoutVertex, int],
) -> int:
    """Draw the edges between two layers; return the number of rows."""
    straight = {source: to for source, to in targets.items() if [columns[item] for item in to] == [columns[source]]}
    bent = [source for source in targets if source not in straight]
    rows = max(len(bent), 1) if targets else 0
    for source in straight:
        canvas.down(columns[source], row, row + rows - 1)
    for track, source in enumerate(bent):
        start, ends = columns[source], [columns[item] for item in targets[source]]
        canvas.down(start, row, row + track - 1)
        canvas.fork(row + track, start, ends)
        for end in ends:
            canvas.down(end, row + track + 1, row + rows - 1)
    return rows
