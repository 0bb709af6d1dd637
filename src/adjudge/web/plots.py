"""Plots as SVG, rendered on the server: they need no script, can be printed and follow the theme.

Colours are classes of the style sheet (``s0`` … ``s3`` for series; ``good``, ``bad``, ``warn``, ``info``, ``idle`` for
states), because the content security policy forbids inline styles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

WIDTH: Final = 480
HALF: Final = 320
"""Width of a plot that shares its row with another."""
_NOTHING: Final = "\N{EM DASH}"
"""Shown if there is no data."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 8, 10, 22
_LEAST: Final = 1e-12
"""Smaller values are drawn as zero."""
_NAMES: Final = 22
"""Maximum number of characters of a row label."""


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a plot."""

    name: str
    points: Sequence[tuple[float, float]]
    """(x, y), ordered by x."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a plot."""

    name: str
    value: float
    meaning: str = "info"
    title: str = ""


@dataclass(frozen=True, slots=True)
class GanttSpan:
    """A time span in a Gantt chart."""

    name: str
    begin: float
    end: float
    meaning: str = "info"
    title: str = ""


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The x range of a plot and the labels of its ends; plots on one page share it."""

    first: float
    last: float
    first_name: str
    last_name: str
    gap: float
    """Points farther apart are not connected: there are no samples between them."""


def lines(
    title: str, series: Sequence[Series], *, unit: str = "", height: int = 176, window: TimeWindow | None = None
) -> Markup:
    """Line plot over time; the y axis starts at zero."""
    points = [point for line in series for point in line.points]
    first, last = (window.first, window.last) if window else _ends(points)
    if not points or last <= first:
        return _frame(title, height, [_text(WIDTH / 2, height / 2, _NOTHING, "middle")])
    foot = height - 16 - _BOTTOM
    top = _axis_maximum(max(y for _, y in points))
    across, up = (WIDTH - _LEFT - _RIGHT) / (last - first), (foot - _TOP) / top
    drawn = _scale(foot, top, unit)
    if window:
        drawn.append(_text(_LEFT, foot + 15, window.first_name, "start"))
        drawn.append(_text(WIDTH - _RIGHT, foot + 15, window.last_name, "end"))
    for index, line in enumerate(series):
        for piece in _pieces(line.points, window.gap if window else last - first):
            placed = [(_LEFT + (x - first) * across, foot - y * up) for x, y in piece]
            placed += [(placed[0][0] + 1, placed[0][1])] if len(placed) == 1 else []
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
            drawn.append(
                Markup('<polyline class="s{}" points="{}"><title>{}</title></polyline>').format(index, path, line.name)
            )
        drawn.append(_text(_LEFT + 120 * index, height - 6, f"— {line.name}", "start", f"s{index}"))
    return _frame(title, height, drawn)


def _pieces(points: Sequence[tuple[float, float]], gap: float) -> list[list[tuple[float, float]]]:
    pieces: list[list[tuple[float, float]]] = []
    for point in points:
        if not pieces or point[0] - pieces[-1][-1][0] > gap:
            pieces.append([])
        pieces[-1].append(point)
    return pieces


def _ends(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return (min(x for x, _ in points), max(x for x, _ in points)) if points else (0.0, 0.0)


def bars(
    title: str,
    items: Sequence[Bar],
    *,
    limit: float | None = None,
    unit: str = "",
    height: int = 140,
    width: int = WIDTH,
) -> Markup:
    """Vertical bars with a line for the limit."""
    top = _axis_maximum(max([item.value for item in items] + [limit or 0]))
    wide = (width - _LEFT - _RIGHT) / max(1, len(items))
    foot = height - _BOTTOM
    up = (foot - _TOP) / top
    drawn = _scale(foot, top, unit, width)
    for index, item in enumerate(items):
        tall = max(1.0, item.value * up)
        drawn.append(
            Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>').format(
                item.meaning,
                f"{_LEFT + index * wide + wide * 0.1:.2f}",
                f"{foot - tall:.1f}",
                f"{wide * 0.8:.2f}",
                f"{tall:.1f}",
                item.title or f"{item.name}: {item.value:g} {unit}",
            )
        )
    if limit is not None:
        y = f"{foot - limit * up:.1f}"
        drawn.append(
            Markup('<line class="limit" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(_LEFT, width - _RIGHT, y, y)
        )
    return _frame(title, height, drawn, width)


def rows(title: str, items: Sequence[Bar], *, limit: float | None = None, unit: str = "") -> Markup:
    """Horizontal bars with labels and a line for the limit."""
    row, left, right = 20, 180, 70
    foot = _TOP + row * len(items)
    across = (WIDTH - left - right) / _axis_maximum(max([item.value for item in items] + [limit or 0]))
    drawn: list[Markup] = []
    for index, item in enumerate(items):
        y, wide = _TOP + index * row, max(1.0, item.value * across)
        drawn.append(_text(left - 8, y + 14, _short(item.name), "end"))
        drawn.append(
            Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="2"><title>{}</title></rect>').format(
                item.meaning, left, y + 3, f"{wide:.1f}", row - 6, item.title or item.name
            )
        )
        drawn.append(_text(left + wide + 5, y + 14, f"{item.value:g} {unit}", "start"))
    if limit is not None:
        x = f"{left + limit * across:.1f}"
        drawn.append(Markup('<line class="limit" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(x, x, _TOP, foot))
        drawn.append(_text(left + limit * across, foot + 14, f"{limit:g} {unit}", "middle"))
    return _frame(title, foot + _BOTTOM, drawn)


def gantt(title: str, spans: Sequence[GanttSpan]) -> Markup:
    """Gantt chart, one row per span."""
    if not spans:
        return _frame(title, 60, [_text(WIDTH / 2, 30, _NOTHING, "middle")])
    row, left = 22, 165
    height = _TOP + row * len(spans) + _BOTTOM
    first, last = min(span.begin for span in spans), max(span.end for span in spans)
    across = (WIDTH - left - _RIGHT) / max(last - first, 1e-9)
    drawn: list[Markup] = []
    for index, span in enumerate(spans):
        y = _TOP + index * row
        drawn.append(_text(left - 8, y + 15, _short(span.name), "end"))
        drawn.append(
            Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="3"><title>{}</title></rect>').format(
                span.meaning,
                f"{left + (span.begin - first) * across:.1f}",
                y + 3,
                f"{max(2.0, (span.end - span.begin) * across):.1f}",
                row - 6,
                span.title or f"{span.name}: {format_duration(span.end - span.begin)}",
            )
        )
    drawn.append(_text(left, height - 6, "0", "start"))
    drawn.append(_text(WIDTH - _RIGHT, height - 6, format_duration(last - first), "end"))
    return _frame(title, height, drawn)


def format_duration(seconds: float) -> str:
    """A duration with units; the units are the same in all languages."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes, left = divmod(round(seconds), 60)
    if minutes < 10:
        return f"{minutes} min {left} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def _short(name: str) -> str:
    return name if len(name) < _NAMES else f"…{name[-_NAMES + 2 :]}"


def _frame(title: str, height: float, drawn: Sequence[Markup], width: int = WIDTH) -> Markup:
    kind = "plot" if width == WIDTH else "plot half"
    opening = Markup('<svg class="{}" role="img" aria-label="{}" viewBox="0 0 {} {}">').format(
        kind, title, width, height
    )
    return opening + Markup("").join(drawn) + Markup("</svg>")


def _scale(foot: float, top: float, unit: str, width: int = WIDTH) -> list[Markup]:
    drawn = []
    for share in (0.0, 0.5, 1.0):
        y = foot - share * (foot - _TOP)
        drawn.append(
            Markup('<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
                _LEFT, width - _RIGHT, f"{y:.1f}", f"{y:.1f}"
            )
        )
        drawn.append(_text(_LEFT - 6, y + 4, f"{top * share:g}{unit and ' ' + unit}", "end"))
    return drawn


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> Markup:
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
        kind, f"{x:.1f}", f"{y:.1f}", anchor, escape(text)
    )


def _axis_maximum(value: float) -> float:
    """The round number at or above ``value`` for the end of an axis."""
    if value < _LEAST:
        return 1.0
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value * 0.999999)
