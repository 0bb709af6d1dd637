"""Keeps the scoreboards that somebody looks at in memory, and passes their changes to open streams.

One reader per process follows the scoreboard log, triggered by notifications and by a poll: a thousand open scoreboards
cost the database one query. An entry changes one row. After a ``reset`` a board is read again, and also after a change
of participants, then at most once per second.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from adjudge.contests.board import BoardRow
from adjudge.contests.live_board import ALL_ROWS, BoardFilter, LiveBoard, RowChange
from adjudge.contests.load_board import load_board
from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.services.event_feed import FeedSubscription
from adjudge.store import Database, Tx
from adjudge.store.contests import queries, scoreboard_log
from adjudge.store.contests.scoreboard_log import ScoreboardLogEntry
from adjudge.store.engine.notify import CHANNEL_SCOREBOARD, Wakeup
from adjudge.store.judging.events import EventOffset

_POLL_MS: Final = 1_000
_PAUSE_SEC: Final = 0.02
"""Pause between two reads, so that a thousand verdicts per second cause at most fifty reads."""
_READ_LIMIT: Final = 1_000
_KEEP_SEC: Final = 300.0
"""How long a board that nobody asks for stays in memory."""
_RELOAD_PAUSE_SEC: Final = 1.0

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class BoardKey:
    """Identifies a board: the view of its cells, and whether it has hidden participants and testers."""

    contest_id: str
    view: str
    is_complete: bool


@dataclass(frozen=True, slots=True)
class BoardTopic:
    """What a stream follows: the rows of a filter, or one row."""

    key: BoardKey
    which: BoardFilter = ALL_ROWS
    participant_id: str | None = None

    def matches(self, row: BoardRow) -> bool:
        """Whether changes of a row belong to it."""
        if self.participant_id is not None:
            return self.participant_id == row.participant.id
        return self.which.matches(row.participant)


@dataclass(frozen=True, slots=True)
class BoardEvent:
    """A change of a board: a row, or everything. The topic shares ``text``, which is encoded once."""

    offset: EventOffset
    text: str | None
    """None: read everything again."""


EncodeChange = Callable[[LiveBoard, BoardTopic, RowChange], str]
Subscription = FeedSubscription[BoardEvent]


class _CachedBoard:
    def __init__(self, board: LiveBoard, now: float) -> None:
        self.board = board
        self.used_at = now
        self.loaded_at = now
        self.reload_at: float | None = None
        """When to read it again; None if it is up to date."""


class ScoreboardFeed:
    """The boards of one process."""

    def __init__(self, database: Database, encode: EncodeChange, *, poll_ms: int = _POLL_MS) -> None:
        self._database = database
        self._encode = encode
        self._poll_ms = poll_ms
        self._boards: dict[BoardKey, _CachedBoard] = {}
        self._loading: dict[BoardKey, asyncio.Task[LiveBoard]] = {}
        self._subscribers: dict[BoardTopic, set[Subscription]] = defaultdict(set)
        self._wakeup = Wakeup()
        self._reader: asyncio.Task[None] | None = None
        self._reading = asyncio.Lock()

    async def board(self, key: BoardKey) -> LiveBoard:
        """The board in memory; it is read from the database if it is not."""
        known = self._boards.get(key)
        if known is not None:
            known.used_at = _now()
            return known.board
        if key not in self._loading:
            self._loading[key] = asyncio.create_task(self._load(key), name="scoreboard-load")
        return await asyncio.shield(self._loading[key])

    async def _load(self, key: BoardKey) -> LiveBoard:
        try:
            board = await self._database.read(lambda tx: read_live_board(tx, key))
            self._boards[key] = _CachedBoard(board, _now())
            self._start()
            return board
        finally:
            del self._loading[key]

    @asynccontextmanager
    async def subscribe(self, topics: Iterable[BoardTopic]) -> AsyncIterator[Subscription]:
        """Receive the changes of topics from now on."""
        subscription = Subscription()
        async with AsyncExitStack() as stack:
            for topic in topics:
                stack.enter_context(self._registered(topic, subscription))
                await self.board(topic.key)
            yield subscription

    @contextmanager
    def _registered(self, topic: BoardTopic, subscription: Subscription) -> Iterator[None]:
        self._subscribers[topic].add(subscription)
        try:
            yield
        finally:
            self._subscribers[topic].discard(subscription)
            if not self._subscribers[topic]:
                del self._subscribers[topic]

    @property
    def board_count(self) -> int:
        """The number of boards in memory."""
        return len(self._boards)

    async def catch_up(self) -> None:
        """Apply everything that is committed and below the safe offset."""
        while not await self._read_once():
            pass

    async def close(self) -> None:
        """Stop reading."""
        tasks = [*self._loading.values(), *([self._reader] if self._reader else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self) -> None:
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._poll_loop(), name="scoreboard-feed")

    async def _poll_loop(self) -> None:
        unlisten = self._database.listen(CHANNEL_SCOREBOARD, self._wakeup.set)
        outage = Outage(_log, "scoreboard_feed_retrying")
        try:
            while self._boards:
                self._wakeup.clear()
                try:
                    if not await self._read_once():
                        self._wakeup.set()  # there is more to read
                    outage.over()
                except Unavailable as error:
                    await asyncio.sleep(outage.failed(error))
                    self._wakeup.set()
                await asyncio.sleep(_PAUSE_SEC)
                await self._wakeup.wait(self._poll_ms)
                self._drop_unused()
        except Exception:  # noqa: BLE001 — the next request reads the boards again
            _log.exception("scoreboard_feed_failed")
        finally:
            unlisten()
            self._boards.clear()
            for subscription in {each for watchers in self._subscribers.values() for each in watchers}:
                subscription.close()  # no reader serves it any more

    async def _read_once(self) -> bool:
        """Apply the next entries; return whether there are no more."""
        async with self._reading:
            if not self._boards:
                return True
            start = min(item.board.offset for item in self._boards.values())
            end, entries = await self._database.read(lambda tx: _read_entries(tx, start))
            for key, cached in list(self._boards.items()):
                self._apply(key, cached, [item for item in entries if item.contest_id == key.contest_id])
                cached.board.offset = max(cached.board.offset, end)
            await self._reload_due()
            return len(entries) < _READ_LIMIT

    def _apply(self, key: BoardKey, cached: _CachedBoard, entries: Sequence[ScoreboardLogEntry]) -> None:
        for entry in entries:
            if entry.offset < cached.board.offset:
                continue
            if entry.kind == "cells":
                for change in cached.board.apply(entry):
                    self._publish_row(key, cached.board, change, entry.offset)
            elif entry.kind != "submission":  # its cells have an entry of their own if they changed
                pause_sec = 0.0 if entry.kind == "reset" else _RELOAD_PAUSE_SEC
                due = max(_now(), cached.loaded_at + pause_sec)
                cached.reload_at = due if cached.reload_at is None else min(cached.reload_at, due)

    async def _reload_due(self) -> None:
        for key, cached in list(self._boards.items()):
            if cached.reload_at is None or cached.reload_at > _now():
                continue
            board = await self._database.read(partial(read_live_board, key=key))
            fresh = _CachedBoard(board, _now())
            fresh.used_at = cached.used_at
            self._boards[key] = fresh
            self._publish_reload(key, cached.board, board)

    def _publish_reload(self, key: BoardKey, before: LiveBoard, after: LiveBoard) -> None:
        """Let streams start again, unless the change concerned nothing that the board shows."""
        if before.last == after.last and before.is_same(after):
            return
        for topic in [item for item in self._subscribers if item.key == key]:
            self._publish(topic, BoardEvent(after.last, None))

    def _publish_row(self, key: BoardKey, board: LiveBoard, change: RowChange, offset: EventOffset) -> None:
        for topic in [item for item in self._subscribers if item.key == key and item.matches(change.row)]:
            self._publish(topic, BoardEvent(offset, self._encode(board, topic, change)))

    def _publish(self, topic: BoardTopic, event: BoardEvent) -> None:
        for subscription in self._subscribers[topic]:
            subscription.put(event)

    def _drop_unused(self) -> None:
        watched = {topic.key for topic in self._subscribers}
        for key, cached in list(self._boards.items()):
            if key in watched:
                cached.used_at = _now()
            elif cached.used_at < _now() - _KEEP_SEC:
                del self._boards[key]


async def read_live_board(tx: Tx, key: BoardKey) -> LiveBoard:
    """Read a board from the database."""
    contest = await queries.find_contest(tx, key.contest_id)
    loaded = await load_board(tx, contest, key.view)
    last = await scoreboard_log.last_offset(
        tx, key.contest_id, loaded.offset, view=key.view, is_complete=key.is_complete
    )
    return LiveBoard(loaded, view=key.view, is_complete=key.is_complete, last=last)


async def _read_entries(tx: Tx, start: EventOffset) -> tuple[EventOffset, list[ScoreboardLogEntry]]:
    end = await scoreboard_log.safe_offset(tx)
    entries = await scoreboard_log.read_between(tx, start, end, limit=_READ_LIMIT)
    return (entries[-1].offset.next if len(entries) == _READ_LIMIT else end), entries


def _now() -> float:
    return asyncio.get_running_loop().time()
