"""The event feed of the Contest API: lines of JSON, from the beginning or after a token, while the client listens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from adjudge.contests.ccs.feed import FeedView, format_token, parse_token
from adjudge.contests.ccs.version import CcsCollection, CcsVersion, convert
from adjudge.contests.times import participant_clock
from adjudge.domain.errors import NotFound, Unavailable
from adjudge.domain.states import ContestState
from adjudge.services.ccs_feed_watcher import FeedFollower, FeedWatcher
from adjudge.services.contest_access import ContestAccess, ContestView
from adjudge.services.viewer import Viewer
from adjudge.store import Database
from adjudge.store.contests import feed as feeds
from adjudge.store.contests.feed import FeedRow, StoredEvent

_BATCH: Final = 500
"""Events that are read at a time: a slow client holds no more of them in memory."""
_NEWLINE_SEC: Final = 8.0
"""An empty line is sent after this time without events; the specification wants one every 120 seconds at least."""
_CHECK_SEC: Final = 10.0
"""How often it is checked that the viewer may still read the view."""
_PRESENT_SEC: Final = 30.0
"""How long a client that does not want to listen waits for the present state."""
_SINGLETONS: Final = frozenset({CcsCollection.CONTEST, CcsCollection.STATE})


@dataclass(frozen=True, slots=True)
class FeedRequest:
    """What a client asks for."""

    contest: str
    version: CcsVersion
    since_token: str | None = None
    is_stream: bool = True
    """False: end the response at the present instead of waiting for more."""


@dataclass(frozen=True, slots=True)
class CcsFeedService:
    """Opens event feeds."""

    database: Database
    access: ContestAccess
    watcher: FeedWatcher
    new_id: Callable[[], str]
    newline_sec: float = _NEWLINE_SEC
    check_sec: float = _CHECK_SEC
    present_sec: float = _PRESENT_SEC

    async def open(self, viewer: Viewer, request: FeedRequest) -> AsyncGenerator[str, None]:
        """The lines of the feed that the viewer may read; raises before the first one if the request is refused."""
        found = await self.access.find(viewer, request.contest)
        if found.contest.slug != request.contest or found.contest.state is ContestState.CANCELED:
            raise NotFound("contest", request.contest)
        feed_id, view = self.new_id(), feed_view(found)
        feed = await self.database.transact(lambda tx: feeds.open_feed(tx, feed_id, found.contest.id, view))
        sequence = 0 if request.since_token is None else parse_token(request.since_token, feed)
        if request.is_stream:
            return self._listen(viewer, feed, request.version, sequence)
        if not feed.is_final:
            await self._wait_until_present(feed)
        return self._read_all(feed, request.version, sequence)

    async def _listen(
        self, viewer: Viewer, feed: FeedRow, version: CcsVersion, sequence: int
    ) -> AsyncGenerator[str, None]:
        checked_at = _now()
        with self.watcher.subscribe(feed.id) as follower:
            while True:
                events = await self._read(feed, sequence)
                if events:
                    sequence = events[-1].sequence
                    yield encode_lines(feed.id, events, version)
                elif not await self._wait(follower, sequence):
                    yield "\n"
                if _now() >= checked_at + self.check_sec:
                    if not await self._may_read(viewer, feed):
                        return
                    checked_at = _now()

    async def _wait(self, follower: FeedFollower, sequence: int) -> bool:
        """Wait for events after ``sequence``; return whether there are any."""
        deadline = _now() + self.newline_sec
        while (left_sec := deadline - _now()) > 0:
            if follower.head is not None and follower.head.last_sequence > sequence:
                return True
            await follower.wait(left_sec)
        return False

    async def _read_all(self, feed: FeedRow, version: CcsVersion, sequence: int) -> AsyncGenerator[str, None]:
        while events := await self._read(feed, sequence):
            sequence = events[-1].sequence
            yield encode_lines(feed.id, events, version)

    async def _read(self, feed: FeedRow, sequence: int) -> list[StoredEvent]:
        return await self.database.read(lambda tx: feeds.after(tx, feed.id, sequence, limit=_BATCH))

    async def _wait_until_present(self, feed: FeedRow) -> None:
        """Wait until the feed contains everything up to the request."""
        deadline = _now() + self.present_sec
        with self.watcher.subscribe(feed.id) as follower:
            while follower.head is None or follower.head.served < feed.requests:
                left_sec = deadline - _now()
                if left_sec <= 0:
                    raise Unavailable("The event feed is not being filled: is a scheduler running?")
                await follower.wait(left_sec)

    async def _may_read(self, viewer: Viewer, feed: FeedRow) -> bool:
        """Whether the viewer may still read this view; a viewer who may see more keeps it."""
        try:
            found = await self.access.find(viewer, feed.contest_id)
        except NotFound:
            return False
        return feed_view(found).rank >= FeedView(feed.view).rank


def feed_view(found: ContestView) -> FeedView:
    """The view that a viewer's feed shows.

    The feed follows the clock of the contest, so a participant with an own clock (window, delay, virtual run) gets the
    view of visitors: that of participants could be ahead of the own clock.
    """
    if found.sees_all:
        return FeedView.JURY
    clocks = [participant_clock(item) for item in found.participants]
    has_own_clock = found.times.timeline.window_us is not None or any(
        item.delay_us or item.is_virtual for item in clocks
    )
    return FeedView.PARTICIPANT if clocks and not has_own_clock else FeedView.VISITOR


def encode_lines(feed_id: str, events: Iterable[StoredEvent], version: CcsVersion) -> str:
    """Events as lines; those that a version cannot express are left out."""
    return "".join(line for event in events if (line := _encode(feed_id, event, version)) is not None)


def _encode(feed_id: str, event: StoredEvent, version: CcsVersion) -> str | None:
    collection = CcsCollection(event.collection)
    data = event.data
    if data is not None and version is not CcsVersion.V2026_01:
        converted = convert(collection, json.loads(data), version)
        if converted is None and collection is not CcsCollection.JUDGEMENTS:
            return None
        # A judgement that is no longer the current one is deleted in versions that have one for each submission.
        data = None if converted is None else json.dumps(converted, ensure_ascii=False, separators=(",", ":"))
    object_id = None if collection in _SINGLETONS else event.object_id
    token, name = format_token(feed_id, event.sequence), json.dumps(object_id)
    return f'{{"token":"{token}","type":"{collection}","id":{name},"data":{data or "null"}}}\n'


def _now() -> float:
    return asyncio.get_running_loop().time()
