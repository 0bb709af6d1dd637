"""Samples of the process's own metrics, small enough to be stored as a row.

Counters and histograms are stored as differences, so that samples of several processes can be added and a restart only
leaves a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
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
GAUGES: Final = (
    "queue_depth",
    "jobs_running",
    "api_outbox_pending",
    "dead_letters",
    "worker_slots",
    "worker_slots_used",
)
HISTOGRAMS: Final = ("queue_wait_seconds", "judge_run_duration_seconds")


@dataclass(frozen=True, slots=True)
class MetricSample:
    """Values by metric name, then by labels (``decision=refused,reason=quota``) or by the upper bound of a bucket."""

    counters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    gauges: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    histograms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def take_sample(system: Mapping[str, Mapping[str, float]] = MappingProxyType({})) -> MetricSample:
    """All values since the process started, and the metrics of the system."""
    counters: dict[str, dict[str, float]] = {}
    histograms: dict[str, dict[str, float]] = {}
    for family in metrics.REGISTRY.collect():
        name = family.name.removeprefix(metrics.PREFIX)
        if name in COUNTERS:
            counters[name] = {_labels(item.labels): item.value for item in family.samples if _is_total(item.name)}
        elif name in HISTOGRAMS:
            buckets = histograms.setdefault(name, {})
            for item in family.samples:
                if item.name.endswith("_bucket"):
                    bound = item.labels["le"]
                    buckets[bound] = buckets.get(bound, 0.0) + item.value
    return MetricSample(counters, {name: system[name] for name in GAUGES if name in system}, histograms)


def diff_samples(now: MetricSample, before: MetricSample) -> MetricSample:
    """The difference of two samples; unchanged values are omitted, gauges have their current value."""
    return MetricSample(
        _differences(now.counters, before.counters), now.gauges, _differences(now.histograms, before.histograms)
    )


def quantile(buckets: Mapping[str, float], share: float) -> float | None:
    """The value that a ``share`` of the observations does not exceed, to the precision of its bucket."""
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
    """Add samples of several processes or times."""
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
