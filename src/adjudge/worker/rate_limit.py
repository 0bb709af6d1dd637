"""Limits how many jobs start per second, over all workers that share the token bucket."""

from __future__ import annotations

import asyncio
from typing import Final

from adjudge.cache.token_buckets import TokenBuckets
from adjudge.observe import metrics

_KEY: Final = "worker-starts"


class StartRateLimiter:
    """Permits to start jobs. A claimed job uses one; refused, poison and returned jobs use none.

    A worker acquires permits before it reads, so that no message waits at a worker that may not start its job. Unused
    permits are kept, at most as many as it has slots. Reclaimed jobs are charged afterwards.
    """

    def __init__(self, buckets: TokenBuckets, *, rate_per_sec: float) -> None:
        self._buckets = buckets
        self._rate_per_sec = rate_per_sec
        self._burst = max(1.0, rate_per_sec)
        self._in_hand = 0

    async def acquire(self, wanted: int, *, wait_sec: float) -> int:
        """How many of ``wanted`` jobs may start; waits at most ``wait_sec`` for the first permit."""
        while self._in_hand < 1:
            refused_sec = await self._take(1)
            if refused_sec > 0:
                metrics.WORKER_THROTTLED.inc()
                await asyncio.sleep(min(refused_sec, wait_sec))
                if refused_sec > wait_sec:
                    return 0
        missing = min(wanted - self._in_hand, int(self._burst))
        if missing > 0:
            await self._take(missing)
        return min(wanted, self._in_hand)

    def consume(self) -> None:
        """Use a permit, because a job has started."""
        self._in_hand -= 1

    async def _take(self, amount: int) -> float:
        wait_sec = await self._buckets.take(
            _KEY, rate_per_sec=self._rate_per_sec, burst=self._burst, amount=float(amount)
        )
        if wait_sec == 0.0:
            self._in_hand += amount
        return wait_sec
