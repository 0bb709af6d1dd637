"""Plots are well-formed, complete and escaped."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adjudge.web.dag_svg import render_dag
from adjudge.web.plots import Bar, GanttSpan, Series, TimeWindow, bars, format_duration, gantt, lines, rows

HOSTILE = "</svg><script>alert(1)</script>\"'&"


def _parsed(markup: str) -> ET.Element:
    return ET.fromstring(markup)


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e12)), max_size=30))
@example([(0.0, 5e-324), (1.0, 5e-324)])
def test_lines_draw_any_values(points: list[tuple[float, float]]) -> None:
    root = _parsed(lines("wait", [Series("p50", sorted(points))], unit="ms"))
    assert root.get("aria-label") == "wait"


def test_lines_share_a_time_window_and_have_gaps_without_samples() -> None:
    window = TimeWindow(0, 100, "then", "now", gap=10)
    root = _parsed(lines("wait", [Series("p50", [(10, 1), (15, 2), (90, 1)])], window=window))
    first, second = [line.get("points", "").split() for line in root.iter("polyline")]
    assert (len(first), len(second)) == (2, 2), "a point alone is a dot"
    assert {"then", "now"} <= {text.text for text in root.iter("text")}
    assert _parsed(lines("wait", [Series("p50", [])], window=window)).find("polyline") is None


def test_rows_carry_names_values_and_the_limit() -> None:
    root = _parsed(rows("times", [Bar("accepted/a.cpp", 500), Bar("slow/b.py", 1_000)], limit=800, unit="ms"))
    assert {"accepted/a.cpp", "500 ms", "800 ms"} <= {text.text for text in root.iter("text")}
    small, large = [float(rect.get("width", "")) for rect in root.iter("rect")]
    assert large == pytest.approx(2 * small)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.0121, "12 ms"), (5.62, "5.62 s"), (174, "2 min 54 s"), (1_680, "28 min"), (9_000, "2 h 30 min")],
)
def test_format_duration(seconds: float, said: str) -> None:
    assert format_duration(seconds) == said


def test_bars_and_their_limit_are_drawn_to_scale() -> None:
    root = _parsed(bars("times", [Bar("1", 500), Bar("2", 1000, "bad")], limit=1000, unit="ms"))
    small, large = [float(rect.get("height", "")) for rect in root.iter("rect")]
    assert large == pytest.approx(2 * small, rel=0.02)
    (limit,) = [line for line in root.iter("line") if line.get("class") == "limit"]
    assert float(limit.get("y1", "")) == pytest.approx(float([*root.iter("rect")][1].get("y", "")), abs=0.2)


def test_gantt_row_starts_at_its_begin() -> None:
    root = _parsed(gantt("run", [GanttSpan("a", 0, 1), GanttSpan("b", 1, 3)]))
    first, second = [*root.iter("rect")]
    begin, wide = float(first.get("x", "")), float(first.get("width", ""))
    assert float(second.get("x", "")) == pytest.approx(begin + wide, abs=0.2)


def test_svg_output_is_escaped() -> None:
    for markup in (
        lines(HOSTILE, [Series(HOSTILE, [(0, 1), (1, 2)])], unit=HOSTILE),
        bars(HOSTILE, [Bar(HOSTILE, 1)]),
        rows(HOSTILE, [Bar(HOSTILE, 1)], unit=HOSTILE),
        gantt(HOSTILE, [GanttSpan(HOSTILE, 0, 1)]),
        render_dag(HOSTILE, {HOSTILE: []}, meaning=lambda _: "good", caption=str, link=str),
    ):
        root = _parsed(markup)
        assert {element.tag for element in root.iter()} <= {
            "svg",
            "line",
            "text",
            "rect",
            "polyline",
            "title",
            "g",
            "a",
        }


def test_dag_shows_every_node_and_edge() -> None:
    root = _parsed(render_dag("chain", {"a": [], "b": ["a"], "c": ["a", "b"]}, meaning=lambda _: "info", caption=str))
    assert len([*root.iter("rect")]) == 3
    assert len([*root.iter("path")]) == 3
