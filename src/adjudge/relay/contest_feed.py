"""Fills the event feeds of contests that clients follow.

A pass reads what changed in one snapshot and computes the events without a lock; a short transaction appends them if
nobody else has written the feed meanwhile. So any number of schedulers may run, a feed has no gaps and no repetitions
out of order, and a scheduler that dies in between loses nothing. A feed that nobody has read for an hour is not filled;
the next request resumes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Final

from adjudge.domain.errors import NotFound, Unavailable
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.relay.feed_update import FeedOptions, FeedSource, FeedUpdate, compute_update
from adjudge.store import Database, Tx
from adjudge.store.contests import feed as feeds
from adjudge.store.engine.notify import CHANNEL_FEED, CHANNEL_JUDGING, CHANNEL_SCOREBOARD, Wakeup

_log = get_logger(__name__)
_POLL_MS: Final = 1_000
_PAUSE_SEC: Final = 0.1
"""Shortest pause between two passes; a pass that took longer is followed by a pause of the same length."""
_IDLE_US: Final = 3_600_000_000


class ContestFeedWriter:
    """Fills all feeds that were read recently. Any number may run at once."""

    def __init__(
        self, database: Database, source: FeedSource, *, options: FeedOptions | None = None, idle_us: int = _IDLE_US
    ) -> None:
        self._database = database
        self._source = source
        self._options = options or FeedOptions()
        self._idle_us = idle_us

    async def run(self) -> None:
        """Run forever: when a submission, a scoreboard or a request changes something, and every second."""
        wakeup, outage = Wakeup(), Outage(_log, "contest_feed_retrying")
        with ExitStack() as stack:
            for channel in (CHANNEL_JUDGING, CHANNEL_SCOREBOARD, CHANNEL_FEED):
                stack.callback(self._database.listen(channel, wakeup.set))
            while True:
                wakeup.clear()
                began = _now()
                try:
                    await self.run_once()
                    outage.over()
                except Unavailable as error:
                    await asyncio.sleep(outage.failed(error))
                await asyncio.sleep(max(_PAUSE_SEC, _now() - began))
                await wakeup.wait(_POLL_MS)

    async def run_once(self) -> int:
        """Bring all active feeds up to date; return the number of new events."""
        found = await self._database.read(lambda tx: feeds.active(tx, idle_us=self._idle_us))
        return sum([await self._fill_safely(feed_id) for feed_id in found])

    async def fill(self, feed_id: str, *, on_step: Callable[[], None] | None = None) -> int:
        """Bring one feed up to date; return the number of new events. ``on_step`` is called before each write."""
        total = 0
        while True:
            update = await self._database.read(partial(self._compute, feed_id=feed_id))
            if update is None:
                return total
            if await self._source.load_missing():
                continue  # the objects are complete now
            if on_step is not None:
                on_step()
            if await self._database.transact(partial(_write, update=update)):
                total += len(update.changes.events)
                if not update.has_more:
                    return total

    async def _fill_safely(self, feed_id: str) -> int:
        try:
            return await self.fill(feed_id)
        except (NotFound, Unavailable) as error:
            if isinstance(error, Unavailable):
                raise
            return 0  # the contest was deleted meanwhile
        except Exception:  # noqa: BLE001 — one contest must not keep the feeds of others from being filled
            _log.exception("contest_feed_failed", feed_id=feed_id)
            return 0

    async def _compute(self, tx: Tx, feed_id: str) -> FeedUpdate | None:
        return await compute_update(tx, feed_id, self._source, self._options)


async def _write(tx: Tx, update: FeedUpdate) -> bool:
    return await feeds.advance(tx, update.feed, update.changes.events, update.changes.superseded)


def _now() -> float:
    return asyncio.get_running_loop().time()
