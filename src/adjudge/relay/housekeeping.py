"""Housekeeping: stores metric samples for trend plots."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Final

from adjudge.observe import metric_samples
from adjudge.relay.periodic import periodic_task
from adjudge.services.system_metrics import SystemMetrics
from adjudge.store import Database
from adjudge.store.ops import metric_samples as stored_samples

SAMPLE_EVERY_MS: Final = 10_000


class MetricsRecorder:
    """Writes the metric samples of one process; no external scraper is needed for the trend plots."""

    def __init__(self, database: Database, system: SystemMetrics, *, source: str) -> None:
        self._database = database
        self._system = system
        self._source = source
        self._before = metric_samples.take_sample()

    async def run_once(self) -> int:
        """Write the changes since the last sample, and the metrics of the system."""
        now = metric_samples.take_sample(await self._system.read() or {})
        sample = asdict(metric_samples.diff_samples(now, self._before))
        await self._database.transact(lambda tx: stored_samples.insert(tx, self._source, sample))
        self._before = now
        return 1


@asynccontextmanager
async def record_metrics(database: Database, source: str, system: SystemMetrics) -> AsyncIterator[None]:
    """Write the samples of this process while the block runs."""
    recorder = MetricsRecorder(database, system, source=source)
    async with periodic_task(recorder.run_once, interval_ms=SAMPLE_EVERY_MS, name="recorder"):
        yield
