"""Where the nodes of a graph without cycles go when it is drawn: in layers, with few crossings.

Every edge leads to a later layer. An edge that passes over layers gets a bend in each of them, so that it does not run
through a node. Used for pages and for the terminal alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

_SWEEPS = 6
"""Orderings after which another pass hardly removes a crossing."""


@dataclass(frozen=True, slots=True)
class EdgeWaypoint:
    """Where the edge from ``source`` to ``target`` passes a layer."""

    source: str
    target: str
    layer: int


LayoutVertex = str | EdgeWaypoint


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """Nodes and bends, layer by layer, each layer in drawing order; and every edge as the places it goes through."""

    layers: tuple[tuple[LayoutVertex, ...], ...]
    edges: tuple[tuple[LayoutVertex, ...], ...]


def count_vertices(dependencies: Mapping[str, Sequence[str]]) -> int:
    """How many places a layering would have: what arranging it costs, found out for next to nothing."""
    depth = _depths(dependencies)
    edges = ((source, target) for target, sources in dependencies.items() for source in set(sources) if source in depth)
    return len(depth) + sum(depth[target] - depth[source] - 1 for source, target in edges)


def layout_graph(dependencies: Mapping[str, Sequence[str]]) -> GraphLayout:
    """Arrange nodes, given what each depends on. Names that are no node are passed over."""
    depth = _depths(dependencies)
    layers: list[list[LayoutVertex]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in dependencies:
        layers[depth[node]].append(node)
    edges: list[tuple[LayoutVertex, ...]] = []
    for target, sources in dependencies.items():
        for source in dict.fromkeys(sources):
            if source in depth:
                bends = [EdgeWaypoint(source, target, layer) for layer in range(depth[source] + 1, depth[target])]
                for bend in bends:
                    layers[bend.layer].append(bend)
                edges.append((source, *bends, target))
    _untangle(layers, edges)
    return GraphLayout(tuple(tuple(layer) for layer in layers), tuple(edges))


def _depths(dependencies: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The longest way to each node, without recursion: a chain may be thousands of nodes long."""
    waiting = {node: {name for name in names if name in dependencies} for node, names in dependencies.items()}
    dependents: dict[str, list[str]] = {node: [] for node in dependencies}
    for node, names in waiting.items():
        for name in names:
            dependents[name].append(node)
    depth = dict.fromkeys(dependencies, 0)
    ready = [node for node, names in waiting.items() if not names]
    for node in ready:  # grows while it is gone through
        for dependent in dependents[node]:
            depth[dependent] = max(depth[dependent], depth[node] + 1)
            waiting[dependent].discard(node)
            if not waiting[dependent]:
                ready.append(dependent)
    return depth


def _untangle(layers: list[list[LayoutVertex]], edges: Sequence[tuple[LayoutVertex, ...]]) -> None:
    """Put each place near the middle of its neighbours, sweeping down and up."""
    above: dict[LayoutVertex, list[LayoutVertex]] = {}
    below: dict[LayoutVertex, list[LayoutVertex]] = {}
    for edge in edges:
        for upper, lower in pairwise(edge):
            above.setdefault(lower, []).append(upper)
            below.setdefault(upper, []).append(lower)
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        neighbours = above if downwards else below
        order = range(1, len(layers)) if downwards else range(len(layers) - 2, -1, -1)
        for index in order:
            _sort_layer(layers[index], layers[index - 1 if downwards else index + 1], neighbours)


def _sort_layer(
    layer: list[LayoutVertex], beside: Sequence[LayoutVertex], neighbours: Mapping[LayoutVertex, Sequence[LayoutVertex]]
) -> None:
    position = {place: index for index, place in enumerate(beside)}
    own = {place: index for index, place in enumerate(layer)}

    def middle(place: LayoutVertex) -> float:
        near = [position[item] for item in neighbours.get(place, ()) if item in position]
        return sum(near) / len(near) if near else own[place]

    layer.sort(key=middle)
