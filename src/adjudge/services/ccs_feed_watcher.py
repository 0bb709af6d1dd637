"""Tells open event feeds when there are new events: one reader per process for all of them.

It reads the ends of the followed feeds, when a feed was written and every second, so that a hundred clients cost the
database one query. It also records that the feeds are read: others are not filled.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.store import Database
from adjudge.store.contests import feed as feeds
from adjudge.store.contests.feed import FeedHead
from adjudge.store.engine.notify import CHANNEL_FEED, Wakeup

_POLL_MS: Final = 1_000
_PAUSE_SEC: Final = 0.05
_RECORD_SEC: Final = 300.0
"""How often it is recorded that feeds are read; far more often than feeds become idle."""

_log = get_logger(__name__)


class FeedFollower:
    """Follows the end of one feed."""

    def __init__(self) -> None:
        self.head: FeedHead | None = None
        """As last read; None before the first read."""
        self._changed = asyncio.Event()

    def put(self, head: FeedHead) -> None:
        """Store a new end."""
        if head != self.head:
            self.head = head
            self._changed.set()

    async def wait(self, timeout_sec: float) -> None:
        """Wait until the end has changed since the last wait, or for the timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_sec):
                await self._changed.wait()
        self._changed.clear()


class FeedWatcher:
    """The followed feeds of one process."""

    def __init__(self, database: Database, *, poll_ms: int = _POLL_MS) -> None:
        self._database = database
        self._poll_ms = poll_ms
        self._followers: dict[str, set[FeedFollower]] = defaultdict(set)
        self._wakeup = Wakeup()
        self._reader: asyncio.Task[None] | None = None

    @contextmanager
    def subscribe(self, feed_id: str) -> Iterator[FeedFollower]:
        """Follow a feed; changes since the block was entered are seen."""
        follower = FeedFollower()
        self._followers[feed_id].add(follower)
        self._wakeup.set()
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._poll_loop(), name="feed-watcher")
        try:
            yield follower
        finally:
            self._followers[feed_id].discard(follower)
            if not self._followers[feed_id]:
                del self._followers[feed_id]

    async def close(self) -> None:
        """Stop reading."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    async def _poll_loop(self) -> None:
        unlisten = self._database.listen(CHANNEL_FEED, self._wakeup.set)
        outage = Outage(_log, "feed_watcher_retrying")
        recorded_at = _now()
        try:
            while self._followers:
                self._wakeup.clear()
                try:
                    await self._read_heads()
                    if _now() >= recorded_at + _RECORD_SEC:
                        recorded_at = _now()
                        await self._database.transact(partial(feeds.record_read, feed_ids=list(self._followers)))
                    outage.over()
                except Unavailable as error:
                    await asyncio.sleep(outage.failed(error))
                await asyncio.sleep(_PAUSE_SEC)
                await self._wakeup.wait(self._poll_ms)
        finally:
            unlisten()

    async def _read_heads(self) -> None:
        ids = list(self._followers)
        for head in await self._database.read(lambda tx: feeds.heads(tx, ids)):
            for follower in self._followers.get(head.id, ()):
                follower.put(head)


def _now() -> float:
    return asyncio.get_running_loop().time()
