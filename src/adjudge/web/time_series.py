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

    def gauge(self, name: str) -> float | None:
        """The latest value of a metric of the system, summed over its labels; None if no process knew it."""
        known = [item.sample["gauges"][name] for item in self.figures if name in item.sample["gauges"]]
        return sum(known[-1].values()) if known else None

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
    return Series(title, [(item.at, value) for item in found if (value := item.gauge(name)) is not None])


def quantile_series(found: Sequence[TimeBucket], name: str, *, scale: float = 1_000) -> list[Series]:
    """p50, p95 and p99 of a histogram, by default in milliseconds."""
    series = []
    for title, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        points = [(item.at, value * scale) for item in found if (value := item.quantile(name, share)) is not None]
        series.append(Series(title, points))
    return series


def cache_hit_series(found: Iterable[TimeBucket], title: str, *, tier: str) -> Series:
    """Hit rate of one tier of the cache of problems; a stale value counts as a hit, because it is served."""

    def is_of_problems(label: str) -> bool:
        return "entity=problem:" in label and f"tier={tier}" in label

    def is_hit(label: str) -> bool:
        return "result=hit" in label or "result=stale" in label

    return ratio_series(found, title, "cache_requests", is_hit, is_of_problems)


def ratio_series(
    found: Iterable[TimeBucket], title: str, name: str, wanted: Callable[[str], bool], among: Callable[[str], bool]
) -> Series:
    """Share of the wanted labels of a counter ``among`` others, in percent."""
    points: list[tuple[float, Any]] = []
    for item in found:
        total = item.count(name, among)
        if total:
            points.append((item.at, 100 * item.count(name, lambda label: among(label) and wanted(label)) / total))
    return Series(title, points)
