"""Submissions of a contest for its jury: lists, verification, override, ignored and late submissions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.schema.contest_jury import IgnoreRequest, OfficialRequest, OverrideRequest, VerifyRequest
from adjudge.domain.contest import MICRO_POINTS, to_micro_points
from adjudge.domain.permissions import Permission
from adjudge.domain.verdict import Verdict
from adjudge.schema.contest_submissions import ContestSubmissionPage, ContestSubmissionRead
from adjudge.services.contest_submissions import ContestSubmissionService
from adjudge.services.viewer import Viewer
from adjudge.store.contests.activity_models import ContestSubmissionRow

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
"""Judges are ordinary users with a role in the contest; the service checks it."""


def router(submissions: ContestSubmissionService) -> APIRouter:
    """All routes of the jury on submissions."""
    routes = APIRouter(prefix="/contests/{contest}/jury/submissions", tags=["contests"])

    @routes.get("", summary="List all submissions of a contest, newest first")
    async def page(
        contest: str,
        viewer: Member,
        *,
        problem: Annotated[str | None, Query(max_length=36, description="Label.")] = None,
        verdict: Verdict | None = None,
        unverified: Annotated[bool, Query(description="Only those that wait for verification.")] = False,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> ContestSubmissionPage:
        position = decode_cursor(cursor, [int])
        rows = await submissions.list_submissions(
            viewer,
            contest,
            problem=problem,
            verdict=verdict,
            only_unverified=unverified,
            before=int(str(position[0])) if position else None,
            limit=limit + 1,
        )
        after = encode_cursor([rows[limit - 1].number]) if len(rows) > limit else None
        return ContestSubmissionPage(items=[_read(row) for row in rows[:limit]], next=after)

    @routes.post("/{number}:verify", summary="Confirm a verdict, or take the confirmation back")
    async def verify(contest: str, number: int, body: VerifyRequest, viewer: Member) -> ContestSubmissionRead:
        return _read(await submissions.verify(viewer, contest, number, is_verified=body.is_verified))

    @routes.post("/{number}:ignore", summary="Leave a submission out of the scoreboard, or count it again")
    async def ignore(contest: str, number: int, body: IgnoreRequest, viewer: Member) -> ContestSubmissionRead:
        return _read(await submissions.ignore(viewer, contest, number, is_ignored=body.is_ignored, reason=body.reason))

    @routes.post("/{number}:make-official", summary="Count a submission outside the participant's time")
    async def make_official(contest: str, number: int, body: OfficialRequest, viewer: Member) -> ContestSubmissionRead:
        return _read(
            await submissions.make_official(viewer, contest, number, is_official=body.is_official, reason=body.reason)
        )

    @routes.post("/{number}:override", summary="Replace the verdict of the judge, or take that back")
    async def override(contest: str, number: int, body: OverrideRequest, viewer: Member) -> ContestSubmissionRead:
        score_micro = None if body.score is None else to_micro_points(body.score)
        return _read(
            await submissions.override(
                viewer, contest, number, verdict=body.verdict, score_micro=score_micro, reason=body.reason
            )
        )

    return routes


def _read(row: ContestSubmissionRow) -> ContestSubmissionRead:
    score = row.override_score_micro
    return ContestSubmissionRead.of(
        row, problem=row.label, override_score=None if score is None else score / MICRO_POINTS
    )
