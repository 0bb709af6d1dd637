"""Scenarios of metrics: functions that move metrics to known values and read them through ``/metrics``.

``@moves`` names the metrics that a scenario must check. An architecture test compares the names with the declared
metrics.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import httpx

from adjudge.observe.metrics import ALL_METRICS, PREFIX
from adjudge.registry import Registry
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs.models import Fence, Job
from tests.integration.queue.conftest import QueueHarness

GAUGES: Final = {metric.name.removeprefix(PREFIX) for metric in ALL_METRICS if metric.kind == "gauge"}
Samples = Mapping[str, float]


@dataclass
class MetricsBench:
    """A queue, its registry, and a client of its health server."""

    queue: QueueHarness
    registry: Registry
    client: httpx.AsyncClient
    before: Samples = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)

    async def scrape(self) -> dict[str, float]:
        """All samples, by name and labels, without the prefix."""
        answer = await self.client.get("/metrics")
        assert answer.status_code == 200
        lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
        return {name.removeprefix(PREFIX): float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    async def expect(self, **expected: float) -> None:
        """Wait until metrics without labels have the expected values; see ``expect_all``."""
        await self.expect_all(expected)

    async def expect_all(self, expected: Samples) -> None:
        """Wait until all samples have the expected values: gauges themselves, the others since the scenario began."""
        found: dict[str, float] = {}

        async def equal() -> bool:
            now = await self.scrape()
            found.update({name: self._moved(name, now) for name in expected})
            return found == dict(expected)

        try:
            await self.queue.until(equal, "the metrics have the expected values")
        except AssertionError:
            raise AssertionError(f"{found} instead of {dict(expected)}") from None
        self.checked |= {_metric_of(name) for name, value in expected.items() if value}

    async def expect_between(self, name: str, low: float, high: float) -> None:
        value = self._moved(name, await self.scrape())
        assert low <= value <= high, f"{name} is {value}"
        self.checked.add(_metric_of(name))

    def _moved(self, name: str, now: Samples) -> float:
        is_gauge = _metric_of(name) in GAUGES
        return now.get(name, -1.0) if is_gauge else now.get(name, 0.0) - self.before.get(name, 0.0)

    async def change(self, sql: str, **parameters: object) -> None:
        """Change rows, as time would."""
        statement = Statement(sql, "Asked by a test.", sql)
        await self.queue.database.transact(lambda tx: tx.execute(statement, **parameters))

    async def claim(self, worker: str = "w1", lease_ms: int = 60_000) -> tuple[Job, Fence]:
        """Claim the waiting job."""
        (row,) = await self.queue.rows("SELECT id FROM jobs WHERE status IN ('pending', 'queued')")
        claimed = await self.queue.database.transact(
            lambda tx: self.queue.jobs.claim(tx, [row["id"]], worker=worker, lease_ms=lease_ms)
        )
        (job,) = claimed.done
        return job, Fence(job.id, job.attempt_id, worker)


Scenario = Callable[[MetricsBench], Awaitable[None]]
SCENARIOS: Final[dict[str, tuple[Scenario, frozenset[str]]]] = {}


def moves(*names: str) -> Callable[[Scenario], Scenario]:
    """Register a scenario that checks a value other than 0 of each of these metrics."""

    def register(scenario: Scenario) -> Scenario:
        SCENARIOS[scenario.__name__] = (scenario, frozenset(names))
        return scenario

    return register


def _metric_of(sample: str) -> str:
    name = sample.partition("{")[0]
    for ending in ("_bucket", "_count", "_sum"):
        if name.endswith(ending) and PREFIX + name not in _NAMES:
            return name.removesuffix(ending)
    return name


_NAMES: Final = {metric.name for metric in ALL_METRICS}
