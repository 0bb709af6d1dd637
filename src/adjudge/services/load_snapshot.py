"""The load that admission decides by: queue length and available languages, at most one second old.

It is read once for all requests. A snapshot older than half a second is refreshed in the background; only the first
request after an idle period waits for one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from adjudge.domain.errors import AdjudgeError
from adjudge.observe.logs import get_logger
from adjudge.registry.driver import Registry, WorkerHealth, WorkerInfo
from adjudge.store import Database
from adjudge.store.judging.admission import count_waiting

_LIFE_SEC: Final = 1.0

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LoadSnapshot:
    """Load of the system at one time."""

    waiting: int = 0
    languages: frozenset[str] | None = None
    """The languages that available workers can run; None if unknown."""
    workers: int = 0


class LoadSampler:
    """Reads snapshots."""

    def __init__(
        self,
        database: Database,
        registry: Registry,
        *,
        count_to: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._registry = registry
        self._count_to = count_to
        self._clock = clock
        self._sample = LoadSnapshot()
        self._taken_at = float("-inf")
        self._taking: asyncio.Task[None] | None = None

    async def current(self) -> LoadSnapshot:
        age_sec = self._clock() - self._taken_at
        if age_sec > _LIFE_SEC / 2 and self._taking is None:
            self._taking = asyncio.create_task(self._refresh())
            self._taking.add_done_callback(self._on_refreshed)
        if age_sec > _LIFE_SEC and self._taking is not None:
            await asyncio.shield(self._taking)
        return self._sample

    async def close(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            await asyncio.wait([self._taking])

    async def _refresh(self) -> None:
        """Refresh the snapshot. On errors the queue length keeps its last value and the languages are unknown."""
        sample = self._sample
        try:
            waiting = await self._database.read(lambda tx: count_waiting(tx, limit=self._count_to))
            sample = replace(sample, waiting=waiting)
        except AdjudgeError as error:
            log.warning("queue_depth_unknown", error=error.message)
        try:
            alive = [
                worker.info for worker in await self._registry.list() if worker.info.health is not WorkerHealth.DRAINING
            ]
            sample = replace(sample, languages=_languages(alive), workers=len(alive))
        except AdjudgeError as error:
            log.warning("worker_health_unknown", error=error.message)
            sample = replace(sample, languages=None)
        self._sample, self._taken_at = sample, self._clock()

    def _on_refreshed(self, task: asyncio.Task[None]) -> None:
        self._taking = None
        if not task.cancelled() and task.exception() is not None:
            log.error("load_sampling_failed", exc_info=task.exception())


def _languages(alive: Sequence[WorkerInfo]) -> frozenset[str] | None:
    """All languages of the workers; None while a worker is starting, because its languages are unknown."""
    if any(info.health is WorkerHealth.STARTING for info in alive):
        return None
    return frozenset(language for info in alive for language in info.languages)
