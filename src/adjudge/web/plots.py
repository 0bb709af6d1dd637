"""Small pictures of figures, drawn as SVG on the server: they need no script, print well and follow the theme.

Colours are classes of the style sheet (``s0`` … ``s3`` for series; ``good``, ``bad``, ``warn``, ``info``, ``idle`` for
meanings), because a page may carry no style of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

WIDTH: Final = 640
_NOTHING: Final = "\N{EM DASH}"
"""Drawn where there is nothing to draw yet."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 8, 10, 22


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a plot."""

    name: str
    points: Sequence[tuple[float, float]]
    """(when or where, how much), in the order of the first."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a plot."""

    name: str
    value: float
    meaning: str = "info"
    title: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time in a Gantt chart."""

    name: str
    begin: float
    end: float
    meaning: str = "info"
    title: str = ""


def lines(title: str, series: Sequence[Series], *, unit: str = "", height: int = 160) -> Markup:
    """Lines over time, from zero up."""
    points = [point for line in series for point in line.points]
    if len({x for x, _ in points}) < 2:
        return _frame(title, height, [_text(WIDTH / 2, height / 2, _NOTHING, "middle")])
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    top = _ceiling(max(y for _, y in points))
    across = (WIDTH - _LEFT - _RIGHT) / (last - first)
    up = (height - _TOP - _BOTTOM) / top
    drawn = _scale(height, top, unit)
    for index, line in enumerate(series):
        path = " ".join(f"{_LEFT + (x - first) * across:.1f},{height - _BOTTOM - y * up:.1f}" for x, y in line.points)
        drawn.append(
            Markup('<polyline class="s{}" points="{}"><title>{}</title></polyline>').format(index, path, line.name)
        )
        drawn.append(_text(_LEFT + 90 * index, height - 6, f"— {line.name}", "start", f"s{index}"))
    return _frame(title, height, drawn)


def bars(title: str, items: Sequence[Bar], *, limit: float | None = None, unit: str = "", height: int = 140) -> Markup:
    """Bars side by side, with a line for the limit they are measured against."""
    top = _ceiling(max([item.value for item in items] + [limit or 0]))
    wide = (WIDTH - _LEFT - _RIGHT) / max(1, len(items))
    up = (height - _TOP - _BOTTOM) / top
    drawn = _scale(height, top, unit)
    for index, item in enumerate(items):
        tall = max(1.0, item.value * up)
        drawn.append(
            Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>').format(
                item.meaning,
                f"{_LEFT + index * wide + wide * 0.1:.2f}",
                f"{height - _BOTTOM - tall:.1f}",
                f"{wide * 0.8:.2f}",
                f"{tall:.1f}",
                item.title or f"{item.name}: {item.value:g} {unit}",
            )
        )
    if limit is not None:
        y = f"{height - _BOTTOM - limit * up:.1f}"
        drawn.append(
            Markup('<line class="limit" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(_LEFT, WIDTH - _RIGHT, y, y)
        )
    return _frame(title, height, drawn)


def gantt(title: str, spans: Sequence[Span], *, unit: str = "s") -> Markup:
    """Who worked when, a row each."""
    if not spans:
        return _frame(title, 60, [_text(WIDTH / 2, 30, _NOTHING, "middle")])
    row, left = 22, 150
    height = _TOP + row * len(spans) + _BOTTOM
    first, last = min(span.begin for span in spans), max(span.end for span in spans)
    across = (WIDTH - left - _RIGHT) / max(last - first, 1e-9)
    drawn: list[Markup] = []
    for index, span in enumerate(spans):
        y = _TOP + index * row
        drawn.append(_text(left - 8, y + 15, span.name if len(span.name) < 22 else f"{span.name[:20]}…", "end"))
        drawn.append(
            Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="3"><title>{}</title></rect>').format(
                span.meaning,
                f"{left + (span.begin - first) * across:.1f}",
                y + 3,
                f"{max(2.0, (span.end - span.begin) * across):.1f}",
                row - 6,
                span.title or f"{span.name}: {span.end - span.begin:.3f} {unit}",
            )
        )
    drawn.append(_text(left, height - 6, "0", "start"))
    drawn.append(_text(WIDTH - _RIGHT, height - 6, f"{last - first:.3g} {unit}", "end"))
    return _frame(title, height, drawn)


def _frame(title: str, height: float, drawn: Sequence[Markup]) -> Markup:
    opening = Markup('<svg class="plot" role="img" aria-label="{}" viewBox="0 0 {} {}">').format(title, WIDTH, height)
    return opening + Markup("").join(drawn) + Markup("</svg>")


def _scale(height: int, top: float, unit: str) -> list[Markup]:
    drawn = []
    for share in (0.0, 0.5, 1.0):
        y = height - _BOTTOM - share * (height - _TOP - _BOTTOM)
        drawn.append(
            Markup('<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
                _LEFT, WIDTH - _RIGHT, f"{y:.1f}", f"{y:.1f}"
            )
        )
        drawn.append(_text(_LEFT - 6, y + 4, f"{top * share:g}{unit and ' ' + unit}", "end"))
    return drawn


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> Markup:
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
        kind, f"{x:.1f}", f"{y:.1f}", anchor, escape(text)
    )


def _ceiling(value: float) -> float:
    """The round number at or above ``value`` that the scale ends with."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value * 0.999999)
