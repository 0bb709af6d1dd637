"""Statistics of contests, for the jury at any time and for everybody after the thaw."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from adjudge.contests import clock
from adjudge.contests.board import Board
from adjudge.contests.statistics import ContestStatistics, CountedSubmission, compute_statistics
from adjudge.contests.times import participant_clock
from adjudge.contests.visibility import Access, RouteClass
from adjudge.domain.contest import MINUTE_US, ParticipantKind
from adjudge.domain.errors import NotFound
from adjudge.domain.states import SubmissionStatus
from adjudge.services.contest_access import ContestView
from adjudge.services.scoreboard import ScoreboardService
from adjudge.services.scoreboard_access import board_access
from adjudge.services.scoreboard_feed import BoardKey
from adjudge.services.viewer import Viewer
from adjudge.store import Database
from adjudge.store.contests import scoreboard
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.activity_models import ContestSubmissionRow
from adjudge.store.contests.models import ParticipantRow
from adjudge.store.contests.scoreboard import JURY
from adjudge.store.judging.events import EventOffset

_PAGE: Final = 1_000
_BUCKETS: Final = 60
_KEEP_SEC: Final = 10.0
"""How long statistics are used again although the scoreboard has changed."""
_MAX_CONTESTS: Final = 32


@dataclass(frozen=True, slots=True)
class _Computed:
    last: EventOffset
    version: int
    at: float
    board: Board
    statistics: ContestStatistics

    def is_usable(self, version: int, last: EventOffset, now: float) -> bool:
        """Whether they are those of the present scoreboard, or recent."""
        return self.version == version and (self.last == last or now - self.at < _KEEP_SEC)


class ContestStatisticsService:
    """Computes statistics from all submissions that count, and keeps the last ones of each contest."""

    def __init__(self, database: Database, scoreboards: ScoreboardService) -> None:
        self._database = database
        self._scoreboards = scoreboards
        self._known: OrderedDict[str, _Computed] = OrderedDict()
        self._computing = asyncio.Lock()

    async def get(self, viewer: Viewer, contest: str) -> tuple[ContestView, Board, ContestStatistics]:
        """The public part of the final board, and the counts of its participants without virtual ones.

        The board has no names of problems that the viewer does not see.
        """
        view = await self._scoreboards.access.find(viewer, contest)
        if view.access(RouteClass.STATISTICS) is Access.NONE:
            raise NotFound("statistics", contest)
        async with self._computing:  # one at a time: they read every submission of a contest
            found = await self._find(view)
        return view, board_access(view, is_jury=view.sees_all).shown_columns(found.board), found.statistics

    async def _find(self, view: ContestView) -> _Computed:
        live = await self._scoreboards.feed.board(BoardKey(view.contest.id, JURY, is_complete=False))
        known, now = self._known.get(view.contest.id), asyncio.get_running_loop().time()
        if known is not None and known.is_usable(view.contest.version, live.last, now):
            return known
        board, last = live.board(), live.last
        found = _Computed(last, view.contest.version, now, board, await self._compute(view, board))
        self._known[view.contest.id] = found
        self._known.move_to_end(view.contest.id)
        if len(self._known) > _MAX_CONTESTS:
            self._known.popitem(last=False)
        return found

    async def _compute(self, view: ContestView, board: Board) -> ContestStatistics:
        timeline = view.times.timeline
        ids = [row.participant.id for row in board.rows if row.participant.kind is not ParticipantKind.VIRTUAL]
        people = {item.id: item for item in await self._database.read(lambda tx: scoreboard.read_participants(tx, ids))}
        counted: list[CountedSubmission] = []
        before: int | None = 2**62
        while before is not None:
            read = partial(contest_submissions.page, contest_id=view.contest.id, before=before, limit=_PAGE)
            rows = await self._database.read(read)
            counted += [item for row in rows if (item := _counted(view, people, row)) is not None]
            before = rows[-1].number if len(rows) == _PAGE else None
        bucket_us = max(MINUTE_US, -(-timeline.duration_us // _BUCKETS))
        problem_ids = [item.id for item in board.problems]
        return compute_statistics(counted, problem_ids, duration_us=timeline.duration_us, bucket_us=bucket_us)


def _counted(
    view: ContestView, people: Mapping[str, ParticipantRow], row: ContestSubmissionRow
) -> CountedSubmission | None:
    """A submission that counts on the scoreboard; None for others."""
    participant = people.get(row.participant_id)
    if participant is None or participant.disqualified_at is not None:
        return None
    if row.ignored_at is not None or row.status == SubmissionStatus.CANCELED:
        return None
    timeline, own = view.times.timeline, participant_clock(participant)
    if not row.official and not clock.is_counted(timeline, own, row.received_at):
        return None
    time_us = max(0, clock.participant_time(timeline, own, row.received_at) or 0)
    is_waiting = view.contest.settings.verify_required and row.verified_at is None
    verdict = row.override_verdict or (None if is_waiting else row.verdict)
    return CountedSubmission(row.participant_id, row.problem_id, row.language, time_us, verdict)
