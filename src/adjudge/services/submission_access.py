"""What a viewer may see of submissions: the one place where contests restrict it.

Outside contests the author, staff and the setter of the problem see a submission, and nothing is read to know it. In a
contest the table of ``contests.visibility`` decides, by the phase of the submission's participant. Submissions of
others are shown here only with all details; what a contest shows of them before is on the pages of the contest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from adjudge.contests.times import find_unthawed
from adjudge.contests.visibility import Access, RouteClass
from adjudge.domain.contest import ContestFeedback, ContestPhase
from adjudge.domain.errors import NotFound
from adjudge.domain.permissions import Permission
from adjudge.domain.states import SubmissionStatus
from adjudge.judge.result_document import author_view, coarse_mem_kb, points_view
from adjudge.services.contest_access import ContestView, make_views
from adjudge.services.viewer import Viewer
from adjudge.store import Tx
from adjudge.store.contests import hidden, rejudge_preview
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.activity_models import ContestSubmissionRow
from adjudge.store.judging.models import JudgeRunRow, SubmissionRow, SubmissionStatusChange

_FIRST_VERSION = 1
_MICRO = 1_000_000


class SubmissionAccess(StrEnum):
    """How much of a submission is visible."""

    NONE = "none"
    """Nothing: it answers like a missing one."""
    RECEIPT = "receipt"
    """The source and that it was received; it stays pending, whatever happens to it."""
    VERDICT = "verdict"
    """Also the verdict, the scores of the test groups and the compiler output."""
    AUTHOR = "author"
    """Also what the problem shows of its tests."""
    JURY = "jury"
    """Everything."""


@dataclass(frozen=True, slots=True)
class SubmissionRights:
    """What one viewer may see of one submission."""

    access: SubmissionAccess
    is_own: bool = False
    """Made by the viewer or by their team."""
    decision: ContestSubmissionRow | None = None
    """The decisions of the jury, for a submission of a contest."""
    is_unverified: bool = False
    """The jury has overridden a verdict that needs verification: only the new one is visible."""

    @property
    def is_jury(self) -> bool:
        return self.access is SubmissionAccess.JURY

    @property
    def is_visible(self) -> bool:
        return self.access is not SubmissionAccess.NONE

    @property
    def shows_verdict(self) -> bool:
        return self.access not in (SubmissionAccess.NONE, SubmissionAccess.RECEIPT)

    @property
    def shows_judging(self) -> bool:
        """Whether the verdict of the judge is visible, not only the one that counts."""
        return self.shows_verdict and not self.is_unverified

    @property
    def shows_details(self) -> bool:
        return self.access in (SubmissionAccess.AUTHOR, SubmissionAccess.JURY) and not self.is_unverified

    def reduce(self, row: SubmissionRow) -> SubmissionRow:
        """The submission with what is visible of it; not found if nothing is."""
        if not self.is_visible:
            raise NotFound("submission", row.id)
        if self.is_jury:
            return row
        if not self.shows_verdict:
            return _receipt(row)
        row = self._overridden(row)
        if not self.shows_details:
            return replace(row, time_ms=None, mem_kb=None, reason=None)
        return row if row.mem_kb is None else replace(row, mem_kb=coarse_mem_kb(row.mem_kb))

    def document(self, document: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """The result by test, or by group; that of an overridden verdict is left out."""
        if document is None or self.is_jury:
            return document
        is_overridden = self.decision is not None and self.decision.override_verdict is not None
        if is_overridden or not self.shows_verdict:
            return None
        return author_view(dict(document)) if self.shows_details else points_view(dict(document))

    def runs(self, row: SubmissionRow, found: Sequence[JudgeRunRow]) -> list[JudgeRunRow]:
        """The judge runs; only the jury sees those of a rejudge batch that is not applied, and operational data."""
        if self.is_jury:
            return [*found]
        if not self.shows_details:
            return []
        visible = [run for run in found if run.rejudge_batch_id is None or run.id == row.job_id]
        return [replace(run, lease_owner=None, error=None, trace_id=None) for run in visible]

    def log(self, changes: Sequence[SubmissionStatusChange]) -> list[SubmissionStatusChange]:
        """The status changes; only the jury sees the actor."""
        if self.is_jury:
            return [*changes]
        seen = changes if self.shows_judging else [item for item in changes if item.version == _FIRST_VERSION]
        return [replace(item, actor=None, reason=None, job_id=None) for item in seen]

    def _overridden(self, row: SubmissionRow) -> SubmissionRow:
        decision = self.decision
        if decision is None or decision.override_verdict is None:
            return row
        score = row.score if decision.override_score_micro is None else decision.override_score_micro / _MICRO
        verdict = decision.override_verdict
        return replace(row, verdict=str(verdict), status=str(verdict.status), score=score)


def _receipt(row: SubmissionRow) -> SubmissionRow:
    """A submission whose judging is hidden: the same bytes whatever happens to it."""
    return replace(
        row,
        status=str(SubmissionStatus.PENDING),
        verdict=None,
        score=None,
        time_ms=None,
        mem_kb=None,
        job_id=None,
        reason=None,
        version=_FIRST_VERSION,
        updated_at=row.created_at,
        finished_at=None,
    )


_UNREACHABLE = SubmissionRights(SubmissionAccess.NONE, is_own=False)
"""Of a submission that does not exist for the viewer in contest-only mode."""


async def find_rights(tx: Tx, viewer: Viewer, rows: Sequence[SubmissionRow]) -> dict[str, SubmissionRights]:
    """What the viewer may see of submissions, by id. Nothing is read for those outside contests."""
    rights = {row.id: rights_outside_contests(viewer, row) for row in rows if row.contest_id is None}
    in_contests = [row for row in rows if row.contest_id is not None]
    return rights | await _rights_in_contests(tx, viewer, in_contests) if in_contests else rights


def rights_outside_contests(viewer: Viewer, row: SubmissionRow) -> SubmissionRights:
    """Everything for staff and the setter of the problem; their own for authors."""
    is_own = row.user_id == viewer.user_id
    if viewer.only_contest_id is not None:
        return _UNREACHABLE
    if viewer.can(Permission.SUBMISSION_READ_ALL) or owns_problem(viewer, row):
        return SubmissionRights(SubmissionAccess.JURY, is_own)
    return SubmissionRights(SubmissionAccess.AUTHOR if is_own else SubmissionAccess.NONE, is_own)


def owns_problem(viewer: Viewer, row: SubmissionRow) -> bool:
    """Whether the viewer is the setter of the submission's problem."""
    return row.problem_owner_id == viewer.user_id and viewer.can(Permission.PROBLEM_WRITE)


async def find_hidden_contests(tx: Tx, viewer: Viewer, *, owned_problem_id: str | None, by_result: bool) -> list[str]:
    """The contests that a list of submissions leaves out.

    A setter's list of a problem leaves out contests that are not over and where the setter is not in the jury. A list
    by status or verdict leaves out contests that hide the verdicts from their authors: else the filter would tell them.
    """
    if viewer.can(Permission.SUBMISSION_READ_ALL):
        return []
    contests = []
    if owned_problem_id is not None:
        contests += await hidden.open_contests(tx, problem_id=owned_problem_id)
    elif by_result:
        own = await hidden.open_contests_of_user(tx, viewer.id)
        contests += [item for item in own if item.settings.verify_required or _hides_verdicts(item.settings.feedback)]
    if not contests:
        return []
    seen = {view.contest.id for view in await make_views(tx, viewer, contests) if view.sees_all}
    return [contest_id for contest_id in await find_unthawed(tx, contests) if contest_id not in seen]


async def find_batch_contests(tx: Tx, viewer: Viewer, *, batch_id: str | None = None) -> list[str]:
    """The contests whose rejudge batches are hidden: they are not over, and the viewer is not in their jury.

    With ``batch_id``, those of one batch; else all of the installation.
    """
    if viewer.can(Permission.SUBMISSION_READ_ALL):
        return []
    contests = await (hidden.open_contests(tx) if batch_id is None else rejudge_preview.contests(tx, batch_id))
    seen = {view.contest.id for view in await make_views(tx, viewer, contests) if view.sees_all}
    return [contest_id for contest_id in await find_unthawed(tx, contests) if contest_id not in seen]


async def find_hidden_contests_of_batch(tx: Tx, viewer: Viewer, batch_id: str) -> list[str]:
    """The contests of a rejudge batch whose results are left out: the viewer is not in their jury."""
    if viewer.can(Permission.SUBMISSION_READ_ALL):
        return []
    contests = await rejudge_preview.contests(tx, batch_id)
    seen = {view.contest.id for view in await make_views(tx, viewer, contests) if view.sees_all}
    return [contest.id for contest in contests if contest.id not in seen]


def _hides_verdicts(feedback: ContestFeedback) -> bool:
    return feedback is ContestFeedback.NONE


async def _rights_in_contests(tx: Tx, viewer: Viewer, rows: Sequence[SubmissionRow]) -> dict[str, SubmissionRights]:
    contests = await hidden.find_contests(tx, {row.contest_id for row in rows if row.contest_id is not None})
    views = {view.contest.id: view for view in await make_views(tx, viewer, contests)}
    decisions = await contest_submissions.find_many(tx, [row.id for row in rows])
    return {
        row.id: _in_contest(viewer, row, views.get(row.contest_id or ""), decisions.get(row.id))
        if viewer.only_contest_id in (None, row.contest_id)
        else _UNREACHABLE
        for row in rows
    }


def _in_contest(
    viewer: Viewer, row: SubmissionRow, view: ContestView | None, decision: ContestSubmissionRow | None
) -> SubmissionRights:
    if viewer.can(Permission.SUBMISSION_READ_ALL):
        return SubmissionRights(SubmissionAccess.JURY, row.user_id == viewer.user_id, decision)
    participants = () if view is None or decision is None else view.participants
    own = next((item for item in participants if decision and item.id == decision.participant_id), None)
    is_own = row.user_id == viewer.user_id or own is not None
    if view is None:  # a contest that was taken back to draft
        return SubmissionRights(SubmissionAccess.RECEIPT if is_own else SubmissionAccess.NONE, is_own, decision)
    if view.sees_all or (view.public_phase is ContestPhase.THAWED and owns_problem(viewer, row)):
        return SubmissionRights(SubmissionAccess.JURY, is_own, decision)
    if is_own:
        is_unverified = view.contest.settings.verify_required and (decision is None or decision.verified_at is None)
        if is_unverified and (decision is None or decision.override_verdict is None):
            return SubmissionRights(SubmissionAccess.RECEIPT, is_own, decision)
        found = view.access(RouteClass.OWN_SUBMISSIONS, is_own=True, participant=own)
        return SubmissionRights(_OWN.get(found, SubmissionAccess.RECEIPT), is_own, decision, is_unverified)
    is_open = view.access(RouteClass.OTHER_DETAILS) is Access.FULL
    return SubmissionRights(SubmissionAccess.AUTHOR if is_open else SubmissionAccess.NONE, is_own, decision)


_OWN = {Access.FULL: SubmissionAccess.AUTHOR, Access.VERDICT_AND_SCORE: SubmissionAccess.VERDICT}
