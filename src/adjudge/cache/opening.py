"""Opening a cache: with Redis behind it where there is Redis, following the database while it is open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adjudge.cache.redis_tier import RedisTier
from adjudge.cache.revisions import CacheRevisions
from adjudge.cache.two_tier import MAX_BYTES, MAX_ENTRIES, TwoTierCache
from adjudge.store import Database


@asynccontextmanager
async def open_cache(
    database: Database,
    redis_url: str,
    environment: str,
    *,
    max_entries: int = MAX_ENTRIES,
    max_bytes: int = MAX_BYTES,
) -> AsyncIterator[TwoTierCache]:
    """The cache of this process; an empty ``redis_url`` means that it has one tier."""
    revisions = CacheRevisions(database)
    shared = RedisTier(redis_url, environment=environment) if redis_url else None
    cache = TwoTierCache(revisions, shared, max_entries=max_entries, max_bytes=max_bytes)
    try:
        async with revisions.follow_updates():
            yield cache
    finally:
        await cache.close()
