"""The dashboard of the jury: what happens in a contest now, and what needs a decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adjudge.contests import lifecycle
from adjudge.contests.lifecycle import Blocker
from adjudge.domain.contest import ContestPhase
from adjudge.domain.states import ContestState, SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.services.clarifications import ClarificationDetail, ClarificationService
from adjudge.services.contest_access import ContestView, find_view
from adjudge.services.jury_submissions import JURY
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import jury_dashboard, queries
from adjudge.store.contests.jury_dashboard import AbsentParticipant, SubmissionCount
from adjudge.store.contests.models import ContestProblemRow, ParticipantRow
from adjudge.store.ops import audit_log
from adjudge.store.ops.audit_log import AuditLogRow

_LISTED: Final = 20
_OPEN_LISTED: Final = 50


@dataclass(frozen=True, slots=True)
class JudgingCounts:
    """How many submissions of a contest are in which state."""

    total: int
    by_verdict: Mapping[Verdict, int]
    waiting: int
    """Without a verdict, and no judge run has begun."""
    running: int
    failed: int
    """The judge failed: they have the verdict of a system error."""
    unverified: int
    ignored: int


@dataclass(frozen=True, slots=True)
class JuryDashboard:
    """Everything that the dashboard shows."""

    view: ContestView
    counts: JudgingCounts
    open_questions: Sequence[ClarificationDetail]
    """Those that nobody has claimed first, then by age."""
    problems: Sequence[ContestProblemRow]
    absent: Sequence[AbsentParticipant]
    blockers: Sequence[Blocker]
    """What keeps the contest from being finalized; empty before its start."""
    log: Sequence[AuditLogRow]


@dataclass(frozen=True, slots=True)
class JuryDashboardService:
    """Reads what the jury needs to see at once."""

    database: Database
    clarifications: ClarificationService

    async def get(self, viewer: Viewer, name: str) -> JuryDashboard:
        """The dashboard of a contest."""
        questions = await self._open_questions(viewer, name)

        async def read(tx: Tx) -> JuryDashboard:
            view = await find_view(tx, viewer, name)
            view.require(*JURY)
            contest = view.contest
            may_end = contest.state is ContestState.PUBLISHED and view.public_phase is not ContestPhase.BEFORE
            return JuryDashboard(
                view,
                _count(await jury_dashboard.count_submissions(tx, contest.id)),
                questions,
                await queries.problems(tx, contest.id),
                await jury_dashboard.absent_participants(tx, contest.id, limit=_LISTED),
                await lifecycle.find_blockers(tx, contest, view.times) if may_end else [],
                await audit_log.page_by_contest(tx, contest.id, limit=_LISTED),
            )

        return await self.database.read(read)

    async def _open_questions(self, viewer: Viewer, name: str) -> list[ClarificationDetail]:
        found = await self.clarifications.list_clarifications(viewer, name, limit=_OPEN_LISTED, only_open=True)
        return sorted(found.items, key=lambda item: (item.row.claimed_by is not None, item.row.number))

    async def list_penalties(self, viewer: Viewer, name: str) -> tuple[ContestView, list[ParticipantRow]]:
        """The participants to whose penalty the jury has added something."""

        async def read(tx: Tx) -> tuple[ContestView, list[ParticipantRow]]:
            view = await find_view(tx, viewer, name)
            view.require(*JURY)
            return view, await jury_dashboard.with_added_penalty(tx, view.contest.id)

        return await self.database.read(read)


def _count(rows: Sequence[SubmissionCount]) -> JudgingCounts:
    by_verdict: Counter[Verdict] = Counter()
    by_status: Counter[str] = Counter()
    for row in rows:
        if row.verdict is not None:
            by_verdict[row.verdict] += row.count
        else:
            by_status[row.status] += row.count
    return JudgingCounts(
        total=sum(row.count for row in rows),
        by_verdict=dict(sorted(by_verdict.items())),
        waiting=by_status[SubmissionStatus.PENDING],
        running=by_status[SubmissionStatus.JUDGING],
        failed=by_verdict[Verdict.SE],
        unverified=sum(row.unverified for row in rows),
        ignored=sum(row.ignored for row in rows),
    )
