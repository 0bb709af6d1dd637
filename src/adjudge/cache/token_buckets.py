"""Token buckets: rate limits for one process, or for all processes that share a Redis.

A bucket is one timestamp: when it will be full again. Taking tokens moves it forward; it may not be further ahead than
the time to fill an empty bucket. So a bucket needs no clean-up and survives a change of its rate, and a missing bucket
is a full one.

Times are integer microseconds. With floats, (now + cost) - now differs from cost by an error that depends on the value
of the clock, and a full bucket would refuse its first request on some machines.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from adjudge.domain.errors import InvalidInput

_SECOND_US: Final = 1_000_000
_LONGEST_US: Final = 10**15
"""Upper bound (31 years) of the time to fill a bucket: sums with the clock of Redis stay below 2^53, exact in Lua."""
_SWEEP_AT: Final = 10_000
"""Number of buckets in a process above which the full ones are dropped."""

_MAX_FILL_TIMES: Final = 1_024


@dataclass(frozen=True, slots=True)
class BucketRequest:
    """A request for ``amount`` tokens of one bucket, with the bucket's rate and burst."""

    key: str
    rate_per_sec: float
    burst: float
    amount: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate_per_sec) and self.rate_per_sec > 0):
            raise InvalidInput(
                f"{self.key}: rate_per_sec must be a finite number above 0, not {self.rate_per_sec}.",
                field="rate_per_sec",
            )
        if not math.isfinite(self.burst):
            raise InvalidInput(f"{self.key}: burst must be a finite number, not {self.burst}.", field="burst")
        if self.amount > self.burst:
            raise InvalidInput(
                f"{self.key}: requested {self.amount:g} tokens exceed the burst size {self.burst:g}.", field="amount"
            )
        if not self.amount > 0:
            raise InvalidInput(f"{self.key}: amount must be above 0, not {self.amount:g}.", field="amount")

    @property
    def cost_us(self) -> int:
        """Time to refill the requested tokens, rounded down, so that a full bucket grants its whole burst."""
        return _fill_us(self.amount, self.rate_per_sec, round_up=False)

    @property
    def fill_time_us(self) -> int:
        """Time to fill the bucket from empty, rounded up."""
        return _fill_us(self.burst, self.rate_per_sec, round_up=True)


@lru_cache(_MAX_FILL_TIMES)
def _fill_us(tokens: float, rate_per_sec: float, *, round_up: bool) -> int:
    """Divide exactly, as fractions of integers: a float quotient may be off by a microsecond."""
    tokens_over, tokens_under = tokens.as_integer_ratio()
    rate_over, rate_under = rate_per_sec.as_integer_ratio()
    over, under = tokens_over * rate_under * _SECOND_US, tokens_under * rate_over
    return min(-(-over // under) if round_up else over // under, _LONGEST_US)


class TokenBuckets(Protocol):
    """Buckets by key. A new bucket is full."""

    async def take(self, key: str, *, rate_per_sec: float, burst: float, amount: float = 1.0) -> float:
        """Take ``amount`` tokens; return 0.0 if granted, else the seconds to wait (nothing is taken)."""
        ...

    async def take_many(self, requests: Sequence[BucketRequest]) -> list[float]:
        """Take from several buckets, all or nothing, in one round trip; keys must be unique.

        Returns the seconds to wait for each: all 0.0 if granted, else above 0.0 for the buckets that refused.
        """
        ...

    async def close(self) -> None: ...


def monotonic_us() -> int:
    return time.monotonic_ns() // 1_000


class MemoryTokenBuckets:
    """Buckets of one process."""

    def __init__(self, *, clock_us: Callable[[], int] = monotonic_us) -> None:
        self._clock_us = clock_us
        self._full_at_us: dict[str, int] = {}

    async def take(self, key: str, *, rate_per_sec: float, burst: float, amount: float = 1.0) -> float:
        return (await self.take_many([BucketRequest(key, rate_per_sec, burst, amount)]))[0]

    async def take_many(self, requests: Sequence[BucketRequest]) -> list[float]:
        """Take from several buckets, all or nothing."""
        _check(requests)
        now_us = self._clock_us()
        after = {
            request.key: max(self._full_at_us.get(request.key, now_us), now_us) + request.cost_us
            for request in requests
        }
        waits_us = [max(0, after[request.key] - now_us - request.fill_time_us) for request in requests]
        if not any(waits_us):
            self._full_at_us |= after
            self._sweep(now_us)
        return [wait_us / _SECOND_US for wait_us in waits_us]

    async def close(self) -> None:
        """Nothing to release."""

    def _sweep(self, now_us: int) -> None:
        """Drop full buckets once there are many, so that keys used once do not accumulate."""
        if len(self._full_at_us) > _SWEEP_AT:
            self._full_at_us = {key: full_at for key, full_at in self._full_at_us.items() if full_at > now_us}


_TAKE: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local after, waits, granted = {}, {}, true
for at, key in ipairs(KEYS) do
  local cost, depth = tonumber(ARGV[2 * at - 1]), tonumber(ARGV[2 * at])
  local missing = math.max(0, tonumber(redis.call('GET', key) or now) - now)
  after[at] = now + missing + cost
  local wait = math.max(0, missing + cost - depth)
  if wait > 0 then granted = false end
  waits[at] = wait
end
if granted then
  for at, key in ipairs(KEYS) do
    local left_ms = math.ceil((after[at] - now) / 1000)
    redis.call('SET', key, string.format('%.0f', after[at]), 'PX', string.format('%.0f', math.max(1, left_ms)))
  end
end
return waits
"""
"""ARGV: cost and depth in microseconds per key. Lua's numbers are floats, exact for integers below 2^53.

Only Redis's clock is read, so all processes that share a bucket agree.
"""


class RedisTokenBuckets:
    """Buckets shared by all processes of an environment: ``adjudge:ENV:bucket:KEY``, expiring when they are full.

    Raises ``Unavailable`` while Redis is down; the caller decides whether to admit the request.
    """

    def __init__(self, url: str, *, environment: str, timeout_sec: float = 10.0) -> None:
        from adjudge.stream.redis_connection import RedisConnection  # noqa: PLC0415  # Redis is imported only where it is chosen

        self._connection = RedisConnection(url, environment=environment, timeout_sec=timeout_sec)
        self._prefix = f"{self._connection.prefix}bucket:"
        self._client = self._connection.connect()
        self._take = self._client.register_script(_TAKE)

    async def take(self, key: str, *, rate_per_sec: float, burst: float, amount: float = 1.0) -> float:
        return (await self.take_many([BucketRequest(key, rate_per_sec, burst, amount)]))[0]

    async def take_many(self, requests: Sequence[BucketRequest]) -> list[float]:
        """Take from several buckets, all or nothing, in one script."""
        _check(requests)
        if not requests:
            return []
        times_us = [time_us for request in requests for time_us in (request.cost_us, request.fill_time_us)]
        async with self._connection.translate_errors():
            waits_us = await self._take(keys=[self._prefix + request.key for request in requests], args=times_us)
        return [int(wait_us) / _SECOND_US for wait_us in waits_us]

    async def close(self) -> None:
        await self._client.aclose()


def _check(requests: Sequence[BucketRequest]) -> None:
    if len({request.key for request in requests}) < len(requests):
        raise InvalidInput("Duplicate bucket key in one request: add the amounts up.", field="requests")
