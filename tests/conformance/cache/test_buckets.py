"""Buckets are the same for one process and for all that share a Redis."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from itertools import count

import pytest

from adjudge.cache.buckets import Buckets, MemoryBuckets, RedisBuckets, Want
from adjudge.domain.errors import InvalidInput, Unavailable
from tests.support.services import RedisServer

_ENVIRONMENTS = count(1)


class Side(ABC):
    """Buckets that several processes open, and a way to let time pass for them."""

    @abstractmethod
    def open(self) -> Buckets:
        """Open them once more."""

    @abstractmethod
    async def pass_time(self, seconds: float) -> None:
        """Let time pass."""


class MemorySide(Side):
    def __init__(self) -> None:
        self.now = 1_000.0
        self.buckets = MemoryBuckets(clock=lambda: self.now)

    def open(self) -> Buckets:
        return self.buckets

    async def pass_time(self, seconds: float) -> None:
        self.now += seconds


class RedisSide(Side):
    def __init__(self, server: RedisServer) -> None:
        self.url = server.url
        self.environment = f"buckets-{next(_ENVIRONMENTS)}"
        self.opened: list[RedisBuckets] = []

    def open(self) -> Buckets:
        self.opened.append(RedisBuckets(self.url, environment=self.environment))
        return self.opened[-1]

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)  # Redis's clock is the one that counts, and only time moves it


@pytest.fixture(params=["memory", "redis"])
async def side(request: pytest.FixtureRequest) -> AsyncIterator[Side]:
    if request.param == "memory":
        yield MemorySide()
        return
    redis_side = RedisSide(request.getfixturevalue("redis_server"))
    yield redis_side
    for buckets in redis_side.opened:
        await buckets.close()


async def test_a_full_bucket_gives_its_burst_and_then_says_how_long_to_wait(side: Side) -> None:
    buckets = side.open()
    granted = [await buckets.take("k", rate_per_sec=0.01, burst=3) for _ in range(3)]
    assert granted == [0.0, 0.0, 0.0]
    wait = await buckets.take("k", rate_per_sec=0.01, burst=3)
    assert 90 < wait <= 100


async def test_a_refusal_takes_nothing(side: Side) -> None:
    buckets = side.open()
    assert await buckets.take("k", rate_per_sec=0.01, burst=2) == 0.0
    assert await buckets.take("k", rate_per_sec=0.01, burst=2, amount=2) > 0
    assert await buckets.take("k", rate_per_sec=0.01, burst=2) == 0.0


async def test_after_the_wait_it_is_granted(side: Side) -> None:
    buckets = side.open()
    assert await buckets.take("k", rate_per_sec=20, burst=1) == 0.0
    async with asyncio.timeout(60):
        while (wait := await buckets.take("k", rate_per_sec=20, burst=1)) == 0.0:
            pass  # the machine stood still for longer than a token takes
    assert 0 < wait <= 0.05
    await side.pass_time(wait)
    assert await buckets.take("k", rate_per_sec=20, burst=1) == 0.0


async def test_buckets_do_not_touch_each_other(side: Side) -> None:
    buckets = side.open()
    await buckets.take("a", rate_per_sec=0.01, burst=1)
    assert await buckets.take("b", rate_per_sec=0.01, burst=1) == 0.0
    assert await buckets.take("a", rate_per_sec=0.01, burst=1) > 0


async def test_all_who_open_them_share_them(side: Side) -> None:
    one, two = side.open(), side.open()
    await one.take("k", rate_per_sec=0.01, burst=1)
    assert await two.take("k", rate_per_sec=0.01, burst=1) > 0


async def test_many_at_once_are_granted_no_more_than_there_is(side: Side) -> None:
    buckets = [side.open() for _ in range(4)]
    waits = await asyncio.gather(
        *(buckets[number % 4].take("k", rate_per_sec=0.01, burst=7) for number in range(20)),
    )
    assert sum(wait == 0.0 for wait in waits) == 7


async def test_several_buckets_give_all_or_nothing(side: Side) -> None:
    buckets = side.open()
    wants = [Want("minute", 0.01, 5, 2), Want("day", 0.001, 3, 2)]
    assert await buckets.take_many(wants) == [0.0, 0.0]
    minute, day = await buckets.take_many(wants)
    assert (minute, day > 0) == (0.0, True)
    assert await buckets.take("minute", rate_per_sec=0.01, burst=5, amount=3) == 0.0, "the refusal took nothing"
    assert await buckets.take_many([]) == []


async def test_what_can_never_be_granted_is_refused_in_words(side: Side) -> None:
    buckets = side.open()
    with pytest.raises(InvalidInput, match="never"):
        await buckets.take("k", rate_per_sec=1, burst=1, amount=2)
    with pytest.raises(InvalidInput, match="above 0"):
        await buckets.take("k", rate_per_sec=0, burst=1)
    with pytest.raises(InvalidInput, match="twice"):
        await buckets.take_many([Want("k", 1, 1), Want("k", 1, 1)])


async def test_in_memory_full_buckets_are_forgotten() -> None:
    side = MemorySide()
    for number in range(10_001):
        await side.buckets.take(f"k{number}", rate_per_sec=1, burst=1)
    side.now += 10
    await side.buckets.take("last", rate_per_sec=1, burst=1)
    assert list(side.buckets._full_at_us) == ["last"]


async def test_in_redis_a_full_bucket_is_no_key(redis_server: RedisServer) -> None:
    side = RedisSide(redis_server)
    buckets = side.open()
    assert isinstance(buckets, RedisBuckets)
    await buckets.take("k", rate_per_sec=0.5, burst=100, amount=50)
    key = f"adjudge:{side.environment}:bucket:k"
    assert 0 < await buckets._client.pttl(key) <= 100_000
    await buckets.close()


async def test_redis_away_is_said() -> None:
    buckets = RedisBuckets("redis://127.0.0.1:1/0", environment="away")
    with pytest.raises(Unavailable, match="is away"):
        await buckets.take("k", rate_per_sec=1, burst=1)
    await buckets.close()
