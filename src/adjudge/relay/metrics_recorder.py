"""Stores the metric samples of every process, for the trend plots; no external scraper is needed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Final

from adjudge.observe import metric_samples
from adjudge.relay.watchdog import periodic_task
from adjudge.store import Database
from adjudge.store.ops import metric_samples as stored_samples

EVERY_MS: Final = 10_000
_KEPT_MS: Final = 24 * 3600 * 1_000


class MetricsRecorder:
    """Writes the metric samples of one process."""

    def __init__(self, database: Database, *, source: str) -> None:
        self._database = database
        self._source = source
        self._before = metric_samples.take_sample()

    async def run_once(self) -> int:
        """Write the changes since the last sample."""
        now = metric_samples.take_sample()
        sample = asdict(metric_samples.diff_samples(now, self._before))
        await self._database.transact(
            lambda tx: stored_samples.insert(tx, self._source, sample, older_than_ms=_KEPT_MS)
        )
        self._before = now
        return 1


@asynccontextmanager
async def record_metrics(database: Database, source: str) -> AsyncIterator[None]:
    """Write the samples of this process while the block runs."""
    async with periodic_task(MetricsRecorder(database, source=source).run_once, interval_ms=EVERY_MS, name="recorder"):
        yield
