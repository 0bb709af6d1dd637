"""Aggregates metric samples of all processes into time series for plots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.observe.metric_samples import quantile, sum_samples
from adjudge.store.ops.metric_samples import MetricSampleRow
from adjudge.web.plots import Series

_POINTS: Final = 120
_SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class TimeBucket:
    """The metric samples of one interval."""

    at: float
    """End of the interval, in seconds."""
    length_sec: float
    figures: tuple[MetricSampleRow, ...]

    def count(self, name: str, wanted: Callable[[str], bool] = lambda _: True) -> float:
        """Increase of a counter, over all processes and the selected labels."""
        total = sum_samples(item.sample["counters"].get(name, {}) for item in self.figures)
        return sum(value for label, value in total.items() if wanted(label))

    def gauge(self, name: str) -> float:
        """The latest value of a gauge, summed over its labels."""
        latest: dict[str, float] = {}
        for item in self.figures:
            latest.update(item.sample["gauges"].get(name, {}))
        return sum(latest.values())

    def quantile(self, name: str, share: float) -> float | None:
        return quantile(sum_samples(item.sample["histograms"].get(name, {}) for item in self.figures), share)


def time_buckets(figures: Sequence[MetricSampleRow], *, back_sec: float) -> list[TimeBucket]:
    """Divide the samples into intervals of equal length; empty intervals are left out."""
    if not figures:
        return []
    length = max(10.0, back_sec / _POINTS)
    buckets: dict[int, list[MetricSampleRow]] = {}
    for item in figures:
        buckets.setdefault(int(item.at / _SECOND_US // length), []).append(item)
    return [TimeBucket((index + 1) * length, length, tuple(items)) for index, items in sorted(buckets.items())]


def rate_series(
    found: Iterable[TimeBucket], title: str, name: str, wanted: Callable[[str], bool] = lambda _: True
) -> Series:
    return Series(title, [(item.at, item.count(name, wanted) / item.length_sec) for item in found])


def gauge_series(found: Iterable[TimeBucket], title: str, name: str) -> Series:
    return Series(title, [(item.at, item.gauge(name)) for item in found])


def quantile_series(found: Sequence[TimeBucket], name: str, *, scale: float = 1_000) -> list[Series]:
    """p50, p95 and p99 of a histogram, by default in milliseconds."""
    series = []
    for title, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        points = [(item.at, value * scale) for item in found if (value := item.quantile(name, share)) is not None]
        series.append(Series(title, points))
    return series


def ratio_series(found: Iterable[TimeBucket], title: str, name: str, wanted: Callable[[str], bool]) -> Series:
    """Share of the selected labels of a counter, in percent."""
    points: list[tuple[float, Any]] = []
    for item in found:
        total = item.count(name)
        if total:
            points.append((item.at, 100 * item.count(name, wanted) / total))
    return Series(title, points)
