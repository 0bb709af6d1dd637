"""Buckets that go on without Redis: limits then hold for each process alone, and the log says so."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from adjudge.cache.buckets import Buckets, MemoryBuckets, Want
from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger

_PAUSE_SEC: Final = 2.0
"""How long Redis is left alone after it failed, so that its silence costs one request and not all of them."""

log = get_logger(__name__)


class EnduringBuckets:
    """Shared buckets while they answer, this process's own while they do not."""

    def __init__(self, shared: Buckets, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._shared = shared
        self._own = MemoryBuckets(clock=clock)
        self._clock = clock
        self._away_until = float("-inf")

    async def take(self, key: str, *, rate_per_sec: float, burst: float, amount: float = 1.0) -> float:
        """Take from one bucket."""
        return (await self.take_many([Want(key, rate_per_sec, burst, amount)]))[0]

    async def take_many(self, wants: Sequence[Want]) -> list[float]:
        """Take from several, all or nothing."""
        if self._clock() >= self._away_until:
            try:
                return await self._shared.take_many(wants)
            except Unavailable as error:
                self._away_until = self._clock() + _PAUSE_SEC
                log.warning("admission.limits_not_shared", error=error.message, for_sec=_PAUSE_SEC)
        return await self._own.take_many(wants)

    async def close(self) -> None:
        """Let go of the shared ones."""
        await self._shared.close()
