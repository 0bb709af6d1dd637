"""The event stream of a user: own submissions, and the contests that the user takes part in.

Two logs are read, so the id of an event has an offset in each, from which a reader resumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from adjudge.services.contest_events import describe_entries
from adjudge.services.event_feed import EventFeed, SharedEvent
from adjudge.services.submission_events import (
    BEAT,
    BEAT_SEC,
    READ_LIMIT,
    TOO_SLOW,
    Stream,
    StreamEvent,
    SubmissionEventService,
)
from adjudge.services.viewer import Viewer
from adjudge.store import Database
from adjudge.store.contests import event_log
from adjudge.store.contests.event_log import ContestEventEntry
from adjudge.store.judging import events
from adjudge.store.judging.events import EventFilter, EventOffset, SubmissionStatusEvent, parse_event_offset

_SEPARATOR: Final = "_"


@dataclass(slots=True)
class UserOffset:
    """How far a reader has read both logs: all entries below these offsets."""

    submissions: EventOffset
    contests: EventOffset

    def __str__(self) -> str:
        """The id of an event in HTTP."""
        return f"{self.submissions}{_SEPARATOR}{self.contests}"


def parse_user_offset(text: str) -> tuple[EventOffset, EventOffset | None]:
    """The offsets to resume from; the id of another stream has none of the log of contests."""
    submissions, separator, contests = text.partition(_SEPARATOR)
    if not separator:
        return parse_event_offset(text).next, None
    return parse_event_offset(submissions), parse_event_offset(contests)


@dataclass(frozen=True, slots=True)
class UserEventService:
    """Streams the events of users: first the missed ones from the database, then live ones."""

    database: Database
    feed: EventFeed
    submissions: SubmissionEventService

    async def stream(self, viewer: Viewer, last_event_id: str | None) -> Stream:
        """All events of a user, from now on or from ``last_event_id``."""
        start = parse_user_offset(last_event_id) if last_event_id else (None, None)
        return self._stream(viewer, *start)

    async def _stream(self, viewer: Viewer, start: EventOffset | None, contests_start: EventOffset | None) -> Stream:
        """Subscribe first, then read the missed events: an event that arrives by both ways is sent once."""
        which = EventFilter(user_id=viewer.id)
        async with self.feed.subscribe(which) as subscription:
            end = await self.database.read(events.safe_offset)
            contests_end = await self.database.read(event_log.safe_offset)
            now = UserOffset(min(start or end, end), min(contests_start or contests_end, contests_end))
            while now.submissions < end:
                missed = await self.submissions.read_missed(which, now.submissions, end)
                yield await self._describe(viewer, [SharedEvent(item) for item in missed], now)
                now.submissions = missed[-1].offset.next if len(missed) == READ_LIMIT else end
            while entries := await self._missed_entries(viewer, now.contests):
                yield await self._describe(viewer, [SharedEvent(item) for item in entries], now)
                now.contests = entries[-1].offset.next
            yield [BEAT]
            while not subscription.is_lost:
                received = await subscription.read(BEAT_SEC)
                batch = await self._describe(viewer, [item for item in received if _is_new(item, now)], now)
                if batch or not received:
                    yield batch or [BEAT]
        yield [TOO_SLOW]

    async def _missed_entries(self, viewer: Viewer, start: EventOffset) -> list[ContestEventEntry]:
        return await self.database.read(lambda tx: event_log.read_since(tx, start, limit=READ_LIMIT, user_id=viewer.id))

    async def _describe(self, viewer: Viewer, items: Sequence[SharedEvent], now: UserOffset) -> list[StreamEvent]:
        """What the viewer may see of events, in their order, and the offset after each in its id."""
        shown = {id(item): event for item, event in await self.submissions.describe(viewer, items, sees_all=False)}
        entries = [item.event for item in items if isinstance(item.event, ContestEventEntry)]
        described = await self.database.read(lambda tx: describe_entries(tx, viewer, entries)) if entries else {}
        found = []
        for item in items:
            event = shown.get(id(item))
            if isinstance(item.event, ContestEventEntry):
                now.contests = item.event.offset.next
                if item.event.offset in described:
                    event = StreamEvent(*described[item.event.offset])
            elif isinstance(item.event, SubmissionStatusEvent):
                now.submissions = item.event.offset.next
            if event is not None:
                found.append(event if event.name == "progress" else replace(event, id=str(now)))
        return found


def _is_new(item: SharedEvent, now: UserOffset) -> bool:
    """Whether an event was not among the missed ones."""
    if isinstance(item.event, ContestEventEntry):
        return item.event.offset >= now.contests
    return not isinstance(item.event, SubmissionStatusEvent) or item.event.offset >= now.submissions
