"""A metric that no test moves does not exist: nobody would notice if it were wrong."""

from __future__ import annotations

from adjudge.observe.metrics import ALL_METRICS, PREFIX
from tests.integration.metrics.all_scenarios import SCENARIOS


def test_each_metric_is_moved_by_a_scenario() -> None:
    moved = {name for _, names in SCENARIOS.values() for name in names}
    assert moved == {metric.name.removeprefix(PREFIX) for metric in ALL_METRICS}
