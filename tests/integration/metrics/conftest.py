"""A queue in each mode, with its registry, served by a health server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from adjudge.observe.health_server import HealthSources, serve_health
from adjudge.registry.database import DatabaseRegistry
from adjudge.services.system_metrics import SystemMetrics
from tests.integration.metrics.bench import MetricsBench
from tests.integration.queue.conftest import QueueHarness, queue

__all__ = ["bench", "queue"]


@pytest.fixture
async def bench(queue: QueueHarness) -> AsyncIterator[MetricsBench]:
    registry = DatabaseRegistry(queue.database)
    system = SystemMetrics(queue.database, queue.stream, registry, valid_sec=0, local_sec=0)
    async with (
        serve_health(0, HealthSources(render=system.render)) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        found = MetricsBench(queue, registry, client)
        found.before = await found.scrape()
        yield found
    await system.close()
    await registry.close()
