"""The recorder: every process writes down what it counted; so operators see figures over time without a scraper."""

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
    """Writes one process's figures."""

    def __init__(self, database: Database, *, source: str) -> None:
        self._database = database
        self._source = source
        self._before = metric_samples.take_sample()

    async def run_once(self) -> int:
        """Write what was counted since the last round."""
        now = metric_samples.take_sample()
        sample = asdict(metric_samples.diff_samples(now, self._before))
        await self._database.transact(
            lambda tx: stored_samples.insert(tx, self._source, sample, older_than_ms=_KEPT_MS)
        )
        self._before = now
        return 1


@asynccontextmanager
async def record_metrics(database: Database, source: str) -> AsyncIterator[None]:
    """Write this process's figures while the block lasts."""
    async with periodic_task(MetricsRecorder(database, source=source).run_once, interval_ms=EVERY_MS, name="recorder"):
        yield
