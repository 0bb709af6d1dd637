"""Current revisions of cached objects, kept in the process and refreshed from the database.

A write bumps revisions in its own transaction. This process learns of it by a notification or, if that is lost, by a
poll every second, so it serves outdated values for one second at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from cachetools import FIFOCache

from adjudge.domain.errors import AdjudgeError
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.store import Database
from adjudge.store.engine.notify import Wakeup
from adjudge.store.ops import cache_revisions

POLL_MS: Final = 1_000
MAX_CAUSES: Final = 10_000
_log = get_logger(__name__)


class CacheRevisions:
    """Name → number of its latest change."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, int] = {}
        self._seen = 0
        self._causes: FIFOCache[str, None] = FIFOCache(MAX_CAUSES)

    def current(self, name: str) -> int:
        """The current revision; 0 if nothing was written under that name."""
        return self._known.get(name, 0)

    def bump_local(self, name: str) -> None:
        """Invalidate what this process caches under ``name``; for names that no other process shares."""
        self._known[name] = self._known.get(name, 0) + 1

    def bump_local_once(self, name: str, *, cause: str) -> None:
        """Bump ``name`` once per ``cause``, however often the cause is seen.

        Only the latest causes are remembered; an older one that is seen again costs one more load.
        """
        if cause in self._causes:
            return
        self._causes[cause] = None
        self.bump_local(name)

    async def refresh(self) -> None:
        """Read the revisions that changed since the last refresh."""
        seen = self._seen
        changed = await self._database.read(lambda tx: cache_revisions.find_changed_since(tx, seen))
        for name, revision in changed.items():
            if revision > self._known.get(name, 0):
                self._known[name] = revision
            self._seen = max(self._seen, revision)

    @asynccontextmanager
    async def follow_updates(self) -> AsyncIterator[None]:
        """Refresh on notifications and by polling while the block runs."""
        wakeup = Wakeup()
        stop_listening = self._database.listen(cache_revisions.CHANNEL_CACHE, wakeup.set)
        await self.refresh()
        follower = asyncio.create_task(self._follow(wakeup))
        try:
            yield
        finally:
            stop_listening()
            follower.cancel()
            with suppress(asyncio.CancelledError):
                await follower

    async def _follow(self, wakeup: Wakeup) -> None:
        outage = Outage(_log, "cache_revisions_poll_failed", first_sec=POLL_MS / 1_000)
        while True:
            await wakeup.wait(POLL_MS)
            wakeup.clear()
            try:
                await self.refresh()
                outage.over()
            except AdjudgeError as error:
                await asyncio.sleep(outage.failed(error))
