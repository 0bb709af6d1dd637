"""Decisions of the jury about submissions and penalties: each is logged and changes the scoreboard at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from adjudge.contests import jury, lifecycle
from adjudge.domain.errors import Conflict, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.domain.verdict import Verdict
from adjudge.services.contest_access import ContestAccess, find_view
from adjudge.services.jury_submissions import JURY, SubmissionForJury, describe
from adjudge.services.participants import find_participant
from adjudge.services.reauthentication import Confirmation, ReauthenticationService
from adjudge.services.rejudge import RejudgeService
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import participants
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.activity_models import ContestSubmissionRow
from adjudge.store.contests.models import ParticipantRow
from adjudge.store.contests.submissions import JuryDecision
from adjudge.store.judging import rejudge
from adjudge.store.judging.models import RejudgeBatchRow, RejudgeSelection, RevisionChoice, VerdictPolicy

MAX_PENALTY_SEC: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class ContestSubmissionService:
    """Operations of the jury."""

    database: Database
    access: ContestAccess
    reauthentication: ReauthenticationService
    rejudges: RejudgeService

    async def verify(self, viewer: Viewer, name: str, number: int, *, verdict: Verdict | None) -> SubmissionForJury:
        """Confirm the verdict that the member of the jury saw, so that it counts; None takes the confirmation back."""

        def change(row: ContestSubmissionRow, before: JuryDecision) -> JuryDecision:
            if verdict is None:
                return replace(before, verified_by=None)
            if row.verdict is None:
                raise InvalidInput("number: the submission has no verdict yet.", field="number")
            if row.verdict is not verdict:
                raise Conflict(
                    f"verdict: it is {row.verdict} now, not {verdict}; look at the submission, and verify it again."
                )
            return replace(before, verified_by=viewer.id, seen_verdict=verdict)

        return await self._decide(viewer, name, number, change, "")

    async def ignore(
        self, viewer: Viewer, name: str, number: int, *, is_ignored: bool, reason: str
    ) -> SubmissionForJury:
        """Leave a submission out of the scoreboard, or count it again."""
        return await self._decide(
            viewer, name, number, lambda _, before: replace(before, is_ignored=is_ignored), _required(reason)
        )

    async def make_official(
        self, viewer: Viewer, name: str, number: int, *, is_official: bool, reason: str
    ) -> SubmissionForJury:
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
        confirmation: Confirmation,
    ) -> SubmissionForJury:
        """Replace the verdict of the judge; None takes the replacement back. The jury member confirms who they are."""
        reason = _required(reason)
        if score_micro is not None and score_micro < 0:
            raise InvalidInput("score: must not be negative.", field="score")

        def change(_: ContestSubmissionRow, before: JuryDecision) -> JuryDecision:
            return replace(
                before,
                override_verdict=verdict,
                override_score_micro=score_micro,
                overridden_by=None if verdict is None else viewer.id,
                override_reason=None if verdict is None else reason,
            )

        await self._confirm(viewer, name, confirmation)
        return await self._decide(viewer, name, number, change, reason)

    async def adjust_penalty(
        self, viewer: Viewer, name: str, code: str, *, penalty_sec: int, reason: str, confirmation: Confirmation
    ) -> ParticipantRow:
        """Set the penalty that the jury adds to that of a participant; negative values reduce it."""
        reason = _required(reason)
        if abs(penalty_sec) > MAX_PENALTY_SEC:
            raise InvalidInput(
                f"penalty_sec: expected -{MAX_PENALTY_SEC} to {MAX_PENALTY_SEC} seconds.", field="penalty_sec"
            )
        await self._confirm(viewer, name, confirmation)

        async def operation(tx: Tx) -> ParticipantRow:
            view = await find_view(tx, viewer, name)
            view.require(*JURY)
            await lifecycle.lock_changeable(tx, view.contest.id)
            row = await find_participant(tx, view.contest.id, code)
            changed = replace(row, penalty_adjust_sec=penalty_sec)
            await jury.update_participant(tx, changed, actor=viewer.id, reason=reason)
            return await participants.find(tx, row.id)

        return await self.database.transact(operation)

    async def rejudge(self, viewer: Viewer, name: str, number: int, *, reason: str) -> RejudgeBatchRow:
        """Judge a submission again with the revision that the contest uses; the verdict changes when it is applied."""
        row = await self._find(viewer, name, number)
        return await self.rejudges.create_batch(
            viewer,
            RejudgeSelection(ids=(row.submission_id,)),
            problem=None,
            policy=VerdictPolicy.LATEST,
            revision=RevisionChoice.PINNED,
            reason=_required(reason),
        )

    async def apply_rejudge(self, viewer: Viewer, name: str, number: int, batch_id: str) -> RejudgeBatchRow:
        """Let the new verdict of a rejudge of this submission count."""
        await self._check_batch(viewer, name, number, batch_id)
        return (await self.rejudges.apply_batch(viewer, batch_id, skip_changed=False))[0]

    async def discard_rejudge(self, viewer: Viewer, name: str, number: int, batch_id: str) -> RejudgeBatchRow:
        """Keep the verdict that the submission has."""
        await self._check_batch(viewer, name, number, batch_id)
        return await self.rejudges.discard_batch(viewer, batch_id, "kept by the jury")

    async def _check_batch(self, viewer: Viewer, name: str, number: int, batch_id: str) -> None:
        """Raise, unless the batch is about this submission only: others need the rights of rejudging."""
        row = await self._find(viewer, name, number)
        found = await self.database.read(lambda tx: rejudge.find_many(tx, [batch_id]))
        batch = found.get(batch_id)
        if batch is None or batch.filter.get("ids") != [row.submission_id]:
            raise NotFound("rejudge_batch", batch_id)

    async def _find(self, viewer: Viewer, name: str, number: int) -> ContestSubmissionRow:
        view = await self.access.find_as(viewer, name, *JURY)
        if view.contest.end_of_updates_at is not None:
            raise Conflict("The results of this contest are final; nothing of it can change any more.")
        contest_id = view.contest.id
        return await self.database.read(lambda tx: contest_submissions.find_by_number(tx, contest_id, number))

    async def _confirm(self, viewer: Viewer, name: str, confirmation: Confirmation) -> None:
        """Ask only those who may act at all."""
        await self.access.find_as(viewer, name, *JURY)
        await self.reauthentication.require(viewer, Permission.CONTEST_JURY, confirmation)

    async def _decide(
        self,
        viewer: Viewer,
        name: str,
        number: int,
        change: Callable[[ContestSubmissionRow, JuryDecision], JuryDecision],
        reason: str,
    ) -> SubmissionForJury:
        async def operation(tx: Tx) -> SubmissionForJury:
            view = await find_view(tx, viewer, name)
            view.require(*JURY)
            row = await contest_submissions.find_by_number(tx, view.contest.id, number)
            decision = change(row, _decision_of(row))
            await jury.decide(tx, row.submission_id, decision, version=row.version, actor=viewer.id, reason=reason)
            return (await describe(tx, view, [await contest_submissions.find(tx, row.submission_id)]))[0]

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


def _required(reason: str) -> str:
    if not reason.strip():
        raise InvalidInput("reason: required; it is kept in the audit log.", field="reason")
    return reason.strip()
