"""Token buckets: how often something may happen, for one process or for all that share a Redis.

A bucket is one moment: when it will be full again. Taking tokens moves that moment on; it may not lie further ahead
than filling an empty bucket takes. So a bucket needs no clean-up, survives a change of its rate, and a forgotten one is
full.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from adjudge.domain.errors import InvalidInput

_SECOND_US: Final = 1_000_000
_SWEEP_AT: Final = 10_000
"""How many buckets a process keeps before it drops those that are full."""


@dataclass(frozen=True, slots=True)
class Want:
    """So many tokens of one bucket, and how that bucket fills."""

    key: str
    rate_per_sec: float
    burst: float
    amount: float = 1.0

    def __post_init__(self) -> None:
        if self.rate_per_sec <= 0:
            raise InvalidInput(f"{self.key}: a bucket must fill: give a rate above 0.", field="rate_per_sec")
        if not 0 < self.amount <= self.burst:
            raise InvalidInput(
                f"{self.key}: {self.amount:g} tokens can never be had of a bucket that holds {self.burst:g}.",
                field="amount",
            )

    @property
    def cost_us(self) -> float:
        """How long the bucket takes to fill up what is taken."""
        return self.amount / self.rate_per_sec * _SECOND_US

    @property
    def depth_us(self) -> float:
        """How long it takes to fill from empty."""
        return self.burst / self.rate_per_sec * _SECOND_US


class Buckets(Protocol):
    """Buckets by key. A bucket that nobody has taken from is full."""

    async def take(self, key: str, *, rate_per_sec: float, burst: float, amount: float = 1.0) -> float:
        """Take ``amount`` tokens; return 0.0 if granted, else the seconds to wait (nothing taken)."""
        ...

    async def take_many(self, wants: Sequence[Want]) -> list[float]:
        """Take from several buckets, all or nothing, in one round trip; their keys must differ.

        Returns the seconds to wait for each: all 0.0 if granted, else those above 0.0 are the ones that refused.
        """
        ...

    async def close(self) -> None:
        """Let go of whatever they are kept in."""
        ...


class MemoryBuckets:
    """Buckets of one process."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._full_at_us: dict[str, float] = {}

    async def take(self, key: str, *, rate_per_sec: float, burst: float, amount: float = 1.0) -> float:
        """Take from one bucket."""
        return (await self.take_many([Want(key, rate_per_sec, burst, amount)]))[0]

    async def take_many(self, wants: Sequence[Want]) -> list[float]:
        """Take from several buckets, all or nothing."""
        _check(wants)
        now_us = self._clock() * _SECOND_US
        after = {want.key: max(self._full_at_us.get(want.key, now_us), now_us) + want.cost_us for want in wants}
        waits = [max(0.0, after[want.key] - now_us - want.depth_us) / _SECOND_US for want in wants]
        if not any(waits):
            self._full_at_us |= after
            self._sweep(now_us)
        return waits

    async def close(self) -> None:
        """Nothing to let go of."""

    def _sweep(self, now_us: float) -> None:
        """Forget full buckets once there are many, so that passers-by cost no memory."""
        if len(self._full_at_us) > _SWEEP_AT:
            self._full_at_us = {key: full_at for key, full_at in self._full_at_us.items() if full_at > now_us}


_TAKE: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local after, waits, granted = {}, {}, true
for at, key in ipairs(KEYS) do
  local cost, depth = tonumber(ARGV[2 * at - 1]), tonumber(ARGV[2 * at])
  after[at] = math.max(tonumber(redis.call('GET', key) or now), now) + cost
  local wait = math.ceil(math.max(0, after[at] - now - depth))
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
"""ARGV: cost and depth in microseconds per key. Redis's clock is the only one: all who share a bucket agree on it."""


class RedisBuckets:
    """Buckets that all processes of an environment share: ``adjudge:ENV:bucket:KEY``, gone as soon as they are full.

    Raises ``Unavailable`` while Redis is away; whether that lets somebody in or keeps them out is the caller's choice.
    """

    def __init__(self, url: str, *, environment: str) -> None:
        from adjudge.stream.link import Link  # noqa: PLC0415  # Redis is imported only where it is chosen

        self._link = Link(url, environment=environment)
        self._prefix = f"{self._link.prefix}bucket:"
        self._client = self._link.connect()
        self._take = self._client.register_script(_TAKE)

    async def take(self, key: str, *, rate_per_sec: float, burst: float, amount: float = 1.0) -> float:
        """Take from one bucket."""
        return (await self.take_many([Want(key, rate_per_sec, burst, amount)]))[0]

    async def take_many(self, wants: Sequence[Want]) -> list[float]:
        """Take from several buckets, all or nothing, in one script."""
        _check(wants)
        if not wants:
            return []
        figures = [f"{figure:.3f}" for want in wants for figure in (want.cost_us, want.depth_us)]
        async with self._link.calling():
            waits_us = await self._take(keys=[self._prefix + want.key for want in wants], args=figures)
        return [int(wait_us) / _SECOND_US for wait_us in waits_us]

    async def close(self) -> None:
        """Disconnect."""
        await self._client.aclose()


def _check(wants: Sequence[Want]) -> None:
    if len({want.key for want in wants}) < len(wants):
        raise InvalidInput("The same bucket is asked for twice at once: add the amounts up.", field="wants")
