"""All scenarios: importing their modules registers them."""

from __future__ import annotations

from tests.integration.metrics import service_scenarios, system_scenarios, worker_scenarios
from tests.integration.metrics.bench import SCENARIOS

__all__ = ["SCENARIOS", "service_scenarios", "system_scenarios", "worker_scenarios"]
