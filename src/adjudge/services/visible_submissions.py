"""Submissions of all participants of a contest, as far as a viewer may see them while it runs and afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from adjudge.contests.visibility import Access, RouteClass
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.errors import NotFound
from adjudge.services.contest_access import ContestView, find_view
from adjudge.services.jury_submissions import NEWEST
from adjudge.services.participants import find_participant
from adjudge.services.scoreboard_exports import ListedSubmission, describe_listed
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import participants, queries, visible_submissions
from adjudge.store.contests.activity_models import ContestSubmissionRow
from adjudge.store.contests.models import ContestProblemRow, ParticipantRow

_KINDS: Final = frozenset({ParticipantKind.OFFICIAL, ParticipantKind.UNOFFICIAL})


@dataclass(frozen=True, slots=True)
class VisibleSubmission:
    """A submission with the participant and the problem."""

    submission: ListedSubmission
    participant: ParticipantRow
    label: str | None
    """The problem; None if the viewer may not know it."""


@dataclass(frozen=True, slots=True)
class VisibleSubmissionService:
    """Lists submissions by the table of ``contests.visibility``; those of hidden participants and testers never."""

    database: Database

    async def list_submissions(
        self, viewer: Viewer, name: str, *, participant: str = "", problem: str = "", before: int | None, limit: int
    ) -> tuple[ContestView, list[VisibleSubmission]]:
        """The submissions, newest first; ``before`` is the number of the last one of the previous page."""

        async def read(tx: Tx) -> tuple[ContestView, list[VisibleSubmission]]:
            view = await find_view(tx, viewer, name)
            rows = [row for row in await queries.problems(tx, view.contest.id) if view.sees_problem(row.problem)]
            problem_id = _find_problem(rows, problem) if problem else None
            person = await _find_participant(tx, view, participant) if participant else None
            if view.access(RouteClass.OTHER_SUBMISSIONS) is Access.NONE:
                return view, []
            found = await visible_submissions.page(
                tx,
                view.contest.id,
                participant_id=None if person is None else person.id,
                problem_id=problem_id,
                before=NEWEST if before is None else before,
                limit=limit,
            )
            return view, await _describe(tx, view, found, rows)

        return await self.database.read(read)


def _find_problem(rows: Sequence[ContestProblemRow], label: str) -> str:
    found = next((row.problem.problem_id for row in rows if row.problem.label == label), None)
    if found is None:
        raise NotFound("contest_problem", label)
    return found


async def _find_participant(tx: Tx, view: ContestView, code: str) -> ParticipantRow:
    """A participant that everybody may know of."""
    row = await find_participant(tx, view.contest.id, code)
    if row.hidden or row.kind not in _KINDS:
        raise NotFound("participant", code)
    return row


async def _describe(
    tx: Tx, view: ContestView, found: Sequence[ContestSubmissionRow], problems: Sequence[ContestProblemRow]
) -> list[VisibleSubmission]:
    people = {row.id: row for row in await participants.find_many(tx, {row.participant_id for row in found})}
    labels = {row.problem.problem_id: row.problem.label for row in problems}
    own = {item.id for item in view.participants}
    return [
        VisibleSubmission(
            describe_listed(view, row, is_own=row.participant_id in own),
            people[row.participant_id],
            labels.get(row.problem_id),
        )
        for row in found
    ]
