"""The two-tier cache, in one process and in two that share a Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import pytest

from adjudge.cache.entry import decode_entry
from adjudge.cache.policies import POLICIES, CacheEntity
from adjudge.cache.redis_tier import RedisTier
from adjudge.cache.revisions import CacheRevisions
from adjudge.cache.two_tier import TwoTierCache
from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import Logger
from adjudge.store import Tx
from adjudge.store.ops import cache_revisions
from tests.support.servers import RedisServer
from tests.support.store_harness import StoreHarness, metric_value

_ENVIRONMENTS = count(1)


class CacheFixture:
    """A clock, a source of values that counts how often it was asked, and caches that share what they share."""

    def __init__(self, store: StoreHarness, redis: RedisServer | None) -> None:
        self.now = 1_000.0
        self.loads = 0
        self.value: bytes | None = b"one"
        self.gate: asyncio.Event | None = None
        self._store, self._redis = store, redis
        self._environment = f"cache-{next(_ENVIRONMENTS)}"
        self.opened: list[TwoTierCache] = []

    def open(self, **limits: int) -> TwoTierCache:
        tier = RedisTier(self._redis.url, environment=self._environment) if self._redis else None
        self.opened.append(TwoTierCache(CacheRevisions(self._store.database), tier, clock=lambda: self.now, **limits))
        return self.opened[-1]

    async def load(self) -> bytes | None:
        self.loads += 1
        value = self.value
        if self.gate is not None:
            await self.gate.wait()
        return value

    async def read(
        self, cache: TwoTierCache, entity: CacheEntity = CacheEntity.PROBLEM, revision: str = "problem:a"
    ) -> bytes | None:
        found = await cache.get(entity, "a", self.load, revision=revision)
        return found.body if found else None


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause of the machine is no absence of Redis."""
    monkeypatch.setattr("adjudge.cache.redis_tier._PATIENCE_SEC", 120.0)


@pytest.fixture(params=["memory", "redis"])
async def world(request: pytest.FixtureRequest, sqlite_store: StoreHarness) -> AsyncIterator[CacheFixture]:
    redis = request.getfixturevalue("redis_server") if request.param == "redis" else None
    world = CacheFixture(sqlite_store, redis)
    yield world
    for cache in world.opened:
        await cache.close()


async def test_value_is_loaded_once(world: CacheFixture) -> None:
    cache = world.open()
    hits = metric_value("cache_requests_total", entity="problem:item", tier="l1", result="hit")
    assert [await world.read(cache) for _ in range(3)] == [b"one"] * 3
    assert world.loads == 1
    assert metric_value("cache_requests_total", entity="problem:item", tier="l1", result="hit") == hits + 2


async def test_etag_depends_on_bytes(world: CacheFixture) -> None:
    cache = world.open()
    first = await cache.get(CacheEntity.PROBLEM, "a", world.load)
    same = await cache.get(CacheEntity.PROBLEM, "b", world.load)
    world.value = b"two"
    other = await cache.get(CacheEntity.PROBLEM, "c", world.load)
    assert first is not None
    assert same is not None
    assert other is not None
    assert first.etag == same.etag != other.etag


async def test_revision_bump_invalidates_value(world: CacheFixture, sqlite_store: StoreHarness) -> None:
    cache = world.open()
    await world.read(cache)
    world.value = b"two"
    await sqlite_store.transact(lambda tx: cache_revisions.bump(tx, ["problem:other"]))
    await cache.revisions.refresh()
    assert await world.read(cache) == b"one"
    await sqlite_store.transact(lambda tx: cache_revisions.bump(tx, ["problem:a", "catalogue"]))
    await cache.revisions.refresh()
    assert await world.read(cache) == b"two"


async def test_rolled_back_bump_has_no_effect(sqlite_store: StoreHarness) -> None:
    revisions = CacheRevisions(sqlite_store.database)

    async def fails(tx: Tx) -> None:
        await cache_revisions.bump(tx, ["a"])
        raise Unavailable

    with pytest.raises(Unavailable):
        await sqlite_store.transact(fails)
    await revisions.refresh()
    assert revisions.current("a") == 0


async def test_concurrent_gets_share_one_load(world: CacheFixture) -> None:
    cache = world.open()
    world.gate = asyncio.Event()
    asking = [asyncio.create_task(world.read(cache)) for _ in range(20)]
    while world.loads == 0:
        await asyncio.sleep(0)
    asking[0].cancel()  # a canceled caller cancels no other
    world.gate.set()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert answers[1:] == [b"one"] * 19
    assert world.loads == 1


async def test_failed_load_is_raised_to_all_and_not_cached(world: CacheFixture) -> None:
    cache = world.open()

    async def fails() -> bytes | None:
        raise Unavailable("away")

    for _ in range(2):
        with pytest.raises(Unavailable):
            await cache.get(CacheEntity.PROBLEM, "a", fails)
    assert await world.read(cache, revision="") == b"one"


async def test_stale_value_is_served_while_revalidating(world: CacheFixture) -> None:
    cache, policy = world.open(), POLICIES[CacheEntity.PROBLEM]
    await world.read(cache)
    world.value = b"two"
    world.now += policy.ttl_sec + 1
    assert await world.read(cache) == b"one"
    while cache._loads:
        await asyncio.sleep(0.001)
    assert await world.read(cache) == b"two"
    world.value = b"three"
    world.now += policy.ttl_sec + policy.stale_while_revalidate_sec + 1
    assert await world.read(cache) == b"three"


async def test_missing_object_is_cached_briefly(world: CacheFixture) -> None:
    cache = world.open()
    world.value = None
    assert [await world.read(cache) for _ in range(3)] == [None] * 3
    assert world.loads == 1
    world.value = b"one"
    world.now += POLICIES[CacheEntity.PROBLEM].negative_ttl_sec + 0.1
    assert await world.read(cache) == b"one"


async def test_status_expires_after_five_seconds_or_on_invalidate(world: CacheFixture) -> None:
    cache = world.open()
    assert (
        POLICIES[CacheEntity.SUBMISSION_STATUS].ttl_sec
        + POLICIES[CacheEntity.SUBMISSION_STATUS].stale_while_revalidate_sec
        <= 5
    )
    world.gate = asyncio.Event()
    slow = asyncio.create_task(world.read(cache, CacheEntity.SUBMISSION_STATUS, ""))
    while world.loads == 0:
        await asyncio.sleep(0)
    world.value = b"accepted"
    cache.invalidate(CacheEntity.SUBMISSION_STATUS, "a")  # while the old one is still being loaded
    world.gate.set()
    assert await slow == b"one"
    assert await world.read(cache, CacheEntity.SUBMISSION_STATUS, "") == b"accepted"


async def test_l1_is_bounded_by_entries_and_by_bytes(world: CacheFixture) -> None:
    cache = world.open(max_entries=2, max_bytes=4_000)
    loads: list[str] = []

    async def read(selector: str, size_bytes: int = 1) -> None:
        async def load() -> bytes:
            loads.append(selector)
            return b"x" * size_bytes

        await cache.get(CacheEntity.SUBMISSION_STATUS, selector, load)

    for selector in ("a", "b", "a", "c"):  # "b" is the least recently used when "c" exceeds max_entries
        await read(selector)
    await read("a")
    await read("b")
    assert loads == ["a", "b", "c", "b"]
    await read("large", 3_000)  # leaves no space for another entry
    await read("b")
    assert loads[4:] == ["large", "b"]
    await read("too large", 5_000)
    await read("too large", 5_000)
    assert loads[6:] == ["too large", "too large"]


# ---- what Redis adds


@pytest.fixture
async def shared(redis_server: RedisServer, sqlite_store: StoreHarness) -> AsyncIterator[CacheFixture]:
    world = CacheFixture(sqlite_store, redis_server)
    yield world
    for cache in world.opened:
        await cache.close()


async def test_second_process_reads_from_redis(shared: CacheFixture) -> None:
    here, there = shared.open(), shared.open()
    assert await shared.read(here) == await shared.read(there) == b"one"
    assert shared.loads == 1


async def test_copy_from_redis_keeps_expiry(shared: CacheFixture) -> None:
    here, there = shared.open(), shared.open()
    await shared.read(here)
    policy = POLICIES[CacheEntity.PROBLEM]
    shared.now += policy.ttl_sec - 1
    assert await shared.read(there) == b"one"
    shared.value = b"two"
    shared.now += policy.stale_while_revalidate_sec + 2
    assert await shared.read(there) == b"two"


@pytest.mark.parametrize("entity", [CacheEntity.SUBMISSION_STATUS, CacheEntity.USER_LIST])
async def test_private_entities_are_not_stored_in_redis(shared: CacheFixture, entity: CacheEntity) -> None:
    await shared.read(shared.open(), entity, "")
    await shared.read(shared.open(), entity, "")
    assert shared.loads == 2


async def test_redis_outage_is_a_miss_logged_once(sqlite_store: StoreHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(Logger, "warning", lambda _self, event, **_: said.append(event))
    tier = RedisTier("redis://127.0.0.1:1/0", environment="away")
    cache = TwoTierCache(CacheRevisions(sqlite_store.database), tier)
    errors = metric_value("cache_requests_total", entity="problem:item", tier="l2", result="error")

    async def load() -> bytes:
        return b"one"

    for selector in "abc":
        found = await cache.get(CacheEntity.PROBLEM, selector, load)
        assert found is not None
    assert tier.is_unavailable
    assert metric_value("cache_requests_total", entity="problem:item", tier="l2", result="error") == errors + 1
    assert said == ["cache_redis_unavailable"]
    await cache.close()


def test_unknown_layout_is_a_miss() -> None:
    assert decode_entry(b"") is None
    assert decode_entry(b"something else altogether") is None


async def test_follower_sees_all_bumps_with_interleaved_commits(store: StoreHarness) -> None:
    revisions = CacheRevisions(store.database)

    async def write(name: str) -> None:
        for _ in range(5):
            await store.transact(lambda tx: cache_revisions.bump(tx, [name, "catalogue"]))

    async def follow() -> None:
        while True:
            await revisions.refresh()
            await asyncio.sleep(0)

    following = asyncio.create_task(follow())
    await asyncio.gather(*(write(f"problem:{number}") for number in range(8)))
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await revisions.refresh()
    rows = await store.rows("SELECT name, revision FROM cache_revisions")
    assert {row["name"]: row["revision"] for row in rows} == {
        row["name"]: revisions.current(row["name"]) for row in rows
    }
    assert revisions.current("catalogue") == 40


async def test_notification_refreshes_revisions(store: StoreHarness) -> None:
    revisions = CacheRevisions(store.database)
    async with revisions.follow_updates(), asyncio.timeout(120):
        await store.transact(lambda tx: cache_revisions.bump(tx, ["problem:a"]))
        while revisions.current("problem:a") == 0:
            await asyncio.sleep(0.001)
