"""Which revision of everything cached is the present one: known in the process, learnt from the database.

A write bumps revisions in its own transaction. This process hears of it by a bell and, should the bell be lost, by a
look every second. A process that fell behind serves what it has for that long and no longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

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
    """Names and the number of their latest change."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, int] = {}
        self._seen = 0
        self._causes: dict[str, None] = {}
        """What was touched for, the longest ago first."""

    def current(self, name: str) -> int:
        """The present revision; 0 where nothing has been written under that name yet."""
        return self._known.get(name, 0)

    def bump_local(self, name: str) -> None:
        """Make what this process keeps under ``name`` obsolete; for names that no other process shares."""
        self._known[name] = self._known.get(name, 0) + 1

    def bump_local_once(self, name: str, *, cause: str) -> None:
        """Touch ``name`` for something that happened once and is come upon again and again.

        Only the latest causes are known: one that was forgotten costs another load, and no more.
        """
        if cause in self._causes:
            return
        self._causes[cause] = None
        if len(self._causes) > MAX_CAUSES:
            del self._causes[next(iter(self._causes))]
        self.bump_local(name)

    async def refresh(self) -> None:
        """Learn what has been written since the last look."""
        seen = self._seen
        changed = await self._database.read(lambda tx: cache_revisions.find_changed_since(tx, seen))
        for name, revision in changed.items():
            if revision > self._known.get(name, 0):
                self._known[name] = revision
            self._seen = max(self._seen, revision)

    @asynccontextmanager
    async def follow_updates(self) -> AsyncIterator[None]:
        """Keep up with the database while the block lasts."""
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
