"""Metric samples: differences, sums, quantiles."""

from __future__ import annotations

import pytest

from adjudge.observe import metric_samples, metrics


def test_sample_difference() -> None:
    before = metric_samples.take_sample()
    metrics.JOBS_STARTED.labels("judge").inc(3)
    metrics.QUEUE_WAIT.labels("judge").observe(0.03)
    system = {"dead_letters": {"": 7.0}, "stream_pending": {"band=0": 1.0}}
    found = metric_samples.diff_samples(metric_samples.take_sample(system), before)
    assert found.counters["jobs_started"] == {"kind=judge": 3.0}
    assert found.gauges == {"dead_letters": {"": 7.0}}, "only those that are plotted"
    assert found.histograms["queue_wait_seconds"]["0.05"] == 1.0
    assert "0.025" not in found.histograms["queue_wait_seconds"]


def test_unchanged_values_are_omitted() -> None:
    now = metric_samples.take_sample()
    found = metric_samples.diff_samples(now, now)
    assert (found.counters, found.histograms) == ({}, {})


@pytest.mark.parametrize(
    ("buckets", "share", "value"),
    [
        ({"0.1": 0, "1.0": 10, "+Inf": 10}, 0.5, 0.55),
        ({"0.1": 10, "1.0": 10, "+Inf": 10}, 1.0, 0.1),
        ({"0.1": 5, "1.0": 5, "+Inf": 10}, 0.99, 1.0),
        ({}, 0.5, None),
        ({"+Inf": 0}, 0.5, None),
    ],
)
def test_quantile_from_buckets(buckets: dict[str, float], share: float, value: float | None) -> None:
    found = metric_samples.quantile(buckets, share)
    assert found == (None if value is None else pytest.approx(value))


def test_samples_add_up() -> None:
    assert metric_samples.sum_samples([{"a": 1, "b": 2}, {"b": 3}]) == {"a": 1, "b": 5}
