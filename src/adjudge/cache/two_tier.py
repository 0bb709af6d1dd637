"""Two-tier cache of database reads: L1 in the process, L2 in Redis if configured.

A value is bytes, ready to be sent. The caller passes a loader; concurrent callers share one load, an expired value is
served while it is reloaded in the background (stale-while-revalidate), and missing objects are cached for a short time.
The caller checks permissions before it asks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from cachetools import LRUCache

from adjudge.cache.entry import CachedValue, CacheEntry, make_entry
from adjudge.cache.policies import POLICIES, CacheEntity
from adjudge.cache.redis_tier import NullTier, RedisTier, SharedTier
from adjudge.cache.revisions import CacheRevisions
from adjudge.domain.errors import AdjudgeError
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.store import Database

Loader = Callable[[], Awaitable[bytes | None]]
"""Reads the value from the store; None if it does not exist."""

MAX_ENTRIES: Final = 20_000
MAX_BYTES: Final = 64 * 1024 * 1024
_ENTRY_OVERHEAD_BYTES: Final = 512
"""Approximate size of an entry without its body: key, ETag, bookkeeping."""
_log = get_logger(__name__)


class TwoTierCache:
    """The cache of one process."""

    def __init__(
        self,
        revisions: CacheRevisions,
        shared: SharedTier | None = None,
        *,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.revisions = revisions
        self._l2 = shared or NullTier()
        self._max_entries = max_entries
        self._l1: LRUCache[str, CacheEntry] = LRUCache(max_bytes, _size_bytes)
        self._clock = clock
        self._loads: dict[str, asyncio.Task[CacheEntry]] = {}
        self._hits = {entity: metrics.CACHE_REQUESTS.labels(entity, "l1", "hit") for entity in CacheEntity}

    def peek(self, entity: CacheEntity, selector: str, *, revision: str = "") -> CachedValue | None:
        """The value if L1 has it and it is fresh; loads nothing. A miss is counted by the ``get`` that follows."""
        entry = self._l1.get(self._key(entity, selector, revision))
        if entry is None or entry.value is None or self._clock() >= entry.fresh_until:
            return None
        self._hits[entity].inc()
        return entry.value

    async def get(self, entity: CacheEntity, selector: str, load: Loader, *, revision: str = "") -> CachedValue | None:
        """The value of ``selector``, loaded if necessary; None if it does not exist.

        A bump of ``revision`` invalidates the value; without a revision it only expires.
        """
        key = self._key(entity, selector, revision)
        entry = self._l1.get(key)
        if entry is not None:
            now = self._clock()
            if now < entry.fresh_until:
                self._hits[entity].inc()
                return entry.value
            if entry.value is not None and now < entry.fresh_until + POLICIES[entity].stale_while_revalidate_sec:
                _count(entity, "l1", "stale")
                self._load_once(entity, key, load)
                return entry.value
        _count(entity, "l1", "miss")
        return (await asyncio.shield(self._load_once(entity, key, load))).value

    def invalidate(self, entity: CacheEntity, selector: str, *, revision: str = "") -> None:
        """Remove a value from L1 and detach the load in progress, whose result may be outdated.

        Values in L2 are invalidated by a bump of their revision instead.
        """
        key = self._key(entity, selector, revision)
        self._l1.pop(key, None)
        self._loads.pop(key, None)

    async def close(self) -> None:
        """Cancel all loads and disconnect from Redis."""
        for task in list(self._loads.values()):
            task.cancel()
        await asyncio.gather(*self._loads.values(), return_exceptions=True)
        await self._l2.close()

    def _key(self, entity: CacheEntity, selector: str, revision: str) -> str:
        return f"{entity.value}:{selector}#v{self.revisions.current(revision)}"

    def _load_once(self, entity: CacheEntity, key: str, load: Loader) -> asyncio.Task[CacheEntry]:
        """Load once for all callers; they await it shielded, so that one that is cancelled does not cancel it."""
        task = self._loads.get(key)
        if task is None:
            task = self._loads[key] = asyncio.create_task(self._fetch(entity, key, load))
            task.add_done_callback(lambda done: self._load_finished(key, done))
        return task

    def _load_finished(self, key: str, task: asyncio.Task[CacheEntry]) -> None:
        if self._loads.get(key) is task:
            del self._loads[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.debug("cache_load_failed", key=key, error=str(error))

    async def _fetch(self, entity: CacheEntity, key: str, load: Loader) -> CacheEntry:
        policy = POLICIES[entity]
        if policy.use_redis and (shared := await self._from_shared(entity, key)) is not None:
            self._store(key, shared)
            return shared
        began = self._clock()  # the age of a value counts from the start of its load
        body = await load()
        entry = make_entry(body, began + (policy.ttl_sec if body is not None else policy.negative_ttl_sec))
        if self._store(key, entry) and policy.use_redis and body is not None and not self._l2.is_unavailable:
            with suppress(AdjudgeError):  # logged by the tier
                await self._l2.put(key, entry, ttl_sec=policy.ttl_sec)
        return entry

    def _store(self, key: str, entry: CacheEntry) -> bool:
        """Store an entry in L1, unless it was invalidated during its load."""
        if self._loads.get(key) is not asyncio.current_task():
            return False
        with suppress(ValueError):  # larger than the whole cache
            self._l1[key] = entry
        while len(self._l1) > self._max_entries:
            self._l1.popitem()
        return True

    async def _from_shared(self, entity: CacheEntity, key: str) -> CacheEntry | None:
        if self._l2.is_unavailable:
            return None
        try:
            entry = await self._l2.get(key)
        except AdjudgeError:
            _count(entity, "l2", "error")
            return None
        if entry is None or entry.fresh_until <= self._clock():
            _count(entity, "l2", "miss")
            return None
        _count(entity, "l2", "hit")
        return entry


def _size_bytes(entry: CacheEntry) -> int:
    return entry.size_bytes + _ENTRY_OVERHEAD_BYTES


def _count(entity: CacheEntity, tier: str, result: str) -> None:
    metrics.CACHE_REQUESTS.labels(entity, tier, result).inc()


@asynccontextmanager
async def open_cache(
    database: Database,
    redis_url: str,
    environment: str,
    *,
    max_entries: int = MAX_ENTRIES,
    max_bytes: int = MAX_BYTES,
) -> AsyncIterator[TwoTierCache]:
    """Open the cache of this process; without ``redis_url`` it has only L1."""
    revisions = CacheRevisions(database)
    shared = RedisTier(redis_url, environment=environment) if redis_url else None
    cache = TwoTierCache(revisions, shared, max_entries=max_entries, max_bytes=max_bytes)
    try:
        async with revisions.follow_updates():
            yield cache
    finally:
        await cache.close()
