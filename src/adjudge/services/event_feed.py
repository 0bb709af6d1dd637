"""The event feed: one reader per process that serves every event stream and every waiting request.

It reads the changes since its last read, triggered by notifications and by a poll, and passes them to the matching
subscribers. A thousand streams cost the database one query. A subscriber that reads too slowly is dropped; it
reconnects with the id of the last event that it received.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.store import Database, Tx
from adjudge.store.contests import event_log
from adjudge.store.contests.event_log import ContestEventEntry
from adjudge.store.engine.notify import CHANNEL_JUDGING, Wakeup
from adjudge.store.judging import events
from adjudge.store.judging.events import EventFilter, EventOffset, JudgeProgressEvent, SubmissionStatusEvent

Event = SubmissionStatusEvent | JudgeProgressEvent
UserEvent = Event | ContestEventEntry
"""What the stream of a user is about: own submissions, and contests that the user takes part in."""
W = TypeVar("W")
E = TypeVar("E")

_POLL_MS: Final = 1_000
_PAUSE_SEC: Final = 0.02
"""Pause between two reads, so that a thousand commits per second cause at most fifty reads."""
_QUEUE: Final = 256
_READ_LIMIT: Final = 1_000
_OVERLAP_US: Final = 2_000_000
"""Progress is read by its timestamp; the overlap also finds rows that were committed late."""

_log = get_logger(__name__)


class SharedEvent:
    """An event that all subscribers share, so that it is encoded once for each view."""

    def __init__(self, event: UserEvent) -> None:
        self.event = event
        self._encoded: dict[bool, Any] = {}

    def encoded(self, view: bool, write: Callable[[Any, bool], W]) -> W:
        """The event encoded by ``write`` for a view; cached."""
        if view not in self._encoded:
            self._encoded[view] = write(self.event, view)
        known: W = self._encoded[view]
        return known


class FeedSubscription(Generic[E]):
    """The unread events of one subscriber."""

    def __init__(self) -> None:
        self._unread: list[E] = []
        self._has_events = asyncio.Event()
        self.is_lost = False

    def put(self, event: E) -> None:
        """Append an event; drop the subscriber if its queue is full."""
        if len(self._unread) >= _QUEUE:
            self.close()
        else:
            self._unread.append(event)
            self._has_events.set()

    def close(self) -> None:
        self.is_lost = True
        self._has_events.set()

    async def read(self, timeout_sec: float) -> list[E]:
        """All unread events; empty if none arrived within the timeout."""
        if not self._unread:
            self._has_events.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_sec):
                    await self._has_events.wait()
        taken, self._unread = self._unread, []
        return taken


@dataclass(frozen=True, slots=True)
class _FeedQuery:
    """One read of the feed. Created on the event loop, because the read may run in another thread."""

    start: EventOffset | None
    """Read status events from this offset; None if there are no subscribers."""
    steps_since: int | None
    submissions: tuple[str, ...]
    jobs: tuple[str, ...]
    changed_since: EventOffset | None = None
    """Report changes to the cache from this offset; None if the cache holds no status."""
    contests_since: EventOffset | None = None
    """Read entries of contests from this offset; None if no user has a stream."""
    user_ids: tuple[str, ...] = ()
    """Users who have a stream."""

    async def ask(self, tx: Tx) -> _FeedBatch:
        """Read everything in one snapshot."""
        ended = await events.find_finished_submissions(tx, self.submissions) | await events.find_finished_jobs(
            tx, self.jobs
        )
        if self.start is None and self.changed_since is None:
            return _FeedBatch(None, ended)
        end = await events.safe_offset(tx)
        look = _FeedBatch(None, ended)
        if self.changed_since is not None:
            changed = await events.changed_since(tx, self.changed_since, limit=_READ_LIMIT)
            look = replace(look, changed=changed, reported_to=end)
        if self.contests_since is not None:
            look = await self._read_contests(tx, look, self.contests_since)
        return look if self.start is None else await self._read_events(tx, look, self.start, end)

    async def _read_contests(self, tx: Tx, look: _FeedBatch, start: EventOffset) -> _FeedBatch:
        entries = await event_log.read_since(tx, start, limit=_READ_LIMIT)
        contest_ids = {item.contest_id for item in entries if item.submission_id is None}
        submission_ids = {item.submission_id for item in entries if item.submission_id is not None}
        members = await event_log.find_members(tx, contest_ids, self.user_ids)
        owners = await event_log.find_owners(tx, submission_ids)
        return replace(look, entries=entries, recipients={**members, **owners})

    async def _read_events(self, tx: Tx, look: _FeedBatch, start: EventOffset, end: EventOffset) -> _FeedBatch:
        changes = await events.read_between(tx, EventFilter(), start, end, limit=_READ_LIMIT)
        if len(changes) == _READ_LIMIT:
            end = changes[-1].offset.next
        steps = await events.progress_since(tx, self.steps_since)
        return replace(look, end=end, changes=changes, steps=steps)


@dataclass(frozen=True, slots=True)
class _FeedBatch:
    """The result of one read."""

    end: EventOffset | None
    ended: set[str]
    changes: Sequence[SubmissionStatusEvent] = ()
    steps: Sequence[JudgeProgressEvent] = ()
    changed: Collection[str] = ()
    reported_to: EventOffset | None = None
    entries: Sequence[ContestEventEntry] = ()
    recipients: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Users whom entries may concern: by submission for verdicts, by contest for the others."""


class EventFeed:
    """The reader of one process. It reads only while there are subscribers, waiting requests or cached statuses."""

    def __init__(self, database: Database, *, poll_ms: int = _POLL_MS) -> None:
        self._database = database
        self._poll_ms = poll_ms
        self._subscribers: dict[EventFilter, set[FeedSubscription[SharedEvent]]] = defaultdict(set)
        self._waiters: dict[tuple[str, str], set[asyncio.Future[None]]] = defaultdict(set)
        self._wakeup = Wakeup()
        self._reader: asyncio.Task[None] | None = None
        self._offset: EventOffset | None = None
        self._contests_since: EventOffset | None = None
        self._steps_seen: dict[str, tuple[int, int, str]] = {}
        self._steps_since: int | None = None
        self._changed_since: EventOffset | None = None
        self._report_until = float("-inf")
        self._report: Callable[[str], None] | None = None

    async def report_changes(self, report: Callable[[str], None], for_sec: float) -> None:
        """Call ``report`` with the id of every submission that changes in the next ``for_sec`` seconds.

        Call it before reading the data to be cached: a change that this read does not see is then reported. A repeated
        call extends the time.
        """
        self._report = report
        self._report_until = asyncio.get_running_loop().time() + for_sec
        if self._changed_since is None:
            place = await self._database.read(events.safe_offset)
            if self._changed_since is None:
                self._changed_since = place
        self._start()

    @asynccontextmanager
    async def subscribe(self, which: EventFilter) -> AsyncIterator[FeedSubscription[SharedEvent]]:
        """Receive all events from now on; to get earlier ones, read them from the database inside the block."""
        if self._offset is None:
            place = await self._database.read(events.safe_offset)
            if self._offset is None:  # a concurrent subscriber may have set it: moving it forward would lose events
                self._offset = place
        if which.user_id is not None and self._contests_since is None:
            place = await self._database.read(event_log.safe_offset)
            if self._contests_since is None:
                self._contests_since = place
        subscription = FeedSubscription[SharedEvent]()
        self._subscribers[which].add(subscription)
        self._start()
        try:
            yield subscription
        finally:
            self._subscribers[which].discard(subscription)
            if not self._subscribers[which]:
                del self._subscribers[which]

    async def wait_submission_finished(self, submission_id: str, timeout_sec: float) -> bool:
        """Wait until the submission is finished; return whether it is."""
        return await self._wait_finished("submission", submission_id, timeout_sec)

    async def wait_job_finished(self, job_id: str, timeout_sec: float) -> bool:
        """Wait until the job is finished; return whether it is."""
        return await self._wait_finished("job", job_id, timeout_sec)

    @property
    def waiter_count(self) -> int:
        """The number of objects that requests wait for."""
        return len(self._waiters)

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    async def _wait_finished(self, kind: str, object_id: str, timeout_sec: float) -> bool:
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[kind, object_id].add(ended)
        self._start()
        self._wakeup.set()  # it may be finished already
        try:
            async with asyncio.timeout(timeout_sec):
                await ended
        except TimeoutError:
            return False
        finally:
            self._waiters[kind, object_id].discard(ended)
            if not self._waiters[kind, object_id]:
                del self._waiters[kind, object_id]
        return True

    def _start(self) -> None:
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._poll_loop(), name="tail")

    async def _poll_loop(self) -> None:
        unlisten = self._database.listen(CHANNEL_JUDGING, self._wakeup.set)
        outage = Outage(_log, "event_feed_retrying")
        try:
            while self._subscribers or self._waiters or self._is_reporting():
                self._wakeup.clear()
                try:
                    self._dispatch(await self._database.read(self._next_query().ask))
                    outage.over()
                except Unavailable as error:
                    await asyncio.sleep(outage.failed(error))
                    self._wakeup.set()
                await asyncio.sleep(_PAUSE_SEC)
                await self._wakeup.wait(self._poll_ms)
        except Exception:  # noqa: BLE001 — subscribers are dropped below, and the next one restarts the reader
            _log.exception("event_feed_failed")
        finally:
            unlisten()
            self._reset()
            self._changed_since = None
            for subscription in [each for watchers in self._subscribers.values() for each in watchers]:
                subscription.close()  # no reader serves it any more

    def _next_query(self) -> _FeedQuery:
        if not self._subscribers:
            self._reset()
        waited = {kind: tuple(it for of, it in self._waiters if of == kind) for kind in ("submission", "job")}
        if not self._is_reporting():
            self._changed_since = None
        user_ids = tuple(which.user_id for which in self._subscribers if which.user_id is not None)
        if not user_ids:
            self._contests_since = None
        return _FeedQuery(
            self._offset,
            self._steps_since,
            waited["submission"],
            waited["job"],
            self._changed_since,
            self._contests_since,
            user_ids,
        )

    def _is_reporting(self) -> bool:
        return asyncio.get_running_loop().time() < self._report_until

    def _reset(self) -> None:
        """Forget the offset; the next subscriber starts at the current end of the log."""
        self._offset, self._contests_since, self._steps_seen, self._steps_since = None, None, {}, None

    def _dispatch(self, look: _FeedBatch) -> None:
        if look.end is not None:
            self._offset = look.end
        if len(look.changes) == _READ_LIMIT:
            self._wakeup.set()  # there is more to read
        self._report_to_cache(look)
        for change in look.changes:
            self._publish(change)
        for step in self._new_progress(look.steps):
            self._publish(step)
        self._publish_entries(look)
        self._notify_waiters(look.ended)

    def _report_to_cache(self, look: _FeedBatch) -> None:
        if look.reported_to is not None:
            self._changed_since = look.reported_to
        if self._report is not None:
            for submission_id in look.changed:
                self._report(submission_id)

    def _notify_waiters(self, ended: Collection[str]) -> None:
        for (_, object_id), waiters in list(self._waiters.items()):
            if object_id in ended:
                for waiter in waiters:
                    if not waiter.done():
                        waiter.set_result(None)

    def _new_progress(self, steps: Sequence[JudgeProgressEvent]) -> list[JudgeProgressEvent]:
        seen = {step.job_id: (step.updated_at, step.done, step.stage) for step in steps}
        new = [step for step in steps if self._steps_seen.get(step.job_id) != seen[step.job_id]]
        self._steps_seen = seen
        if steps:
            self._steps_since = max(step.updated_at for step in steps) - _OVERLAP_US
        return new

    def _publish_entries(self, look: _FeedBatch) -> None:
        if not look.entries:
            return
        self._contests_since = look.entries[-1].offset.next
        if len(look.entries) == _READ_LIMIT:
            self._wakeup.set()  # there is more to read
        for entry in look.entries:
            shared = SharedEvent(entry)
            for user_id in look.recipients.get(entry.submission_id or entry.contest_id, ()):
                for subscription in self._subscribers.get(EventFilter(user_id=user_id), ()):
                    subscription.put(shared)

    def _publish(self, event: Event) -> None:
        shared = SharedEvent(event)
        for which in (
            EventFilter(submission_id=event.submission_id),
            EventFilter(user_id=event.user_id),
            EventFilter(),
        ):
            for subscription in self._subscribers.get(which, ()):
                subscription.put(shared)
