"""Draws DAGs as SVG: nodes in layers from left to right, coloured by status."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from adjudge.domain.graph_layout import EdgeWaypoint, LayoutVertex, layout_graph

_NODE_WIDTH: Final = 168
_NODE_HEIGHT: Final = 44
_GAP_X: Final = 56
_GAP_Y: Final = 18
_MARGIN: Final = 10


def render_dag(
    title: str,
    dependencies: Mapping[str, Sequence[str]],
    *,
    meaning: Callable[[str], str],
    caption: Callable[[str], str],
    link: Callable[[str], str] | None = None,
) -> Markup:
    """Draw a DAG; ``meaning`` returns a node's style class, ``caption`` its second line, ``link`` its URL."""
    layout = layout_graph(dependencies)
    tallest = max((len(layer) for layer in layout.layers), default=1)
    height = 2 * _MARGIN + tallest * (_NODE_HEIGHT + _GAP_Y) - _GAP_Y
    width = 2 * _MARGIN + len(layout.layers) * (_NODE_WIDTH + _GAP_X) - _GAP_X
    corner = _corners(layout.layers, height)
    drawn = [_edge(edge, corner) for edge in layout.edges]
    drawn += [_node(node, corner[node], meaning(node), caption(node), link) for node in dependencies]
    role = "img" if link is None else "group"  # role img hides the links inside from screen readers
    opening = Markup('<svg class="dag" role="{}" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">').format(
        role, title, width, height, width, height
    )
    return opening + Markup("").join(drawn) + Markup("</svg>")


def _corners(layers: Sequence[Sequence[LayoutVertex]], height: int) -> dict[LayoutVertex, tuple[float, float]]:
    corner: dict[LayoutVertex, tuple[float, float]] = {}
    for column, layer in enumerate(layers):
        tall = len(layer) * (_NODE_HEIGHT + _GAP_Y) - _GAP_Y
        for row, place in enumerate(layer):
            y = (height - tall) / 2 + row * (_NODE_HEIGHT + _GAP_Y)
            corner[place] = (_MARGIN + column * (_NODE_WIDTH + _GAP_X), y)
    return corner


def _edge(edge: Sequence[LayoutVertex], corner: Mapping[LayoutVertex, tuple[float, float]]) -> Markup:
    path = ""
    for source, target in pairwise(edge):
        (x1, y1), (x2, y2) = corner[source], corner[target]
        begin = x1 + _NODE_WIDTH
        y1, y2 = y1 + _NODE_HEIGHT / 2, y2 + _NODE_HEIGHT / 2
        bend = (x2 - begin) / 2
        path += f"M{begin:.0f} {y1:.0f}C{begin + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
        if isinstance(target, EdgeWaypoint):
            path += f"M{x2:.0f} {y2:.0f}H{x2 + _NODE_WIDTH:.0f}"
    return Markup('<path class="edge" d="{}"/>').format(path)


def _node(
    node: str, corner: tuple[float, float], meaning: str, caption: str, link: Callable[[str], str] | None
) -> Markup:
    x, y = corner
    shown = node if len(node) <= 20 else f"{node[:19]}…"
    body = Markup(
        '<g class="node {}" transform="translate({} {})"><title>{}</title><rect width="{}" height="{}" rx="6"/>'
        '<text x="10" y="18">{}</text><text x="10" y="35" class="muted">{}</text></g>'
    ).format(meaning, f"{x:.0f}", f"{y:.0f}", f"{node}: {caption}", _NODE_WIDTH, _NODE_HEIGHT, shown, caption)
    return body if link is None else Markup('<a href="{}">{}</a>').format(link(node), body)
