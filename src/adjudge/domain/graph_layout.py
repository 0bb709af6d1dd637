"""Layered layout of a DAG with few edge crossings (Sugiyama), for pages and for the terminal.

Every edge leads to a later layer. An edge over several layers gets a waypoint in each of them, so that it does not
cross a node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

_SWEEPS = 6
"""Number of sweeps after which further ones remove hardly any crossing."""


@dataclass(frozen=True, slots=True)
class EdgeWaypoint:
    """The point where the edge from ``source`` to ``target`` passes through a layer."""

    source: str
    target: str
    layer: int


LayoutVertex = str | EdgeWaypoint


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """Nodes and waypoints by layer, in drawing order, and every edge as the vertices it passes through."""

    layers: tuple[tuple[LayoutVertex, ...], ...]
    edges: tuple[tuple[LayoutVertex, ...], ...]


def count_vertices(dependencies: Mapping[str, Sequence[str]]) -> int:
    """The number of vertices of a layout: a cheap estimate of the cost of computing it."""
    depth = _depths(dependencies)
    edges = ((source, target) for target, sources in dependencies.items() for source in set(sources) if source in depth)
    return len(depth) + sum(depth[target] - depth[source] - 1 for source, target in edges)


def layout_graph(dependencies: Mapping[str, Sequence[str]]) -> GraphLayout:
    """Arrange nodes by their dependencies. Unknown names are ignored."""
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
    """The longest path to each node; iterative, because a chain may have thousands of nodes."""
    waiting = {node: {name for name in names if name in dependencies} for node, names in dependencies.items()}
    dependents: dict[str, list[str]] = {node: [] for node in dependencies}
    for node, names in waiting.items():
        for name in names:
            dependents[name].append(node)
    depth = dict.fromkeys(dependencies, 0)
    ready = [node for node, names in waiting.items() if not names]
    for node in ready:  # appended to while iterating
        for dependent in dependents[node]:
            depth[dependent] = max(depth[dependent], depth[node] + 1)
            waiting[dependent].discard(node)
            if not waiting[dependent]:
                ready.append(dependent)
    return depth


def _untangle(layers: list[list[LayoutVertex]], edges: Sequence[tuple[LayoutVertex, ...]]) -> None:
    """Order each layer by the median of the neighbours, sweeping down and up."""
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
