"""Two tiers in front of the store: this process's own, and Redis where there is Redis.

A value is bytes, ready to be sent. Whoever asks says how to load it; the cache sees to it that many askers cause one
load, that a value past its time is served while a newer one is fetched behind it, and that what does not exist is not
looked for again and again. Nothing here decides who may see a value: the caller does, before asking.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from adjudge.cache.entry import CachedValue, CacheEntry, make_entry
from adjudge.cache.policies import POLICIES, CacheEntity
from adjudge.cache.redis_tier import NullTier, SharedTier
from adjudge.cache.revisions import CacheRevisions
from adjudge.cache.shelf import Shelf
from adjudge.domain.errors import AdjudgeError
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger

Loader = Callable[[], Awaitable[bytes | None]]
"""Reads the value from where it is true; None where it does not exist."""

MAX_ENTRIES: Final = 20_000
MAX_BYTES: Final = 64 * 1024 * 1024
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
        self._shared = shared or NullTier()
        self._shelf = Shelf(max_entries=max_entries, max_bytes=max_bytes)
        self._clock = clock
        self._flights: dict[str, asyncio.Task[CacheEntry]] = {}
        self._hits = {entity: metrics.CACHE_REQUESTS.labels(entity, "l1", "hit") for entity in CacheEntity}

    def peek(self, entity: CacheEntity, selector: str, *, revision: str = "") -> CachedValue | None:
        """The value, if this process has it and it is fresh; else nothing is loaded, and ``get`` will count."""
        entry = self._shelf.get(self._key(entity, selector, revision))
        if entry is None or entry.value is None or self._clock() >= entry.fresh_until:
            return None
        self._hits[entity].inc()
        return entry.value

    async def get(self, entity: CacheEntity, selector: str, load: Loader, *, revision: str = "") -> CachedValue | None:
        """The value of ``selector``, loaded if it must be; None where it does not exist.

        ``revision`` is the name whose bump makes the value another one; without one it only ends by its time.
        """
        key = self._key(entity, selector, revision)
        entry = self._shelf.get(key)
        if entry is not None:
            now = self._clock()
            if now < entry.fresh_until:
                self._hits[entity].inc()
                return entry.value
            if entry.value is not None and now < entry.fresh_until + POLICIES[entity].stale_while_revalidate_sec:
                _count(entity, "l1", "stale")
                self._fly(entity, key, load)
                return entry.value
        _count(entity, "l1", "miss")
        return (await asyncio.shield(self._fly(entity, key, load))).value

    def invalidate(self, entity: CacheEntity, selector: str, *, revision: str = "") -> None:
        """Forget a value of this process, and whatever is being loaded for it: a later answer may be another one.

        What is shared is not dropped but made another by a bump of its revision.
        """
        key = self._key(entity, selector, revision)
        self._shelf.drop(key)
        self._flights.pop(key, None)

    async def close(self) -> None:
        """Stop loading and let go of Redis."""
        for flight in list(self._flights.values()):
            flight.cancel()
        await asyncio.gather(*self._flights.values(), return_exceptions=True)
        await self._shared.close()

    def _key(self, entity: CacheEntity, selector: str, revision: str) -> str:
        return f"{entity.value}:{selector}#v{self.revisions.current(revision)}"

    def _fly(self, entity: CacheEntity, key: str, load: Loader) -> asyncio.Task[CacheEntry]:
        """Load once for all who wait; a caller that gives up takes nobody else's answer along."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = asyncio.create_task(self._fetch(entity, key, load))
            flight.add_done_callback(lambda done: self._landed(key, done))
        return flight

    def _landed(self, key: str, flight: asyncio.Task[CacheEntry]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        if not flight.cancelled() and (error := flight.exception()) is not None:
            _log.debug("cache_load_failed", key=key, error=str(error))

    async def _fetch(self, entity: CacheEntity, key: str, load: Loader) -> CacheEntry:
        policy = POLICIES[entity]
        if policy.use_redis and (shared := await self._from_shared(entity, key)) is not None:
            self._keep(key, shared)
            return shared
        began = self._clock()  # a value is as old as the question, not as the answer
        body = await load()
        entry = make_entry(body, began + (policy.ttl_sec if body is not None else policy.negative_ttl_sec))
        if self._keep(key, entry) and policy.use_redis and body is not None and not self._shared.is_unavailable:
            with suppress(AdjudgeError):  # the tier has said so in the log
                await self._shared.put(key, entry, keep_sec=policy.ttl_sec)
        return entry

    def _keep(self, key: str, entry: CacheEntry) -> bool:
        """Put an entry on the shelf, unless it was dropped while it was on its way."""
        if self._flights.get(key) is not asyncio.current_task():
            return False
        self._shelf.put(key, entry)
        return True

    async def _from_shared(self, entity: CacheEntity, key: str) -> CacheEntry | None:
        if self._shared.is_unavailable:
            return None
        try:
            entry = await self._shared.get(key)
        except AdjudgeError:
            _count(entity, "l2", "error")
            return None
        if entry is None or entry.fresh_until <= self._clock():
            _count(entity, "l2", "miss")
            return None
        _count(entity, "l2", "hit")
        return entry


def _count(entity: CacheEntity, tier: str, result: str) -> None:
    metrics.CACHE_REQUESTS.labels(entity, tier, result).inc()
