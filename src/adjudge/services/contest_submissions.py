"""Submissions of a contest for its jury: lists, and decisions about how a submission counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from adjudge.contests import jury
from adjudge.domain.contest import ContestRole
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.verdict import Verdict
from adjudge.services.contest_access import ContestAccess, ContestView, find_view
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import queries
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.activity_models import ContestSubmissionRow
from adjudge.store.contests.submissions import JuryDecision

_JURY = (ContestRole.ORGANISER, ContestRole.JUDGE)


@dataclass(frozen=True, slots=True)
class ContestSubmissionService:
    """Operations of the jury on submissions."""

    database: Database
    access: ContestAccess

    async def list_submissions(
        self,
        viewer: Viewer,
        name: str,
        *,
        problem: str | None = None,
        verdict: Verdict | None = None,
        only_unverified: bool = False,
        before: int | None = None,
        limit: int,
    ) -> list[ContestSubmissionRow]:
        """All submissions of a contest, newest first; ``problem`` is a label."""
        view = await self.access.find_as(viewer, name, *_JURY, ContestRole.API_READER)

        async def look(tx: Tx) -> list[ContestSubmissionRow]:
            problem_id = None if problem is None else await _problem_id(tx, view, problem)
            return await contest_submissions.page(
                tx,
                view.contest.id,
                before=2**62 if before is None else before,
                limit=limit,
                problem_id=problem_id,
                verdict=verdict,
                only_unverified=only_unverified,
            )

        return await self.database.read(look)

    async def verify(self, viewer: Viewer, name: str, number: int, *, is_verified: bool) -> ContestSubmissionRow:
        """Confirm the verdict of a judged submission, so that it counts; or take the confirmation back."""

        def change(row: ContestSubmissionRow, before: JuryDecision) -> JuryDecision:
            if is_verified and row.verdict is None:
                raise InvalidInput("number: the submission has no verdict yet.", field="number")
            return replace(before, verified_by=viewer.id if is_verified else None)

        return await self._decide(viewer, name, number, change, "")

    async def ignore(
        self, viewer: Viewer, name: str, number: int, *, is_ignored: bool, reason: str
    ) -> ContestSubmissionRow:
        """Leave a submission out of the scoreboard, or count it again."""
        return await self._decide(
            viewer, name, number, lambda _, before: replace(before, is_ignored=is_ignored), _required(reason)
        )

    async def make_official(
        self, viewer: Viewer, name: str, number: int, *, is_official: bool, reason: str
    ) -> ContestSubmissionRow:
        """Count a submission that was received outside the participant's time, or stop counting it."""
        return await self._decide(
            viewer, name, number, lambda _, before: replace(before, official=is_official), _required(reason)
        )

    async def override(
        self,
        viewer: Viewer,
        name: str,
        number: int,
        *,
        verdict: Verdict | None,
        score_micro: int | None,
        reason: str,
    ) -> ContestSubmissionRow:
        """Replace the verdict of the judge; None takes the replacement back."""

        def change(_: ContestSubmissionRow, before: JuryDecision) -> JuryDecision:
            return replace(
                before,
                override_verdict=verdict,
                override_score_micro=score_micro,
                overridden_by=None if verdict is None else viewer.id,
                override_reason=None if verdict is None else reason,
            )

        return await self._decide(viewer, name, number, change, _required(reason))

    async def _decide(
        self,
        viewer: Viewer,
        name: str,
        number: int,
        change: Callable[[ContestSubmissionRow, JuryDecision], JuryDecision],
        reason: str,
    ) -> ContestSubmissionRow:
        async def operation(tx: Tx) -> ContestSubmissionRow:
            view = await find_view(tx, viewer, name)
            view.require(*_JURY)
            row = await contest_submissions.find_by_number(tx, view.contest.id, number)
            decision = change(row, _decision_of(row))
            await jury.decide(tx, row.submission_id, decision, version=row.version, actor=viewer.id, reason=reason)
            return await contest_submissions.find(tx, row.submission_id)

        return await self.database.transact(operation)


def _decision_of(row: ContestSubmissionRow) -> JuryDecision:
    return JuryDecision(
        official=row.official,
        is_ignored=row.ignored_at is not None,
        verified_by=row.verified_by,
        override_verdict=row.override_verdict,
        override_score_micro=row.override_score_micro,
        overridden_by=row.overridden_by,
        override_reason=row.override_reason,
    )


async def _problem_id(tx: Tx, view: ContestView, label: str) -> str:
    rows = await queries.problems(tx, view.contest.id)
    found = next((row.problem.problem_id for row in rows if row.problem.label == label), None)
    if found is None:
        raise NotFound("contest_problem", label)
    return found


def _required(reason: str) -> str:
    if not reason.strip():
        raise InvalidInput("reason: required; it is kept in the audit log.", field="reason")
    return reason.strip()
