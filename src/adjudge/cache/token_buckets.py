"""Token buckets: how often something may happen, for one process or for all that share a Redis.

A bucket is one timestamp: when it will be full again. Taking tokens moves it on; it may not lie further ahead than
filling an empty bucket takes. So a bucket needs no clean-up, survives a change of its rate, and one that was dropped is
full.

Times are whole microseconds. With floats (now + cost) - now differs from cost by an error that depends on the clock's
value, and a full bucket refuses its first request on some machines and not on others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from adjudge.domain.errors import InvalidInput

_SECOND_US: Final = 1_000_000
_LONGEST_US: Final = 10**15
"""At most so long (31 years) does a bucket take to fill: sums with Redis's clock stay exact in Lua, below 2^53."""
_SWEEP_AT: Final = 10_000
"""How many buckets a process keeps before it drops those that are full."""


@dataclass(frozen=True, slots=True)
class BucketRequest:
    """So many tokens of one bucket, and how that bucket fills."""

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
        if not (math.isfinite(self.burst) and 0 < self.amount <= self.burst):
            raise InvalidInput(
                f"{self.key}: {self.amount:g} tokens can never be had of a bucket that holds {self.burst:g}.",
                field="amount",
            )

    @property
    def cost_us(self) -> int:
        """How long the bucket takes to fill up what is taken, rounded down: a full bucket gives its whole burst."""
        return self._fill_us(self.amount, round_up=False)

    @property
    def fill_time_us(self) -> int:
        """How long it takes to fill from empty, rounded up."""
        return self._fill_us(self.burst, round_up=True)

    def _fill_us(self, tokens: float, *, round_up: bool) -> int:
        """Divide exactly, as fractions of integers: a float quotient may round across a whole microsecond."""
        (tokens_over, tokens_under), (rate_over, rate_under) = (
            tokens.as_integer_ratio(),
            self.rate_per_sec.as_integer_ratio(),
        )
        over, under = tokens_over * rate_under * _SECOND_US, tokens_under * rate_over
        return min(-(-over // under) if round_up else over // under, _LONGEST_US)


class TokenBuckets(Protocol):
    """Buckets by key. A bucket that nobody has taken from is full."""

    async def take(self, key: str, *, rate_per_sec: float, burst: float, amount: float = 1.0) -> float:
        """Take ``amount`` tokens; return 0.0 if granted, else the seconds to wait (nothing taken)."""
        ...

    async def take_many(self, requests: Sequence[BucketRequest]) -> list[float]:
        """Take from several buckets, all or nothing, in one round trip; their keys must differ.

        Returns the seconds to wait for each: all 0.0 if granted, else those above 0.0 are the ones that refused.
        """
        ...

    async def close(self) -> None:
        """Let go of whatever they are kept in."""
        ...


def monotonic_us() -> int:
    """Read the monotonic clock in whole microseconds."""
    return time.monotonic_ns() // 1_000


class MemoryTokenBuckets:
    """Buckets of one process."""

    def __init__(self, *, clock_us: Callable[[], int] = monotonic_us) -> None:
        self._clock_us = clock_us
        self._full_at_us: dict[str, int] = {}

    async def take(self, key: str, *, rate_per_sec: float, burst: float, amount: float = 1.0) -> float:
        """Take from one bucket."""
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
        """Nothing to let go of."""

    def _sweep(self, now_us: int) -> None:
        """Forget full buckets once there are many, so that passers-by cost no memory."""
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
"""ARGV: cost and depth in whole microseconds per key. Lua's numbers are floats, exact for integers below 2^53.

Only Redis's clock is read: all who share a bucket agree on it.
"""


class RedisTokenBuckets:
    """Buckets that all processes of an environment share: ``adjudge:ENV:bucket:KEY``, gone as soon as they are full.

    Raises ``Unavailable`` while Redis is away; whether that lets somebody in or keeps them out is the caller's choice.
    """

    def __init__(self, url: str, *, environment: str, timeout_sec: float = 10.0) -> None:
        from adjudge.stream.redis_connection import RedisConnection  # noqa: PLC0415  # Redis is imported only where it is chosen

        self._connection = RedisConnection(url, environment=environment, timeout_sec=timeout_sec)
        self._prefix = f"{self._connection.prefix}bucket:"
        self._client = self._connection.connect()
        self._take = self._client.register_script(_TAKE)

    async def take(self, key: str, *, rate_per_sec: float, burst: float, amount: float = 1.0) -> float:
        """Take from one bucket."""
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
        """Disconnect."""
        await self._client.aclose()


def _check(requests: Sequence[BucketRequest]) -> None:
    if len({request.key for request in requests}) < len(requests):
        raise InvalidInput("The same bucket is asked for twice at once: add the amounts up.", field="wants")
