"""Graph layout: edges lead down, all vertices are present, lines stay straight."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adjudge.domain.graph_layout import EdgeWaypoint, GraphLayout, count_vertices, layout_graph


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    names = [f"n{index}" for index in range(draw(st.integers(0, 25)))]
    return {
        name: draw(st.lists(st.sampled_from(names[:index]), max_size=4)) if index else []
        for index, name in enumerate(names)
    }


def _layer_of(found: GraphLayout) -> dict[object, int]:
    return {place: index for index, layer in enumerate(found.layers) for place in layer}


@given(graphs())
def test_layout_has_every_node_once_and_edges_go_down(graph: dict[str, list[str]]) -> None:
    found = layout_graph(graph)
    places = [place for layer in found.layers for place in layer]
    assert len(places) == len(set(places)) == count_vertices(graph)
    assert {place for place in places if not isinstance(place, EdgeWaypoint)} == set(graph)
    layer = _layer_of(found)
    assert {(edge[0], edge[-1]) for edge in found.edges} == {
        (dep, node) for node, deps in graph.items() for dep in deps
    }
    for edge in found.edges:
        assert [layer[place] for place in edge] == list(range(layer[edge[0]], layer[edge[-1]] + 1))


def test_two_parallel_lines_do_not_cross() -> None:
    graph = {"a1": [], "b1": [], "b2": ["b1"], "a2": ["a1"], "a3": ["a2"], "b3": ["b2"]}
    found = layout_graph(graph)
    sides = {tuple(str(place)[0] for place in layer) for layer in found.layers}
    assert sides == {("a", "b")}


def test_long_edge_has_waypoint_in_every_layer() -> None:
    found = layout_graph({"a": [], "b": ["a"], "c": ["b"], "d": ["c", "a"]})
    (long,) = [edge for edge in found.edges if edge[0] == "a" and edge[-1] == "d"]
    assert [place.layer for place in long[1:-1] if isinstance(place, EdgeWaypoint)] == [1, 2]


def test_long_chain_layout_needs_no_recursion() -> None:
    graph = {str(index): [str(index - 1)] if index else [] for index in range(3_000)}
    assert len(layout_graph(graph).layers) == 3_000


def test_unknown_dependency_is_ignored() -> None:
    assert layout_graph({"a": ["ghost"]}) == GraphLayout((("a",),), ())
