"""Token buckets that work without Redis: while it is unavailable, limits hold per process, and the log says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from adjudge.cache.token_buckets import BucketRequest, MemoryTokenBuckets, TokenBuckets, monotonic_us
from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage

_PAUSE_US: Final = 2_000_000
"""How long Redis is not used after a failure, so that only one request waits for the timeout."""
_LIMIT_SEC: Final = 1.0
"""Timeout for Redis, much shorter than for streams because a request waits for it."""

log = get_logger(__name__)


class FallbackBuckets:
    """Uses the shared buckets while they are available, else those of this process."""

    def __init__(
        self, shared: TokenBuckets, *, clock_us: Callable[[], int] = monotonic_us, limit_sec: float = _LIMIT_SEC
    ) -> None:
        self._shared = shared
        self._own = MemoryTokenBuckets(clock_us=clock_us)
        self._clock_us = clock_us
        self._limit_sec = limit_sec
        self._outage = Outage(log, "rate_limit_sharing_failed")
        self._away_until_us = 0

    async def take(self, key: str, *, rate_per_sec: float, burst: float, amount: float = 1.0) -> float:
        return (await self.take_many([BucketRequest(key, rate_per_sec, burst, amount)]))[0]

    async def take_many(self, wants: Sequence[BucketRequest]) -> list[float]:
        """Take from several buckets, all or nothing."""
        if self._clock_us() < self._away_until_us:
            return await self._own.take_many(wants)
        if self._outage.failures:  # only this request retries Redis; the others do not wait
            self._away_until_us = self._clock_us() + _PAUSE_US
        try:
            async with asyncio.timeout(self._limit_sec):
                waits = await self._shared.take_many(wants)
        except (Unavailable, TimeoutError) as error:
            self._outage.failed(error)
            self._away_until_us = self._clock_us() + _PAUSE_US
            return await self._own.take_many(wants)
        self._outage.over()
        self._away_until_us = 0
        return waits

    async def close(self) -> None:
        await self._shared.close()
