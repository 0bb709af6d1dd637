"""Scoreboards: what a viewer may see of them, windows of rows, and streams of changes.

Everything is read from boards in memory (``scoreboard_feed``). Which board a viewer reads follows from the visibility
table: the public view until the thaw, the jury view afterwards and for the jury; during a virtual run a replay of the
contest (``scoreboard_replay``). A verdict since the freeze changes nothing of the public board, so it changes no byte,
no ETag and no stream of its readers.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final

from adjudge.contests.board import BoardRow, collation_key
from adjudge.contests.live_board import ALL_ROWS, BoardFilter, LiveBoard, RowChange
from adjudge.contests.visibility import Access
from adjudge.domain.contest import SECOND_US, ParticipantKind
from adjudge.domain.errors import Forbidden, InvalidInput, NotFound
from adjudge.domain.states import ContestState
from adjudge.schema.scoreboard import (
    ScoreboardFilters,
    ScoreboardGroupRead,
    ScoreboardProblemRead,
    ScoreboardRead,
    ScoreboardRowRead,
)
from adjudge.services.contest_access import ContestAccess
from adjudge.services.scoreboard_access import BoardAccess, ElapsedAccess, board_access
from adjudge.services.scoreboard_feed import BoardTopic, ScoreboardFeed
from adjudge.services.scoreboard_replay import BEAT, RESET, ReplayCache
from adjudge.services.scoreboard_rows import encode_change, read_row
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import scoreboard_log
from adjudge.store.contests.scoreboard import PUBLIC
from adjudge.store.judging.events import START, EventOffset, parse_event_offset

_REPLAY_LIMIT: Final = 2_000
"""Missed entries that a stream sends again; a reader that missed more reads everything."""


@dataclass(frozen=True, slots=True)
class ScoreboardService:
    """Windows of rows and streams of changes."""

    database: Database
    access: ContestAccess
    feed: ScoreboardFeed
    replays: ReplayCache

    async def find(self, viewer: Viewer, contest: str, *, is_jury: bool = False) -> BoardAccess:
        """What the viewer may see; 404 if it is nothing, 403 without a role for the jury view.

        Members of the jury know of the scoreboard: a public view that is hidden has no rows for them.
        """
        found = board_access(await self.access.find(viewer, contest), is_jury=is_jury)
        if found.rows is Access.NONE and found.own is Access.NONE and not found.contest.sees_all:
            raise NotFound("scoreboard", contest)
        return found

    async def board(self, found: BoardAccess) -> LiveBoard | None:
        """The board with the rows that the viewer sees; None if the viewer sees none."""
        if found.replay_us is not None:
            return await self.replays.board(found, found.replay_us)
        return await self.feed.board(found.key) if found.key else None

    async def page(self, found: BoardAccess, which: BoardFilter, *, offset: int, limit: int) -> ScoreboardRead:
        """A window of rows, in listing order, with the own row."""
        board = await self.board(found)
        own = await self.own_row(found, board, which)
        if board:
            check_filter(board, which)
        ranking = board.ranking(which) if board else None
        rows = ranking.page(offset, limit) if ranking else []
        return ScoreboardRead(
            view=board.view if board else PUBLIC,
            phase=found.contest.public_phase if found.replay_us is None else found.contest.phase,
            is_pass_fail=board.source.is_pass_fail if board else True,
            is_final=found.contest.contest.state is ContestState.FINALIZED and found.replay_us is None,
            is_hidden=found.rows is Access.NONE,
            frozen_min=found.frozen_min,
            replay_sec=None if found.replay_us is None else found.replay_us // SECOND_US,
            problems=await self._problems(found, board),
            groups=_groups(board) if board else [],
            rows=[read_row(board, item.row, item.rank) for item in rows] if board else [],
            offset=offset,
            total=len(ranking) if ranking else 0,
            own_row=own,
            event_id=str(board.last if board else START),
        )

    async def own_row(
        self, found: BoardAccess, board: LiveBoard | None, which: BoardFilter = ALL_ROWS
    ) -> ScoreboardRowRead | None:
        """The own row: with its rank among the rows of the filter; in a freeze with judged cells and without rank.

        A virtual run that has ended gets the rank that it would have had.
        """
        if found.own_id is None:
            return None
        if board is not None and found.own is Access.FULL and found.own_id in board:
            row = board.row(found.own_id)
            if row is None:
                return None
            return read_row(board, row, _own_rank(board, row, which))
        jury = await self.feed.board(found.jury_key)
        row = jury.row(found.own_id)
        return None if row is None else read_row(jury, row, None, is_own=True)

    async def filters(self, found: BoardAccess, *, search: str = "", limit: int = 1_000) -> ScoreboardFilters:
        """The groups of the rows, and the organisations whose names contain ``search``."""
        board = await self.board(found)
        if board is None:
            return ScoreboardFilters(groups=[], organizations=[], organization_count=0)
        known, wanted = board.source.organizations, collation_key(search)
        names = sorted((collation_key(name), key) for key, name in known.items())
        matching = [ScoreboardGroupRead(id=key, name=known[key]) for name, key in names if wanted in name]
        return ScoreboardFilters(groups=_groups(board), organizations=matching[:limit], organization_count=len(known))

    async def find_organization(self, found: BoardAccess, text: str) -> ScoreboardGroupRead | None:
        """The organisation with an id or a name, or the only one whose name contains the text; None for no text."""
        board = await self.board(found) if text else None
        if board is None:
            return None
        known = board.source.organizations
        if text in known:
            return ScoreboardGroupRead(id=text, name=known[text])
        matching = (await self.filters(found, search=text)).organizations
        equal = [item for item in matching if collation_key(item.name) == collation_key(text)]
        if len(chosen := equal or matching) != 1:
            count = f"{len(matching)} organisations match" if matching else "no organisation matches"
            raise InvalidInput(f"organization: {count} {text!r}; give the whole name.", field="organization")
        return chosen[0]

    async def _problems(self, found: BoardAccess, board: LiveBoard | None) -> list[ScoreboardProblemRead]:
        """The columns, with labels only for problems that the viewer does not see."""
        if board is None:
            if found.own_id is None:
                return []
            board = await self.feed.board(found.jury_key)
        return [
            ScoreboardProblemRead(label=item.label, title=item.name or None, rgb=item.rgb)
            for item in found.shown_columns(board.source).problems
        ]

    async def stream(
        self, viewer: Viewer, contest: str, *, is_jury: bool, which: BoardFilter, last_event_id: str | None
    ) -> AsyncGenerator[str, None]:
        """Changed rows as server-sent events, from ``last_event_id`` on.

        ``row`` is a row of the board, ``own`` the own row in a freeze, which a reader that resumes gets once. The
        stream ends with ``reset`` when everything must be read again: after a change of the timeline, of participants,
        or of what the viewer may see.
        """
        found = await self.find(viewer, contest, is_jury=is_jury)
        if board := await self.board(found):
            check_filter(board, which)
        start = parse_event_offset(last_event_id) if last_event_id else None
        if found.replay_us is not None:
            return self.replays.stream(ElapsedAccess(found), which, start, self._is_changed)
        return self._stream(found, which, start)

    async def _stream(
        self, found: BoardAccess, which: BoardFilter, start: EventOffset | None
    ) -> AsyncGenerator[str, None]:
        rows, own = self._topics(found, which)
        opened = ElapsedAccess(found)
        async with self.feed.subscribe([item for item in (rows, own) if item]) as subscription:
            for text in await self._replay(rows, start) if rows and start is not None else ():
                yield text
                if text == RESET:
                    return
            if own and start is not None and (current := await self._current_own(own)):
                yield current
            yield BEAT
            while not subscription.is_lost:
                for event in (batch := await subscription.read(opened.wait_sec())):
                    if event.text is None:
                        yield RESET
                        return
                    is_row = '"position":' in event.text
                    yield f"id: {event.offset}\nevent: row\ndata: {event.text}\n\n" if is_row else _own(event.text)
                if opened.is_over() or (opened.is_check_due() and await self._is_changed(opened)):
                    yield RESET
                    return
                if not batch:
                    yield BEAT
        yield RESET

    def _topics(self, found: BoardAccess, which: BoardFilter) -> tuple[BoardTopic | None, BoardTopic | None]:
        rows = BoardTopic(found.key, which) if found.key else None
        has_rank = rows is not None and found.own is Access.FULL
        own = BoardTopic(found.jury_key, ALL_ROWS, found.own_id) if found.own_id and not has_rank else None
        return rows, own

    async def _current_own(self, topic: BoardTopic) -> str | None:
        board = await self.feed.board(topic.key)
        row = board.row(topic.participant_id or "")
        return None if row is None else _own(encode_change(board, topic, RowChange(row, None)))

    async def _replay(self, topic: BoardTopic, start: EventOffset) -> list[str]:
        """The current rows of those that changed since ``start``, or a reset."""

        async def read(tx: Tx) -> set[str | None] | None:
            contest_id, view = topic.key.contest_id, topic.key.view
            if start != START and not await scoreboard_log.has_offset(tx, contest_id, start, view=view):
                return None
            end = await scoreboard_log.safe_offset(tx)
            entries = await scoreboard_log.read_contest(tx, contest_id, start.next, end, view=view, limit=_REPLAY_LIMIT)
            too_many = len(entries) == _REPLAY_LIMIT or any(item.kind == "reset" for item in entries)
            return None if too_many else {item.participant_id for item in entries}

        changed = await self.database.read(read)
        if changed is None:
            return [RESET]
        board = await self.feed.board(topic.key)
        rows = [row for item in changed if item and (row := board.row(item)) and topic.matches(row)]
        return [
            f"id: {board.last}\nevent: row\ndata: {encode_change(board, topic, RowChange(row, None))}\n\n"
            for row in rows
        ]

    async def _is_changed(self, opened: ElapsedAccess) -> bool:
        """Whether the viewer's roles or the settings of the contest changed what the viewer may see."""
        view = opened.found.contest
        try:
            now = board_access(await self.access.find(view.viewer, view.contest.id), is_jury=opened.found.is_jury)
        except (NotFound, Forbidden):
            return True
        opened.checked(now)
        return opened.is_over()


def _own_rank(board: LiveBoard, row: BoardRow, which: BoardFilter) -> int | None:
    if not which.matches(row.participant):
        return None
    ranking, participant = board.ranking(which), row.participant
    if participant.kind is ParticipantKind.VIRTUAL and not participant.is_disqualified:
        return ranking.rank_among(row)
    return ranking.rank_of(participant.id)


def _own(text: str) -> str:
    """An event about the own row. It has no id: a reader resumes from the rows of its view."""
    return f"event: own\ndata: {text}\n\n"


def _groups(board: LiveBoard) -> list[ScoreboardGroupRead]:
    return [ScoreboardGroupRead(id=item.id, name=item.name) for item in board.source.groups]


def check_filter(board: LiveBoard, which: BoardFilter) -> None:
    """Raise InvalidInput for a group or organisation that the board does not have."""
    if which.group_id is not None and which.group_id not in {item.id for item in _groups(board)}:
        raise InvalidInput("group: no such group on this scoreboard.", field="group")
    if which.organization_id is not None and which.organization_id not in board.source.organizations:
        raise InvalidInput("organization: no such organisation on this scoreboard.", field="organization")
