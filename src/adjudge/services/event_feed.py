"""The event feed: one reader per process that serves every event stream and every waiting request.

It reads what changed since its last read, woken by notifications and by a poll, and passes it to the subscribers that
it concerns. A thousand streams cost the database one query. A subscriber that reads too slowly is dropped; it
reconnects with the id of the last event that it received.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.store import Database, Tx
from adjudge.store.engine.notify import CHANNEL_JUDGING, Wakeup
from adjudge.store.judging import events
from adjudge.store.judging.events import EventFilter, EventOffset, JudgeProgressEvent, SubmissionStatusEvent

Event = SubmissionStatusEvent | JudgeProgressEvent
W = TypeVar("W")

_POLL_MS: Final = 1_000
_REST_SEC: Final = 0.02
"""Between two looks, so that a thousand commits a second cause no more than fifty."""
_QUEUE: Final = 256
_READ_LIMIT: Final = 1_000
_OVERLAP_US: Final = 2_000_000
"""Progress is found by its time; a report that was committed late is found all the same."""

_log = get_logger(__name__)


class SharedEvent:
    """An event as it is told, to all the same: whoever writes it out for one view does so for everybody."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self._written: dict[bool, Any] = {}

    def encoded(self, view: bool, write: Callable[[Event, bool], W]) -> W:
        """The event as ``write`` has it for a view."""
        if view not in self._written:
            self._written[view] = write(self.event, view)
        known: W = self._written[view]
        return known


class FeedSubscription:
    """What one watcher has not read yet."""

    def __init__(self) -> None:
        self._unread: list[SharedEvent] = []
        self._something = asyncio.Event()
        self.is_lost = False

    def put(self, told: SharedEvent) -> None:
        """Keep an event, or give the watcher up."""
        if len(self._unread) >= _QUEUE:
            self.close()
        else:
            self._unread.append(told)
            self._something.set()

    def close(self) -> None:
        """Let the watcher go; it comes back for what it has not seen."""
        self.is_lost = True
        self._something.set()

    async def read(self, timeout_sec: float) -> list[SharedEvent]:
        """Everything that is unread; nothing if nothing came in time."""
        if not self._unread:
            self._something.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_sec):
                    await self._something.wait()
        taken, self._unread = self._unread, []
        return taken


@dataclass(frozen=True, slots=True)
class _FeedQuery:
    """What one look asks the store; made on the event loop, because the look may run on another thread."""

    start: EventOffset | None
    """Where the tail was read up to; nothing while nobody watches it."""
    steps_since: int | None
    submissions: tuple[str, ...]
    jobs: tuple[str, ...]
    changed_since: EventOffset | None = None
    """From where on changes are reported to the cache; nothing while it holds no status."""

    async def ask(self, tx: Tx) -> _FeedBatch:
        """Look, in one snapshot."""
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
        return look if self.start is None else await self._told(tx, look, self.start, end)

    async def _told(self, tx: Tx, look: _FeedBatch, start: EventOffset, end: EventOffset) -> _FeedBatch:
        changes = await events.read_between(tx, EventFilter(), start, end, limit=_READ_LIMIT)
        if len(changes) == _READ_LIMIT:
            end = changes[-1].offset.next
        steps = await events.progress_since(tx, self.steps_since)
        return replace(look, end=end, changes=changes, steps=steps)


@dataclass(frozen=True, slots=True)
class _FeedBatch:
    """What one look at the store found."""

    end: EventOffset | None
    ended: set[str]
    changes: Sequence[SubmissionStatusEvent] = ()
    steps: Sequence[JudgeProgressEvent] = ()
    changed: Collection[str] = ()
    reported_to: EventOffset | None = None


class EventFeed:
    """The reader of one process. It reads only while somebody watches or waits."""

    def __init__(self, database: Database, *, poll_ms: int = _POLL_MS) -> None:
        self._database = database
        self._poll_ms = poll_ms
        self._watchers: dict[EventFilter, set[FeedSubscription]] = defaultdict(set)
        self._waiters: dict[tuple[str, str], set[asyncio.Future[None]]] = defaultdict(set)
        self._wakeup = Wakeup()
        self._reader: asyncio.Task[None] | None = None
        self._place: EventOffset | None = None
        self._steps_seen: dict[str, tuple[int, int, str]] = {}
        self._steps_since: int | None = None
        self._changed_since: EventOffset | None = None
        self._report_until = float("-inf")
        self._report: Callable[[str], None] | None = None

    async def report_changes(self, report: Callable[[str], None], for_sec: float) -> None:
        """Call ``report`` with the id of every submission that changes in the next ``for_sec`` seconds.

        Call it before reading what would become stale: a change that the read does not see is then reported. Whoever
        calls it again while it lasts only makes it last longer.
        """
        self._report = report
        self._report_until = asyncio.get_running_loop().time() + for_sec
        if self._changed_since is None:
            place = await self._database.read(events.safe_offset)
            if self._changed_since is None:
                self._changed_since = place
        self._start()

    @asynccontextmanager
    async def subscribe(self, which: EventFilter) -> AsyncIterator[FeedSubscription]:
        """Hear of everything from now on; whoever wants what was before reads it inside the block, after this."""
        if self._place is None:
            place = await self._database.read(events.safe_offset)
            if self._place is None:  # whoever was quicker has begun to read there: moving it on would lose events
                self._place = place
        subscription = FeedSubscription()
        self._watchers[which].add(subscription)
        self._start()
        try:
            yield subscription
        finally:
            self._watchers[which].discard(subscription)
            if not self._watchers[which]:
                del self._watchers[which]

    async def wait_submission_finished(self, submission_id: str, timeout_sec: float) -> bool:
        """Wait for a verdict; whether there is one."""
        return await self._until("submission", submission_id, timeout_sec)

    async def wait_job_finished(self, job_id: str, timeout_sec: float) -> bool:
        """Wait for a job to end; whether it has."""
        return await self._until("job", job_id, timeout_sec)

    @property
    def waiter_count(self) -> int:
        """How many things are waited for."""
        return len(self._waiters)

    async def close(self) -> None:
        """Stop reading."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    async def _until(self, kind: str, object_id: str, timeout_sec: float) -> bool:
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[kind, object_id].add(ended)
        self._start()
        self._wakeup.set()  # it may have ended already
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
            while self._watchers or self._waiters or self._reports():
                self._wakeup.clear()
                try:
                    self._dispatch(await self._database.read(self._next_query().ask))
                    outage.over()
                except Unavailable as error:
                    await asyncio.sleep(outage.failed(error))
                    self._wakeup.set()
                await asyncio.sleep(_REST_SEC)
                await self._wakeup.wait(self._poll_ms)
        except Exception:  # noqa: BLE001 — whoever watches is let go below, and whoever comes next starts it anew
            _log.exception("event_feed_failed")
        finally:
            unlisten()
            self._reset()
            self._changed_since = None
            for subscription in [each for watchers in self._watchers.values() for each in watchers]:
                subscription.close()  # nobody reads for it any more

    def _next_query(self) -> _FeedQuery:
        if not self._watchers:
            self._reset()
        waited = {kind: tuple(it for of, it in self._waiters if of == kind) for kind in ("submission", "job")}
        if not self._reports():
            self._changed_since = None
        return _FeedQuery(self._place, self._steps_since, waited["submission"], waited["job"], self._changed_since)

    def _reports(self) -> bool:
        return asyncio.get_running_loop().time() < self._report_until

    def _reset(self) -> None:
        """Nobody watches: whoever comes next begins where the tail is then."""
        self._place, self._steps_seen, self._steps_since = None, {}, None

    def _dispatch(self, look: _FeedBatch) -> None:
        if look.end is not None:
            self._place = look.end
        if len(look.changes) == _READ_LIMIT:
            self._wakeup.set()  # there is more
        self._tell_cache(look)
        for change in look.changes:
            self._publish(change)
        for step in self._new_steps(look.steps):
            self._publish(step)
        self._tell_waiters(look.ended)

    def _tell_cache(self, look: _FeedBatch) -> None:
        if look.reported_to is not None:
            self._changed_since = look.reported_to
        if self._report is not None:
            for submission_id in look.changed:
                self._report(submission_id)

    def _tell_waiters(self, ended: Collection[str]) -> None:
        for (_, object_id), waiters in list(self._waiters.items()):
            if object_id in ended:
                for waiter in waiters:
                    if not waiter.done():
                        waiter.set_result(None)

    def _new_steps(self, steps: Sequence[JudgeProgressEvent]) -> list[JudgeProgressEvent]:
        seen = {step.job_id: (step.updated_at, step.done, step.stage) for step in steps}
        new = [step for step in steps if self._steps_seen.get(step.job_id) != seen[step.job_id]]
        self._steps_seen = seen
        if steps:
            self._steps_since = max(step.updated_at for step in steps) - _OVERLAP_US
        return new

    def _publish(self, event: Event) -> None:
        told = SharedEvent(event)
        for which in (
            EventFilter(submission_id=event.submission_id),
            EventFilter(user_id=event.user_id),
            EventFilter(),
        ):
            for subscription in self._watchers.get(which, ()):
                subscription.put(told)
