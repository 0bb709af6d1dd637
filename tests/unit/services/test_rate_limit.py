"""Limits while Redis does not answer: nobody waits for it long, and the log says it once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from adjudge.cache.token_buckets import BucketRequest, MemoryTokenBuckets
from adjudge.services.rate_limit import FallbackBuckets
from tests.support.log_capture import capture_logs

_SECOND_US = 1_000_000


class SilentBuckets(MemoryTokenBuckets):
    """Never answers while it is silent; counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.is_silent = True
        self.asked = 0

    async def take_many(self, wants: Sequence[BucketRequest]) -> list[float]:
        self.asked += 1
        if self.is_silent:
            await asyncio.Event().wait()
        return await super().take_many(wants)


async def test_a_silent_redis_is_given_up_soon_left_alone_for_a_while_and_logged_once() -> None:
    now_us, shared = 0, SilentBuckets()
    buckets = FallbackBuckets(shared, clock_us=lambda: now_us, limit_sec=0.05)

    async def take(times: int) -> None:
        await asyncio.gather(*(buckets.take("key", rate_per_sec=1, burst=100) for _ in range(times)))

    with capture_logs() as lines:
        async with asyncio.timeout(60):
            for turn in range(3):
                now_us = turn * 3 * _SECOND_US
                await take(1)
                await take(5)
                assert shared.asked == turn + 1, "after a failure it is left alone"
        now_us = 20 * _SECOND_US
        trying = asyncio.create_task(take(1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await take(5)
        assert shared.asked == 4, "one request tries again, and the others do not wait for it"
        await trying
        shared.is_silent, now_us = False, 30 * _SECOND_US
        await take(1)
        await take(5)
    assert shared.asked == 10
    events = [json.loads(line)["event"] for line in lines.getvalue().splitlines()]
    assert events == ["rate_limit_sharing_failed", "rate_limit_sharing_recovered"]
