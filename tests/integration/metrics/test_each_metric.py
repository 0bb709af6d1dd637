"""Each metric is moved to a known value and read through ``/metrics``, in both modes."""

from __future__ import annotations

import pytest

from tests.integration.metrics.all_scenarios import SCENARIOS
from tests.integration.metrics.bench import MetricsBench


@pytest.mark.parametrize("name", SCENARIOS)
async def test_metrics_move_to_known_values(bench: MetricsBench, name: str) -> None:
    scenario, names = SCENARIOS[name]
    await scenario(bench)
    assert names <= bench.checked, "each is seen with a value other than 0"
