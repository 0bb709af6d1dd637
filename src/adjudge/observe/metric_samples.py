"""Our own figures over time: what every process has counted since it last looked, small enough to be kept as a row.

Counters and histograms become differences, so that the figures of many processes can be added up and a restart shows
as nothing worse than a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from adjudge.observe import metrics

COUNTERS: Final = (
    "jobs_enqueued",
    "jobs_started",
    "worker_finalize",
    "judge_verdict",
    "admission",
    "cache_requests",
    "stalled",
    "chain_runs",
)
GAUGES: Final = ("queue_depth", "api_outbox_pending", "dead_letters")
HISTOGRAMS: Final = ("queue_wait_seconds", "judge_run_duration_seconds")


@dataclass(frozen=True, slots=True)
class MetricSample:
    """Figures by name, then by labels (``decision=refused,reason=quota``) or by a bucket's upper bound."""

    counters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    gauges: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    histograms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def take_sample() -> MetricSample:
    """What has been counted since the process began."""
    counters: dict[str, dict[str, float]] = {}
    gauges: dict[str, dict[str, float]] = {}
    histograms: dict[str, dict[str, float]] = {}
    for family in metrics.REGISTRY.collect():
        name = family.name.removeprefix(metrics.PREFIX)
        if name in COUNTERS:
            counters[name] = {_labels(item.labels): item.value for item in family.samples if _is_total(item.name)}
        elif name in GAUGES:
            gauges[name] = {_labels(item.labels): item.value for item in family.samples}
        elif name in HISTOGRAMS:
            buckets = histograms.setdefault(name, {})
            for item in family.samples:
                if item.name.endswith("_bucket"):
                    bound = item.labels["le"]
                    buckets[bound] = buckets.get(bound, 0.0) + item.value
    return MetricSample(counters, gauges, histograms)


def diff_samples(now: MetricSample, before: MetricSample) -> MetricSample:
    """What was counted between two samples; figures that did not move are left out, gauges are as they are now."""
    return MetricSample(
        _differences(now.counters, before.counters), now.gauges, _differences(now.histograms, before.histograms)
    )


def quantile(buckets: Mapping[str, float], share: float) -> float | None:
    """The value that ``share`` of what was observed does not exceed, to within its bucket; none of nothing."""
    bounds = sorted((float(bound.replace("+Inf", "inf")), count) for bound, count in buckets.items())
    total = bounds[-1][1] if bounds else 0.0
    if total <= 0:
        return None
    wanted, lower, below = share * total, 0.0, 0.0
    for bound, count in bounds:
        if count >= wanted:
            if bound == float("inf"):
                return lower
            inside = (wanted - below) / (count - below) if count > below else 1.0
            return lower + (bound - lower) * inside
        lower, below = bound, count
    return lower


def sum_samples(items: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Figures of several processes, or moments, as one."""
    total: dict[str, float] = {}
    for item in items:
        for name, value in item.items():
            total[name] = total.get(name, 0.0) + value
    return total


def _is_total(name: str) -> bool:
    return name.endswith("_total")


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def _differences(
    now: Mapping[str, Mapping[str, float]], before: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    found = {}
    for name, values in now.items():
        old = before.get(name, {})
        moved = {label: value - old.get(label, 0.0) for label, value in values.items() if value != old.get(label, 0.0)}
        if moved:
            found[name] = moved
    return found
