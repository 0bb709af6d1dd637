"""Replays of contests for virtual runs: their histories in memory, boards at a time, and streams of changes.

The history of a contest is read once and shared by all virtual runs. It is read again when a row of the final
scoreboard changed, and after some minutes: a rejudge can change how a row came about without changing the row.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from adjudge.contests.board import BoardRow
from adjudge.contests.folding import Rules, Submissions, group_by_cell, load_rules
from adjudge.contests.live_board import ALL_ROWS, BoardFilter, LiveBoard, RowChange
from adjudge.contests.replay import (
    REPLAYED_KINDS,
    ReplayHistory,
    make_history,
    own_replay_row,
    parse_replay_offset,
    replay_board,
    replay_offset,
)
from adjudge.domain.contest import SECOND_US
from adjudge.services.scoreboard_access import BoardAccess, ElapsedAccess
from adjudge.services.scoreboard_feed import BoardKey, BoardTopic, ScoreboardFeed
from adjudge.services.scoreboard_rows import encode_change
from adjudge.store import Database, Tx
from adjudge.store.contests import scoreboard
from adjudge.store.contests.models import ParticipantRow
from adjudge.store.contests.scoreboard import JURY, CellSubmission
from adjudge.store.judging.events import EventOffset

BEAT: Final = ": alive\n\n"
RESET: Final = "event: reset\ndata: {}\n\n"
_PAGE: Final = 500
_KEEP_SEC: Final = 300.0
"""How long a history is used before it is read again."""
_MAX_EVENTS: Final = 100_000
"""Rows in the histories that a process keeps; the one that was used longest ago is dropped."""
_MAX_STREAM_ROWS: Final = 100_000
"""Rows on the boards of all streams; further streams only tell their readers to read the rows again."""
_REREAD_SEC: Final = 5.0
_FOREVER_SEC: Final = 3_600.0
_MARGIN_SEC: Final = 0.001
_MOST_MISSED: Final = 2_000
"""Missed events that a stream sends again; a reader that missed more reads everything."""

IsAccessChanged = Callable[[ElapsedAccess], Awaitable[bool]]
"""Whether the viewer may see something else since the stream was opened."""


@dataclass(slots=True)
class _CachedHistory:
    """The history of a contest, and the final board that it was made for."""

    history: ReplayHistory
    final: LiveBoard
    last: EventOffset
    rows: dict[str, BoardRow]
    loaded_at: float

    def is_current(self, final: LiveBoard) -> bool:
        """Whether the rows of the contest are those that the history was made for."""
        if _now() - self.loaded_at > _KEEP_SEC:
            return False
        if self.final is final and self.last == final.last:
            return True
        if self.final.source != final.source or self.rows != _replayed_rows(final.rows()):
            return False
        self.final, self.last = final, final.last  # only virtual runs have changed
        return True


class ReplayCache:
    """The replays of one process."""

    def __init__(self, database: Database, feed: ScoreboardFeed) -> None:
        self._database = database
        self._feed = feed
        self._known: dict[str, _CachedHistory] = {}
        self._loading: dict[str, asyncio.Task[_CachedHistory]] = {}
        self._stream_rows = 0

    async def board(self, found: BoardAccess, time_us: int) -> LiveBoard:
        """The board at a time of the contest, with the viewer's own row."""
        cached = await self._find(found.contest.contest.id)
        return await self._board_at(cached, found, time_us)

    async def _board_at(self, cached: _CachedHistory, found: BoardAccess, time_us: int) -> LiveBoard:
        own = await self.own_row(found)
        return await asyncio.to_thread(replay_board, cached.final, cached.history, own, time_us)

    async def _find(self, contest_id: str) -> _CachedHistory:
        final = await self._feed.board(BoardKey(contest_id, JURY, is_complete=False))
        known = self._known.pop(contest_id, None)
        if known is None or not known.is_current(final):
            known = await self._load(contest_id, final)
        self._known.pop(contest_id, None)
        self._known[contest_id] = known  # the last one was used last
        while len(self._known) > 1 and sum(map(_size, self._known.values())) > _MAX_EVENTS:
            del self._known[next(iter(self._known))]
        return known

    async def _load(self, contest_id: str, final: LiveBoard) -> _CachedHistory:
        if contest_id not in self._loading:
            task = asyncio.create_task(self._read(contest_id, final), name="scoreboard-replay-load")
            task.add_done_callback(lambda _: self._loading.pop(contest_id, None))
            self._loading[contest_id] = task
        return await asyncio.shield(self._loading[contest_id])

    async def _read(self, contest_id: str, final: LiveBoard) -> _CachedHistory:
        board, last = final.board(), final.last
        rules, people, submissions = await self._database.read(lambda tx: _read_submissions(tx, contest_id))
        history = await asyncio.to_thread(make_history, rules, board, people, submissions)
        return _CachedHistory(history, final, last, _replayed_rows(board.rows), _now())

    async def own_row(self, found: BoardAccess) -> BoardRow | None:
        """The row of the virtual run as its replay shows it."""
        row = (await self._feed.board(found.jury_key)).row(found.own_id) if found.own_id else None
        return None if row is None else own_replay_row(row)

    async def stream(
        self, opened: ElapsedAccess, which: BoardFilter, start: EventOffset | None, is_changed: IsAccessChanged
    ) -> AsyncGenerator[str, None]:
        """Rows that change as the time of the virtual run passes, and the own row after its verdicts.

        A reader that resumes gets its own row again. The stream ends with ``reset`` when everything must be read again.
        """
        found = opened.found
        cached = await self._find(found.contest.contest.id)
        now_us = opened.replay_us() or 0
        begin_us = now_us if start is None else parse_replay_offset(start)
        if begin_us is None or begin_us > now_us or len(cached.history.between(begin_us, now_us)) > _MOST_MISSED:
            yield RESET
            return
        rows = cached.history.row_count
        if self._stream_rows + rows > _MAX_STREAM_ROWS:
            yield BEAT
            await asyncio.sleep(_REREAD_SEC)
            yield RESET
            return
        self._stream_rows += rows
        try:
            board = await self._board_at(cached, found, begin_us)
            followed = _FollowedReplay(cached.history, board, BoardTopic(found.jury_key, which), begin_us)
            async with aclosing(self._follow(opened, followed, is_changed, is_resumed=start is not None)) as texts:
                async for text in texts:
                    yield text
        finally:
            self._stream_rows -= rows

    async def _follow(
        self, opened: ElapsedAccess, followed: _FollowedReplay, is_changed: IsAccessChanged, *, is_resumed: bool
    ) -> AsyncGenerator[str, None]:
        found = opened.found
        own = [BoardTopic(found.jury_key, ALL_ROWS, found.own_id)] if found.own_id else []
        async with self._feed.subscribe(own) as subscription:
            if is_resumed:
                for text in followed.update_own(await self.own_row(found), is_always_sent=True):
                    yield text
            yield BEAT
            while not subscription.is_lost and (now_us := opened.replay_us()) is not None and not opened.is_over():
                for text in followed.advance(now_us):
                    yield text
                batch = await subscription.read(min(opened.wait_sec(), followed.wait_sec()))
                if (await self._find(found.contest.contest.id)).history is not followed.history:
                    break
                if opened.is_check_due() and await is_changed(opened):
                    break
                own_row = await self.own_row(found)
                if not followed.has_row(own_row):
                    break  # the run was added after the rows were read
                for text in followed.update_own(own_row) if batch else [BEAT]:
                    yield text
        yield RESET


class _FollowedReplay:
    """The board of one stream, which changes event by event."""

    def __init__(self, history: ReplayHistory, board: LiveBoard, topic: BoardTopic, time_us: int) -> None:
        self.history = history
        self._board = board
        self._topic = topic
        self._time_us = time_us

    def advance(self, time_us: int) -> Iterable[str]:
        """The changes up to a time. Only the last one of several at one time has an id: a reader resumes after it."""
        events = self.history.between(self._time_us, time_us)
        self._time_us = max(self._time_us, time_us)
        for event, following in zip_longest(events, events[1:]):
            is_last = following is None or following.time_us != event.time_us
            changes = self._encode(self._board.replace_row(event.row))
            for index, text in enumerate(changes, 1):
                has_id = is_last and index == len(changes)
                yield (f"id: {replay_offset(event.time_us + 1)}\n" if has_id else "") + text

    def has_row(self, row: BoardRow | None) -> bool:
        """Whether the board has the row of this participant."""
        return row is None or row.participant.id in self._board

    def update_own(self, row: BoardRow | None, *, is_always_sent: bool = False) -> list[str]:
        """The change of the own row."""
        if row is None or not self.has_row(row):
            return []
        if is_always_sent:
            return self._encode([RowChange(row, None)])
        return [] if row == self._board.row(row.participant.id) else self._encode(self._board.replace_row(row))

    def wait_sec(self) -> float:
        """How long nothing of the contest changes."""
        next_us = self.history.next_time(self._time_us)
        return _FOREVER_SEC if next_us is None else max(0, next_us + 1 - self._time_us) / SECOND_US + _MARGIN_SEC

    def _encode(self, changes: Iterable[RowChange]) -> list[str]:
        return [
            f"event: row\ndata: {encode_change(self._board, self._topic, change)}\n\n"
            for change in changes
            if self._topic.matches(change.row)
        ]


async def _read_submissions(tx: Tx, contest_id: str) -> tuple[Rules, dict[str, ParticipantRow], Submissions]:
    """The rules, the participants and their submissions, without virtual runs."""
    rules = await load_rules(tx, contest_id)
    people, found, after = dict[str, ParticipantRow](), list[CellSubmission](), ""
    while ids := await scoreboard.participant_ids(tx, contest_id, after=after, limit=_PAGE):
        page = [item for item in await scoreboard.read_participants(tx, ids) if item.kind in REPLAYED_KINDS]
        people |= {item.id: item for item in page}
        found += await scoreboard.submissions_of_participants(tx, [item.id for item in page])
        after = ids[-1]
    return rules, people, group_by_cell(found)


def _replayed_rows(rows: Iterable[BoardRow]) -> dict[str, BoardRow]:
    return {row.participant.id: row for row in rows if row.participant.kind in REPLAYED_KINDS}


def _size(cached: _CachedHistory) -> int:
    return len(cached.history) + cached.history.row_count


def _now() -> float:
    return asyncio.get_running_loop().time()
