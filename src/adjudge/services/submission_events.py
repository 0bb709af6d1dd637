"""Event streams: first the missed events, read from the database, then live ones from the event feed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from adjudge.domain.timestamps import format_timestamp
from adjudge.judge.result_document import coarse_case
from adjudge.services import submissions
from adjudge.services.event_feed import Event, EventFeed, SharedEvent, UserEvent
from adjudge.services.submission_access import SubmissionRights
from adjudge.services.submissions import SubmissionService
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests.event_log import ContestEventEntry
from adjudge.store.judging import events
from adjudge.store.judging.events import START, EventFilter, EventOffset, JudgeProgressEvent, SubmissionStatusEvent

BEAT_SEC: Final = 15.0
READ_LIMIT: Final = 500


@dataclass(frozen=True)
class StreamEvent:
    """One server-sent event. Without a name it is a heartbeat; without an id a client cannot resume from it."""

    name: str = ""
    data: Mapping[str, Any] | None = None
    id: str | None = None

    @cached_property
    def text(self) -> str:
        """The encoded event, cached for all streams; a heartbeat is a comment."""
        if not self.name:
            return ": alive\n\n"
        named = f"id: {self.id}\n" if self.id is not None else ""
        return f"{named}event: {self.name}\ndata: {json.dumps(self.data, separators=(',', ':'))}\n\n"


Stream = AsyncGenerator[Sequence[StreamEvent], None]
"""Batches of events, as they arrive."""
BEAT: Final = StreamEvent()
TOO_SLOW: Final = StreamEvent("reconnect", {"reason": "slow_consumer"})


@dataclass(frozen=True, slots=True)
class SubmissionEventService:
    """Event streams of submissions: first the missed events from the database, then live ones."""

    database: Database
    feed: EventFeed
    submissions: SubmissionService

    async def stream_submission(self, viewer: Viewer, submission_id: str, last_event_id: str | None) -> Stream:
        """All events of one submission, from the first or from ``last_event_id``, until the submission is finished.

        The stream ends when the last committed change has been sent. The final status alone is not enough: while an
        older transaction is open, the event of the verdict is above the safe offset and cannot be sent yet.
        """
        row, rights = await self.submissions.find_with_rights(viewer, submission_id)
        if not rights.shows_judging:
            return _silence()
        start = events.parse_event_offset(last_event_id) if last_event_id else None
        # Read after the row: a change in between has a later offset, and the stream waits for it.
        committed = await self.database.read(lambda tx: events.find_last_offset(tx, submission_id))

        async def stream() -> Stream:
            last, sent, has_caught_up = row.status, start or START, False
            which = EventFilter(submission_id=submission_id)
            events_of = self._stream(viewer, which, start.next if start else START, sees_all=rights.is_jury)
            async with aclosing(events_of) as happening:
                async for batch in happening:
                    yield batch
                    for event in batch:
                        has_caught_up |= event is BEAT
                        if event.name == "status" and event.data is not None and event.id is not None:
                            last, sent = event.data["to"], events.parse_event_offset(event.id)
                    if has_caught_up and sent >= committed and submissions.is_finished(last):
                        yield [StreamEvent("end", {"submission_id": submission_id, "status": last})]
                        return

        return stream()

    async def stream_all(self, last_event_id: str | None) -> Stream:
        """Events of all submissions, from now on or from ``last_event_id``."""
        start = events.parse_event_offset(last_event_id).next if last_event_id else None
        return self._stream(None, EventFilter(), start, sees_all=True)

    async def _stream(
        self, viewer: Viewer | None, which: EventFilter, start: EventOffset | None, *, sees_all: bool
    ) -> Stream:
        """Subscribe first, then read the missed events: an event that arrives by both ways is sent once."""
        async with self.feed.subscribe(which) as subscription:
            end = await self.database.read(events.safe_offset)
            while start is not None and start < end:
                missed = await self.read_missed(which, start, end)
                yield [event for _, event in await self.describe(viewer, map(SharedEvent, missed), sees_all=sees_all)]
                start = missed[-1].offset.next if len(missed) == READ_LIMIT else end
            yield [BEAT]
            while not subscription.is_lost:
                received = await subscription.read(BEAT_SEC)
                new = [item for item in received if not _already_replayed(item.event, end)]
                batch = [event for _, event in await self.describe(viewer, new, sees_all=sees_all)]
                if batch or not received:
                    yield batch or [BEAT]
        yield [TOO_SLOW]

    async def describe(
        self, viewer: Viewer | None, happened: Iterable[SharedEvent], *, sees_all: bool
    ) -> list[tuple[SharedEvent, StreamEvent]]:
        """Those of the events that the viewer may see, as they are sent."""
        pairs = [(item, item.event) for item in happened if not isinstance(item.event, ContestEventEntry)]
        shown = await self._shown(viewer, [event for _, event in pairs], sees_all=sees_all)
        return [(item, item.encoded(sees_all, _encode)) for item, event in pairs if _is_shown(event, shown)]

    async def _shown(
        self, viewer: Viewer | None, happened: Sequence[Event], *, sees_all: bool
    ) -> Mapping[str, SubmissionRights] | None:
        """What the viewer may see of submissions of contests; None: everything. Nothing is read for others."""
        ids = {event.submission_id for event in happened if event.contest_id is not None}
        if viewer is None or sees_all or not ids:
            return None
        return await self.submissions.find_rights(viewer, [*ids])

    async def read_missed(
        self, which: EventFilter, start: EventOffset, end: EventOffset
    ) -> Sequence[SubmissionStatusEvent]:
        """The status changes between two offsets, ``READ_LIMIT`` at most."""

        async def read(tx: Tx) -> Sequence[SubmissionStatusEvent]:
            return await events.read_between(tx, which, start, end, limit=READ_LIMIT)

        return await self.database.read(read)


async def _silence() -> Stream:
    """The stream of a submission whose judging is hidden: it tells nothing, whatever happens."""
    while True:
        yield [BEAT]
        await asyncio.sleep(BEAT_SEC)


def _is_shown(event: Event, shown: Mapping[str, SubmissionRights] | None) -> bool:
    rights = None if shown is None else shown.get(event.submission_id)
    if rights is None:
        return shown is None or event.contest_id is None
    return rights.shows_judging if isinstance(event, SubmissionStatusEvent) else rights.shows_details


def _already_replayed(event: UserEvent, end: EventOffset) -> bool:
    """Whether the event was among the missed events that the stream started with."""
    return isinstance(event, SubmissionStatusEvent) and event.offset < end


def _encode(event: Event, sees_all: bool) -> StreamEvent:
    return _status(event) if isinstance(event, SubmissionStatusEvent) else _progress(event, sees_all=sees_all)


def _status(change: SubmissionStatusEvent) -> StreamEvent:
    data = {
        "submission_id": change.submission_id,
        "user_id": change.user_id,
        "problem_id": change.problem_id,
        "from": change.from_status,
        "to": change.to_status,
        "verdict": change.verdict,
        "version": change.version,
        "at": format_timestamp(change.at),
    }
    return StreamEvent("status", data, str(change.offset))


def _progress(made: JudgeProgressEvent, *, sees_all: bool) -> StreamEvent:
    """Progress has no id: a client that reconnects needs only the latest progress."""
    seen = made.cases if sees_all else [coarse_case(case) for case in made.cases if case.get("shown")]
    cases = [{key: value for key, value in case.items() if key != "shown"} for case in seen]
    data = {
        "submission_id": made.submission_id,
        "job_id": made.job_id,
        "attempt_id": made.attempt_id,
        "stage": made.stage,
        "done": made.done,
        "total": made.total,
        "cases": cases,
    }
    return StreamEvent("progress", data)
