"""What participants see of themselves in a contest: results by problem, submissions, verdicts not yet read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adjudge.contests import clock
from adjudge.contests.cell_json import decode_cell
from adjudge.contests.formats.base import Cell
from adjudge.contests.times import participant_clock
from adjudge.contests.visibility import Access, RouteClass
from adjudge.domain.contest import MICRO_POINTS
from adjudge.domain.verdict import Verdict
from adjudge.services.contest_access import ContestView, find_view
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import read_marks, scoreboard
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.activity_models import ContestSubmissionRow, UnreadVerdict, UnreadVerdicts

_SHOWS_VERDICT: Final = frozenset({Access.FULL, Access.VERDICT_AND_SCORE, Access.WITHOUT_CREDENTIALS})


@dataclass(frozen=True, slots=True)
class OwnSubmission:
    """An own submission, with the verdict that the participant may see."""

    row: ContestSubmissionRow
    time_us: int | None
    """Participant time."""
    verdict: Verdict | None
    shows_verdict: bool
    """False: the participant learns only that it was received."""

    @property
    def score_micro(self) -> int | None:
        """The score of a problem with points; None if there is none, or none may be seen."""
        row = self.row
        if self.verdict is None or row.max_score_micro in (None, MICRO_POINTS):
            return None
        return row.score_micro if row.override_score_micro is None else row.override_score_micro

    @property
    def is_pending(self) -> bool:
        """Whether a verdict is to come."""
        return self.shows_verdict and self.verdict is None and self.row.status != "canceled"


@dataclass(frozen=True, slots=True)
class OwnContestService:
    """Results and submissions of the participants for whom the viewer submits."""

    database: Database

    async def get_cells(self, view: ContestView) -> dict[str, Cell]:
        """The results by problem id; without verdicts, every submission is pending."""
        own = view.participant
        if own is None:
            return {}
        if not _shows_verdicts(view):
            counts = await self.database.read(lambda tx: contest_submissions.count_by_problem(tx, own.id))
            return {problem_id: Cell(pending=count) for problem_id, count in counts.items()}
        rows = await self.database.read(lambda tx: scoreboard.cells(tx, [own.id]))
        return {row.problem_id: decode_cell(row.jury) for row in rows}

    async def list_submissions(
        self, view: ContestView, *, problem_id: str | None = None, before: int | None = None, limit: int
    ) -> list[OwnSubmission]:
        """The own submissions, newest first; ``before`` is the number of the last one of the previous page."""
        ids = [item.id for item in view.participants]
        if not ids or view.access(RouteClass.OWN_SUBMISSIONS, is_own=True) is Access.NONE:
            return []
        rows = await self.database.read(
            lambda tx: contest_submissions.of_participants(
                tx, ids, problem_id=problem_id, before=2**62 if before is None else before, limit=limit
            )
        )
        return [_shown(view, row) for row in rows]

    async def count_unread(self, view: ContestView) -> UnreadVerdicts:
        """The own verdicts that the viewer may see and has not read."""
        if view.viewer.user_id is None or not view.participants or not _shows_verdicts(view):
            return UnreadVerdicts(0, None)

        async def read(tx: Tx) -> UnreadVerdicts:
            mark = await read_marks.read_mark(tx, view.contest.id, view.viewer.id)
            ids = [item.id for item in view.participants]
            return await read_marks.count_verdicts(tx, ids, after=mark.verdicts_until)

        return await self.database.read(read)

    async def list_unread(self, view: ContestView, *, limit: int) -> list[UnreadVerdict]:
        """The newest of the verdicts that ``count_unread`` counts."""
        if view.viewer.user_id is None or not view.participants or not _shows_verdicts(view):
            return []

        async def read(tx: Tx) -> list[UnreadVerdict]:
            mark = await read_marks.read_mark(tx, view.contest.id, view.viewer.id)
            ids = [item.id for item in view.participants]
            return await read_marks.list_verdicts(tx, ids, after=mark.verdicts_until, limit=limit)

        return await self.database.read(read)

    async def mark_read(self, viewer: Viewer, contest: str, until: int) -> None:
        """Mark the verdicts up to a time as read; those that are still to come stay unread."""

        async def operation(tx: Tx) -> None:
            view = await find_view(tx, viewer, contest)
            mark = min(until, view.times.now_us)
            await read_marks.advance_read_mark(tx, view.contest.id, viewer.id, verdicts_until=mark)

        await self.database.transact(operation)


def _shows_verdicts(view: ContestView) -> bool:
    return view.access(RouteClass.OWN_SUBMISSIONS, is_own=True) in _SHOWS_VERDICT


def _shown(view: ContestView, row: ContestSubmissionRow) -> OwnSubmission:
    own = next(item for item in view.participants if item.id == row.participant_id)
    is_verified = row.verified_at is not None or not view.contest.settings.verify_required
    verdict = row.override_verdict or (row.verdict if is_verified else None)
    is_shown = _shows_verdicts(view)
    time_us = clock.participant_time(view.times.timeline, participant_clock(own), row.received_at)
    return OwnSubmission(row, time_us, verdict if is_shown else None, is_shown)
