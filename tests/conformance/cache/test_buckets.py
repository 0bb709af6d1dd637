"""Token buckets in memory and in Redis behave the same."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from fractions import Fraction
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.cache.token_buckets import BucketRequest, MemoryTokenBuckets, RedisTokenBuckets, TokenBuckets
from adjudge.domain.errors import InvalidInput, Unavailable
from tests.support.servers import RedisServer

_ENVIRONMENTS = count(1)


class BucketDriverFixture(ABC):
    """Buckets that several processes open, and a way to let time pass for them."""

    @abstractmethod
    def open(self) -> TokenBuckets:
        """Open them once more."""

    @abstractmethod
    async def pass_time(self, seconds: float) -> None:
        """Let time pass."""


class MemorySide(BucketDriverFixture):
    def __init__(self) -> None:
        self.now_us = 1_000_000_000
        self.buckets = MemoryTokenBuckets(clock_us=lambda: self.now_us)

    def open(self) -> TokenBuckets:
        return self.buckets

    async def pass_time(self, seconds: float) -> None:
        self.now_us += round(seconds * 1_000_000)


class RedisSide(BucketDriverFixture):
    def __init__(self, server: RedisServer) -> None:
        self.url = server.url
        self.environment = f"buckets-{next(_ENVIRONMENTS)}"
        self.opened: list[RedisTokenBuckets] = []

    def open(self) -> TokenBuckets:
        self.opened.append(RedisTokenBuckets(self.url, environment=self.environment))
        return self.opened[-1]

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)  # Redis's clock is the one that counts, and only time moves it


@pytest.fixture(params=["memory", "redis"])
async def side(request: pytest.FixtureRequest) -> AsyncIterator[BucketDriverFixture]:
    if request.param == "memory":
        yield MemorySide()
        return
    redis_side = RedisSide(request.getfixturevalue("redis_server"))
    yield redis_side
    for buckets in redis_side.opened:
        await buckets.close()


async def test_full_bucket_grants_burst_then_returns_wait(side: BucketDriverFixture) -> None:
    buckets = side.open()
    granted = [await buckets.take("k", rate_per_sec=0.01, burst=3) for _ in range(3)]
    assert granted == [0.0, 0.0, 0.0]
    wait = await buckets.take("k", rate_per_sec=0.01, burst=3)
    assert 90 < wait <= 100


async def test_refused_request_takes_no_tokens(side: BucketDriverFixture) -> None:
    buckets = side.open()
    assert await buckets.take("k", rate_per_sec=0.01, burst=2) == 0.0
    assert await buckets.take("k", rate_per_sec=0.01, burst=2, amount=2) > 0
    assert await buckets.take("k", rate_per_sec=0.01, burst=2) == 0.0


async def test_request_is_granted_after_wait(side: BucketDriverFixture) -> None:
    buckets = side.open()
    assert await buckets.take("k", rate_per_sec=20, burst=1) == 0.0
    async with asyncio.timeout(60):
        while (wait := await buckets.take("k", rate_per_sec=20, burst=1)) == 0.0:
            pass  # the machine stood still for longer than a token takes
    assert 0 < wait <= 0.05
    await side.pass_time(wait)
    assert await buckets.take("k", rate_per_sec=20, burst=1) == 0.0


async def test_buckets_are_independent(side: BucketDriverFixture) -> None:
    buckets = side.open()
    await buckets.take("a", rate_per_sec=0.01, burst=1)
    assert await buckets.take("b", rate_per_sec=0.01, burst=1) == 0.0
    assert await buckets.take("a", rate_per_sec=0.01, burst=1) > 0


async def test_buckets_are_shared_between_clients(side: BucketDriverFixture) -> None:
    one, two = side.open(), side.open()
    await one.take("k", rate_per_sec=0.01, burst=1)
    assert await two.take("k", rate_per_sec=0.01, burst=1) > 0


async def test_concurrent_requests_do_not_exceed_burst(side: BucketDriverFixture) -> None:
    buckets = [side.open() for _ in range(4)]
    waits = await asyncio.gather(
        *(buckets[number % 4].take("k", rate_per_sec=0.01, burst=7) for number in range(20)),
    )
    assert sum(wait == 0.0 for wait in waits) == 7


async def test_take_many_is_all_or_nothing(side: BucketDriverFixture) -> None:
    buckets = side.open()
    requests = [BucketRequest("minute", 0.01, 5, 2), BucketRequest("day", 0.001, 3, 2)]
    assert await buckets.take_many(requests) == [0.0, 0.0]
    minute, day = await buckets.take_many(requests)
    assert (minute, day > 0) == (0.0, True)
    assert await buckets.take("minute", rate_per_sec=0.01, burst=5, amount=3) == 0.0, "the refusal took nothing"
    assert await buckets.take_many([]) == []


async def test_invalid_requests_are_rejected(side: BucketDriverFixture) -> None:
    buckets = side.open()
    with pytest.raises(InvalidInput, match="2 tokens exceed the burst size 1"):
        await buckets.take("k", rate_per_sec=1, burst=1, amount=2)
    for amount in (0.0, -1.0, float("nan")):
        with pytest.raises(InvalidInput, match="amount must be above 0"):
            await buckets.take("k", rate_per_sec=1, burst=1, amount=amount)
    with pytest.raises(InvalidInput, match="above 0"):
        await buckets.take("k", rate_per_sec=0, burst=1)
    for rate in (float("nan"), float("inf"), -1.0):
        with pytest.raises(InvalidInput, match="finite number above 0"):
            await buckets.take("k", rate_per_sec=rate, burst=1)
    with pytest.raises(InvalidInput, match="burst must be a finite number"):
        await buckets.take("k", rate_per_sec=1, burst=float("inf"))
    with pytest.raises(InvalidInput, match="Duplicate bucket key"):
        await buckets.take_many([BucketRequest("k", 1, 1), BucketRequest("k", 1, 1)])


async def test_full_bucket_grants_its_whole_burst_at_any_rate(side: BucketDriverFixture) -> None:
    buckets = side.open()
    rates = (0.001, 1e-7, 0.1, 1 / 3, 3, 7, 60 / 7, 999.9)
    for rate in rates:
        assert await buckets.take(f"at once {rate}", rate_per_sec=rate, burst=7, amount=7) == 0.0
        waits = await buckets.take_many([BucketRequest(f"{part} {rate}", rate, 3, 3) for part in range(3)])
        assert waits == [0.0, 0.0, 0.0]


async def test_bucket_that_fills_in_more_than_a_lifetime_still_grants_when_full(side: BucketDriverFixture) -> None:
    buckets = side.open()
    assert await buckets.take("k", rate_per_sec=1e-300, burst=1) == 0.0
    assert await buckets.take("k", rate_per_sec=1e-300, burst=1) > 10**8


@given(
    clock_us=st.integers(0, 10**15),
    rate=st.floats(1e-3, 1e5) | st.integers(1, 10**5),
    burst=st.integers(1, 200),
    amounts=st.lists(st.integers(1, 50), min_size=1, max_size=30),
)
async def test_memory_grants_are_independent_of_clock_value(
    clock_us: int, rate: float, burst: int, amounts: list[int]
) -> None:
    now_us = clock_us
    buckets = MemoryTokenBuckets(clock_us=lambda: now_us)
    left = burst
    for amount in (min(amount, burst) for amount in amounts):
        wait = await buckets.take("k", rate_per_sec=rate, burst=burst, amount=amount)
        if amount <= left:
            assert wait == 0.0, "the bucket holds enough"
            left -= amount
        else:
            assert abs(Fraction(wait) - Fraction(amount - left) / Fraction(rate)) <= Fraction(burst + 1, 10**6)
            now_us += round(wait * 1_000_000)
            granted_at_once = wait == 0.0  # by less than a microsecond per token, which rounding gives away
            assert granted_at_once or await buckets.take("k", rate_per_sec=rate, burst=burst, amount=amount) == 0.0
            break


async def test_memory_full_buckets_are_dropped() -> None:
    side = MemorySide()
    for number in range(10_001):
        await side.buckets.take(f"k{number}", rate_per_sec=1, burst=1)
    side.now_us += 10_000_000
    await side.buckets.take("last", rate_per_sec=1, burst=1)
    assert list(side.buckets._full_at_us) == ["last"]


async def test_redis_full_bucket_has_no_key(redis_server: RedisServer) -> None:
    side = RedisSide(redis_server)
    buckets = side.open()
    assert isinstance(buckets, RedisTokenBuckets)
    await buckets.take("k", rate_per_sec=0.5, burst=100, amount=50)
    key = f"adjudge:{side.environment}:bucket:k"
    assert 0 < await buckets._client.pttl(key) <= 100_000
    await buckets.close()


async def test_redis_down_raises_unavailable() -> None:
    buckets = RedisTokenBuckets("redis://127.0.0.1:1/0", environment="away")
    with pytest.raises(Unavailable, match="is unavailable"):
        await buckets.take("k", rate_per_sec=1, burst=1)
    await buckets.close()
