"""Housekeeping: deletes old data, and stores metric samples for trend plots."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Final

from adjudge.observe import metric_samples
from adjudge.observe.logs import get_logger
from adjudge.relay.periodic import periodic_task
from adjudge.services.system_metrics import SystemMetrics
from adjudge.store import Database, Tx
from adjudge.store.contests import scoreboard_log
from adjudge.store.jobs import progress, retention
from adjudge.store.judging import evaluations, executions
from adjudge.store.ops import idempotency_keys
from adjudge.store.ops import metric_samples as stored_samples
from adjudge.store.webhooks import commands as webhook_commands

_log = get_logger(__name__)
_PROGRESS_MS: Final = 10 * 60 * 1_000
"""After this time, the progress of a finished judge run is no longer needed."""
_JOBS_MS: Final = 24 * 60 * 60 * 1_000
"""How long a finished job is kept after its execution or delivery was deleted, to look up the reason."""
_SCOREBOARD_LOG_US: Final = 24 * 3600 * 1_000_000
"""How long changes of scoreboards are kept; readers that were away longer read a snapshot."""
_ROUNDS: Final = 20
SAMPLE_EVERY_MS: Final = 10_000
_SAMPLES_KEPT_MS: Final = 24 * 3600 * 1_000


class Retention:
    """Deletes old executions, evaluations, deliveries, jobs, keys, progress and scoreboard changes, in batches."""

    def __init__(self, database: Database, *, deliveries_ms: int) -> None:
        self._database = database
        self._rounds: dict[str, Callable[[Tx], Awaitable[int]]] = {
            "executions": executions.delete_expired,
            "evaluations": evaluations.delete_expired,
            "deliveries": lambda tx: webhook_commands.delete_old(tx, older_than_ms=deliveries_ms),
            "jobs": lambda tx: retention.forget(tx, older_than_ms=_JOBS_MS),
            "idempotency_keys": idempotency_keys.delete_expired,
            "progress": lambda tx: progress.delete_old(tx, older_than_ms=_PROGRESS_MS),
            "scoreboard_log": lambda tx: scoreboard_log.delete_old_log(tx, older_than_us=_SCOREBOARD_LOG_US),
        }

    async def run_once(self) -> int:
        """Delete what is due; return how much."""
        total = 0
        for name, forget in self._rounds.items():
            count = 0
            for _ in range(_ROUNDS):
                forgotten = await self._database.transact(forget)
                count += forgotten
                if not forgotten:
                    break
            if count:
                _log.info("retention_deleted", what=name, count=count)
            total += count
        return total


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
        await self._database.transact(
            lambda tx: stored_samples.insert(tx, self._source, sample, older_than_ms=_SAMPLES_KEPT_MS)
        )
        self._before = now
        return 1


@asynccontextmanager
async def record_metrics(database: Database, source: str, system: SystemMetrics) -> AsyncIterator[None]:
    """Write the samples of this process while the block runs."""
    recorder = MetricsRecorder(database, system, source=source)
    async with periodic_task(recorder.run_once, interval_ms=SAMPLE_EVERY_MS, name="recorder"):
        yield
