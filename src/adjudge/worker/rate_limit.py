"""The pace: how many jobs may start in a second, over all workers that share the bucket."""

from __future__ import annotations

import asyncio
from typing import Final

from adjudge.cache.token_buckets import TokenBuckets
from adjudge.observe import metrics

_KEY: Final = "worker-starts"


class StartRateLimiter:
    """Permits to start jobs. A job costs one when it is won: what is refused, poisoned or sent back costs none.

    A worker fetches permits before it reads, so that no message waits in the hands of somebody who may not start it.
    Those it has no use for stay with it, never more than it has slots; what it takes over from lost workers is paid for
    afterwards.
    """

    def __init__(self, buckets: TokenBuckets, *, rate_per_sec: float) -> None:
        self._buckets = buckets
        self._rate_per_sec = rate_per_sec
        self._burst = max(1.0, rate_per_sec)
        self._in_hand = 0

    async def acquire(self, wanted: int, *, wait_sec: float) -> int:
        """How many of ``wanted`` jobs may start; waits at most ``wait_sec`` for the first."""
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
        """A job has started."""
        self._in_hand -= 1

    async def _take(self, amount: int) -> float:
        wait_sec = await self._buckets.take(
            _KEY, rate_per_sec=self._rate_per_sec, burst=self._burst, amount=float(amount)
        )
        if wait_sec == 0.0:
            self._in_hand += amount
        return wait_sec
