"""L2 of the cache: Redis, shared by all processes of an environment.

A Redis that is down, slow or full counts as a miss. An outage is logged once when it begins and once when it ends;
after a failure Redis is not asked for a second, so that not every request waits for its timeout.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Protocol

from adjudge.cache.entry import CacheEntry, decode_entry, encode_entry
from adjudge.domain.errors import AdjudgeError
from adjudge.observe.logs import get_logger

_PATIENCE_SEC: Final = 0.25
_PAUSE_SEC: Final = 1.0
_log = get_logger(__name__)


class SharedTier(Protocol):
    """Values shared by several processes; raises ``Unavailable`` if there is no reply in time."""

    @property
    def is_unavailable(self) -> bool:
        """Whether the tier is skipped for now."""
        ...

    async def get(self, key: str) -> CacheEntry | None:
        """The entry, if present."""
        ...

    async def put(self, key: str, entry: CacheEntry, *, ttl_sec: float) -> None: ...

    async def close(self) -> None: ...


class NullTier:
    """The tier without Redis: always unavailable."""

    is_unavailable = True

    async def get(self, _key: str) -> CacheEntry | None:
        """Nothing."""
        return None

    async def put(self, _key: str, _entry: CacheEntry, *, ttl_sec: float) -> None:
        """Nothing."""

    async def close(self) -> None:
        """Nothing."""


class RedisTier:
    """Values under ``adjudge:ENV:cache:KEY``. They expire by TTL; nothing is scanned or deleted."""

    def __init__(self, url: str, *, environment: str, clock: Callable[[], float] = time.monotonic) -> None:
        from adjudge.stream.redis_connection import RedisConnection  # noqa: PLC0415  # Redis is imported only where it is chosen

        self._connection = RedisConnection(url, environment=environment)
        self._prefix = f"{self._connection.prefix}cache:"
        self._client = self._connection.connect(decode_responses=False, socket_connect_timeout=_PATIENCE_SEC)
        self._clock = clock
        self._retry_at = 0.0
        self._is_down = False

    @property
    def is_unavailable(self) -> bool:
        """Whether it failed within the last second."""
        return self._is_down and self._clock() < self._retry_at

    async def get(self, key: str) -> CacheEntry | None:
        async with self._track_outage():
            data = await self._client.get(self._prefix + key)
        return decode_entry(data) if isinstance(data, bytes) else None

    async def put(self, key: str, entry: CacheEntry, *, ttl_sec: float) -> None:
        async with self._track_outage():
            await self._client.set(self._prefix + key, encode_entry(entry), px=max(1, round(ttl_sec * 1_000)))

    async def close(self) -> None:
        await self._client.aclose()

    @asynccontextmanager
    async def _track_outage(self) -> AsyncIterator[None]:
        """Log the begin and the end of an outage."""
        try:
            async with self._connection.translate_errors(_PATIENCE_SEC):
                yield
        except AdjudgeError as error:
            self._retry_at = self._clock() + _PAUSE_SEC
            if not self._is_down:
                self._is_down = True
                _log.warning("cache_redis_unavailable", error=error.message)
            raise
        if self._is_down:
            self._is_down = False
            _log.info("cache_redis_recovered")
