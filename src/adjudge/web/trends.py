"""Figures of all processes, put together into plots over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.observe.samples import added, quantile
from adjudge.store.figures import Figure
from adjudge.web.plots import Series

_POINTS: Final = 120
_SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Moment:
    """Everything that was counted in one stretch of time."""

    at: float
    """Its end, in seconds."""
    length_sec: float
    figures: tuple[Figure, ...]

    def count(self, name: str, wanted: Callable[[str], bool] = lambda _: True) -> float:
        """How much a counter grew, over all processes and the labels that are wanted."""
        total = added(item.sample["counters"].get(name, {}) for item in self.figures)
        return sum(value for label, value in total.items() if wanted(label))

    def level(self, name: str) -> float:
        """What a gauge stood at: the latest word of whoever has one, its labels added up."""
        latest: dict[str, float] = {}
        for item in self.figures:
            latest.update(item.sample["gauges"].get(name, {}))
        return sum(latest.values())

    def quantile(self, name: str, share: float) -> float | None:
        """A quantile of what a histogram observed."""
        return quantile(added(item.sample["histograms"].get(name, {}) for item in self.figures), share)


def moments(figures: Sequence[Figure], *, back_sec: float) -> list[Moment]:
    """Cut the last while into as many stretches as a plot can show; a stretch without figures is left out."""
    if not figures:
        return []
    length = max(10.0, back_sec / _POINTS)
    buckets: dict[int, list[Figure]] = {}
    for item in figures:
        buckets.setdefault(int(item.at / _SECOND_US // length), []).append(item)
    return [Moment((index + 1) * length, length, tuple(items)) for index, items in sorted(buckets.items())]


def rate(found: Iterable[Moment], title: str, name: str, wanted: Callable[[str], bool] = lambda _: True) -> Series:
    """How often something happened, per second."""
    return Series(title, [(item.at, item.count(name, wanted) / item.length_sec) for item in found])


def level(found: Iterable[Moment], title: str, name: str) -> Series:
    """How much of something there was."""
    return Series(title, [(item.at, item.level(name)) for item in found])


def quantiles(found: Sequence[Moment], name: str, *, scale: float = 1_000) -> list[Series]:
    """The median and the tail of something, in milliseconds unless told otherwise."""
    series = []
    for title, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        points = [(item.at, value * scale) for item in found if (value := item.quantile(name, share)) is not None]
        series.append(Series(title, points))
    return series


def share(found: Iterable[Moment], title: str, name: str, wanted: Callable[[str], bool]) -> Series:
    """Which part, in per cent, of something was of a kind."""
    points: list[tuple[float, Any]] = []
    for item in found:
        total = item.count(name)
        if total:
            points.append((item.at, 100 * item.count(name, wanted) / total))
    return Series(title, points)
