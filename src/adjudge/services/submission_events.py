"""Event streams: first the missed events, read from the database, then live ones from the event feed."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from adjudge.domain.timestamps import format_timestamp
from adjudge.judge.result_document import coarse_case
from adjudge.services import submissions
from adjudge.services.event_feed import Event, EventFeed
from adjudge.services.submissions import SubmissionService
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.judging import events
from adjudge.store.judging.events import START, EventFilter, EventOffset, JudgeProgressEvent, SubmissionStatusEvent

BEAT_SEC: Final = 15.0
_READ_LIMIT: Final = 500


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
        row = await self.submissions.get_submission_uncached(viewer, submission_id)
        sees_all = submissions.is_jury(viewer, row)
        start = events.parse_event_offset(last_event_id) if last_event_id else None
        # Read after the row: a change in between has a later offset, and the stream waits for it.
        committed = await self.database.read(lambda tx: events.find_last_offset(tx, submission_id))

        async def stream() -> Stream:
            last, sent, has_caught_up = row.status, start or START, False
            which = EventFilter(submission_id=submission_id)
            async with aclosing(self._stream(which, start.next if start else START, sees_all=sees_all)) as happening:
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

    async def stream_user(self, viewer: Viewer, last_event_id: str | None) -> Stream:
        """Events of the user's own submissions, from now on or from ``last_event_id``."""
        start = events.parse_event_offset(last_event_id).next if last_event_id else None
        return self._stream(EventFilter(user_id=viewer.id), start, sees_all=False)

    async def stream_all(self, last_event_id: str | None) -> Stream:
        """Events of all submissions, from now on or from ``last_event_id``."""
        start = events.parse_event_offset(last_event_id).next if last_event_id else None
        return self._stream(EventFilter(), start, sees_all=True)

    async def _stream(self, which: EventFilter, start: EventOffset | None, *, sees_all: bool) -> Stream:
        """Subscribe first, then read the missed events: an event that arrives by both ways is sent once."""
        async with self.feed.subscribe(which) as subscription:
            end = await self.database.read(events.safe_offset)
            while start is not None and start < end:
                missed = await self._replay(which, start, end)
                yield [_status(change) for change in missed]
                start = missed[-1].offset.next if len(missed) == _READ_LIMIT else end
            yield [BEAT]
            while not subscription.is_lost:
                received = await subscription.read(BEAT_SEC)
                batch = [item.encoded(sees_all, _encode) for item in received if not _already_replayed(item.event, end)]
                if batch or not received:
                    yield batch or [BEAT]
        yield [TOO_SLOW]

    async def _replay(
        self, which: EventFilter, start: EventOffset, end: EventOffset
    ) -> Sequence[SubmissionStatusEvent]:
        async def read(tx: Tx) -> Sequence[SubmissionStatusEvent]:
            return await events.read_between(tx, which, start, end, limit=_READ_LIMIT)

        return await self.database.read(read)


def _already_replayed(event: Event, end: EventOffset) -> bool:
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
