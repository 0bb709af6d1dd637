"""Metrics of the whole system: the same values from every process that is asked (docs/adr/0151).

They are counted in the database, the stream and the registry. One process counts and stores the values for all; they
are valid for ``VALID_SEC``, or for ``_EFFORT`` times as long as counting took, so that a long queue is not counted
permanently. What cannot be read is left out: no value is better than a wrong one.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol

from adjudge.domain.errors import AdjudgeError, Unavailable
from adjudge.domain.priority import BANDS, band_of
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.registry.driver import ProcessRole, Registry
from adjudge.store import Database, Tx
from adjudge.store.jobs import dead_letters
from adjudge.store.ops import queue_stats, system_metrics
from adjudge.store.ops.queue_stats import PendingOutbox, QueueStats, RunningStats
from adjudge.stream.driver import Stream

Gauges = Mapping[str, Mapping[str, float]]
"""Values by metric name, without its prefix, then by labels (``band=0``)."""

VALID_SEC: Final = 5.0
_EFFORT: Final = 20
_OLDEST_SEC: Final = 60.0
"""Older values are not served: the process that was to count them is lost."""
_LOCAL_SEC: Final = 1.0
"""How long a process serves its values without asking the database for newer ones."""
_SECOND_US: Final = 1_000_000

_log = get_logger(__name__)


class SystemMetrics:
    """The system metrics, as one process reads them."""

    def __init__(
        self,
        database: Database,
        stream: Stream,
        registry: Registry,
        *,
        valid_sec: float = VALID_SEC,
        local_sec: float = _LOCAL_SEC,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._stream = stream
        self._registry = registry
        self._valid_sec = valid_sec
        self._local_sec = local_sec
        self._clock = clock
        self._outage = Outage(_log, "system_metrics_failed")
        self._reading: asyncio.Task[Gauges | None] | None = None
        self._last: tuple[float, Gauges] | None = None

    async def render(self) -> bytes:
        """All metrics of this process and of the system, in the Prometheus text format."""
        return metrics.render_metrics(await self.read())

    async def read(self) -> Gauges | None:
        """The current values; None if the database is unavailable. Concurrent callers share one reading."""
        if self._last is not None and self._clock() - self._last[0] < self._local_sec:
            return self._last[1]
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
            self._reading.add_done_callback(self._on_read)
        return await asyncio.shield(self._reading)

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    def _on_read(self, _: asyncio.Task[Gauges | None]) -> None:
        self._reading = None

    async def _read(self) -> Gauges | None:
        try:
            gauges = await self._stored() or await self._count()
        except AdjudgeError as error:
            self._outage.failed(error)
            return None
        self._outage.over()
        self._last = (self._clock(), gauges)
        return gauges

    async def _stored(self) -> Gauges | None:
        """The stored values while they are valid, or while another process counts."""
        found = await self._database.read(system_metrics.read)
        valid_sec = self._valid_sec
        if found is not None:
            valid_sec = max(valid_sec, _EFFORT * found.took_us / _SECOND_US)
            if found.age_us < valid_sec * _SECOND_US:
                return found.gauges
        older_than_us = round(valid_sec * _SECOND_US)
        if await self._database.transact(lambda tx: system_metrics.claim(tx, older_than_us=older_than_us)):
            return None
        is_usable = found is not None and found.age_us < (valid_sec + _OLDEST_SEC) * _SECOND_US
        return found.gauges if found is not None and is_usable else None

    async def _count(self) -> Gauges:
        started = self._clock()
        gauges = {
            **await self._database.read(_count_rows),
            **await _or_nothing("stream", self._count_messages),
            **await _or_nothing("registry", self._count_processes),
        }
        took_us = round((self._clock() - started) * _SECOND_US)
        await self._database.transact(lambda tx: system_metrics.store(tx, gauges, took_us=took_us))
        return gauges

    async def _count_messages(self) -> Gauges:
        return {
            "stream_messages": _by_band(await self._stream.depths()),
            "stream_pending": _by_band(await self._stream.pending_counts()),
        }

    async def _count_processes(self) -> Gauges:
        alive = [process.info for process in await self._registry.list()]
        roles = Counter(info.role for info in alive)
        return {
            "processes_alive": {f"role={role}": roles[role] for role in ProcessRole},
            "worker_slots": {"": sum(info.slots for info in alive if info.role is ProcessRole.WORKER)},
        }


async def _count_rows(tx: Tx) -> dict[str, Mapping[str, float]]:
    waiting, running = await queue_stats.find_queue_stats(tx)
    outbox, open_letters = await queue_stats.count_outbox(tx), await dead_letters.count_open(tx)
    return {**_queue_gauges(waiting, running), **_outbox_gauges(outbox), "dead_letters": {"": open_letters}}


def _queue_gauges(waiting: Sequence[QueueStats], running: Sequence[RunningStats]) -> dict[str, Mapping[str, float]]:
    """Priorities out of range belong to the nearest band."""
    due, delayed, runs = Counter[int](), Counter[int](), Counter[int]()
    oldest_us = dict.fromkeys(BANDS, 0)
    for item in waiting:
        band = band_of(item.band)
        due[band] += item.waiting
        delayed[band] += item.delayed
        oldest_us[band] = max(oldest_us[band], item.oldest_us)
    for row in running:
        runs[band_of(row.band)] += row.running
    return {
        "queue_depth": _by_band(due),
        "queue_oldest_seconds": _by_band({band: us / _SECOND_US for band, us in oldest_us.items()}),
        "jobs_delayed": _by_band(delayed),
        "jobs_running": _by_band(runs),
        "worker_slots_used": {"": sum(row.leased for row in running)},
    }


def _outbox_gauges(found: PendingOutbox) -> dict[str, Mapping[str, float]]:
    return {
        "api_outbox_pending": {"": found.pending},
        "api_outbox_oldest_seconds": {"": found.oldest_us / _SECOND_US},
    }


class _ByBand(Protocol):
    def get(self, band: int, default: float, /) -> float: ...


def _by_band(found: _ByBand) -> dict[str, float]:
    return {f"band={band}": found.get(band, 0) for band in BANDS}


async def _or_nothing(source: str, count: Callable[[], Awaitable[Gauges]]) -> Gauges:
    """What ``source`` says; nothing if it is unavailable."""
    try:
        return await count()
    except Unavailable as error:
        _log.warning("system_metrics_skipped", source=source, error=error.message)
        return {}
