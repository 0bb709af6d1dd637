"""Submissions of a contest for its jury: list, verification, override, ignored and late submissions, penalties."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routing import api_router
from adjudge.api.schema.contest_jury import (
    IgnoreRequest,
    JuryRejudgeRequest,
    OfficialRequest,
    OverrideRequest,
    PauseJudgingRequest,
    PenaltyRequest,
    VerifyRequest,
)
from adjudge.domain.contest import MICRO_POINTS, to_micro_points
from adjudge.domain.permissions import Permission
from adjudge.domain.verdict import Verdict
from adjudge.schema.contest_submissions import (
    ContestSubmissionDetail,
    ContestSubmissionPage,
    ContestSubmissionRead,
    JuryDecisionRead,
    PenaltyAdjustmentRead,
)
from adjudge.schema.rejudge import RejudgeBatchRead
from adjudge.services.contest_submissions import ContestSubmissionService
from adjudge.services.judging_pause import JudgingPauseService
from adjudge.services.jury_submissions import JuryQuery, JurySubmissionService, SubmissionForJury
from adjudge.services.viewer import Viewer

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
"""Judges are ordinary users with a role in the contest; the service checks it."""
Judge = Annotated[Viewer, require_permission(Permission.CONTEST_JURY)]
"""For what changes something: a token that may only take part must not do it."""
_MICROSECONDS = 1_000_000


def router(
    submissions: ContestSubmissionService, reader: JurySubmissionService, pauses: JudgingPauseService
) -> APIRouter:
    """All routes of the jury on submissions."""
    routes = api_router("contests", "/contests/{contest}/jury")
    _add_read_routes(routes, reader)
    _add_decision_routes(routes, submissions)
    _add_confirmed_routes(routes, submissions)
    _add_rejudge_routes(routes, submissions)
    _add_pause_routes(routes, pauses)
    return routes


def jury_query(
    *,
    problem: Annotated[str, Query(max_length=36, description="Label.")] = "",
    participant: Annotated[str, Query(max_length=64, description="Code or id.")] = "",
    language: Annotated[str, Query(max_length=64)] = "",
    verdict: Verdict | None = None,
    unverified: Annotated[bool, Query(description="Only those that wait for verification.")] = False,
    waiting: Annotated[bool, Query(description="Only those without a verdict.")] = False,
    ignored: Annotated[bool, Query(description="Only those that are left out of the scoreboard.")] = False,
    late: Annotated[bool, Query(description="Only those outside the participant's time.")] = False,
) -> JuryQuery:
    """The filter in the parameters of a request."""
    return JuryQuery(problem, participant, language, verdict, unverified, waiting, ignored, late)


def _add_read_routes(routes: APIRouter, reader: JurySubmissionService) -> None:
    @routes.get("/submissions", summary="List all submissions of a contest, newest first")
    async def page(
        contest: str,
        viewer: Member,
        asked: Annotated[JuryQuery, Depends(jury_query)],
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> ContestSubmissionPage:
        position = decode_cursor(cursor, [int])
        before = int(str(position[0])) if position else None
        _, items = await reader.list_submissions(viewer, contest, asked, before=before, limit=limit + 1)
        after = encode_cursor([items[limit - 1].row.number]) if len(items) > limit else None
        return ContestSubmissionPage(items=[_read(item) for item in items[:limit]], next=after)

    @routes.get("/submissions/{number}", summary="Get a submission of a contest and the decisions about it")
    async def one(contest: str, number: int, viewer: Member) -> ContestSubmissionDetail:
        found = await reader.get(viewer, contest, number)
        return ContestSubmissionDetail(
            submission=_read(found.item),
            previous=None if found.previous is None else found.previous.number,
            log=[JuryDecisionRead.of(entry) for entry in found.log],
        )


def _add_decision_routes(routes: APIRouter, submissions: ContestSubmissionService) -> None:
    @routes.post("/submissions/{number}:verify", summary="Confirm a verdict, or take the confirmation back")
    async def verify(contest: str, number: int, body: VerifyRequest, viewer: Judge) -> ContestSubmissionRead:
        return _read(await submissions.verify(viewer, contest, number, verdict=body.verdict))

    @routes.post("/submissions/{number}:ignore", summary="Leave a submission out of the scoreboard, or count it again")
    async def ignore(contest: str, number: int, body: IgnoreRequest, viewer: Judge) -> ContestSubmissionRead:
        return _read(await submissions.ignore(viewer, contest, number, is_ignored=body.is_ignored, reason=body.reason))

    @routes.post("/submissions/{number}:make-official", summary="Count a submission outside the participant's time")
    async def make_official(contest: str, number: int, body: OfficialRequest, viewer: Judge) -> ContestSubmissionRead:
        return _read(
            await submissions.make_official(viewer, contest, number, is_official=body.is_official, reason=body.reason)
        )


def _add_confirmed_routes(routes: APIRouter, submissions: ContestSubmissionService) -> None:
    @routes.post(
        "/submissions/{number}:override",
        summary="Replace the verdict of the judge, or take that back",
        description="The sender confirms it: with the password, by a login of the last minutes, or, with an API token "
        "that has the scope `contest:jury`, by `confirmed`.",
    )
    async def override(contest: str, number: int, body: OverrideRequest, viewer: Judge) -> ContestSubmissionRead:
        return _read(
            await submissions.override(
                viewer,
                contest,
                number,
                verdict=body.verdict,
                score_micro=None if body.score is None else to_micro_points(body.score),
                reason=body.reason,
                confirmation=body.confirmation(),
            )
        )

    @routes.post(
        "/participants/{code}:adjust-penalty",
        summary="Set the penalty that the jury adds to a participant",
        description="In seconds; negative values reduce the penalty. Confirmed as an override is.",
    )
    async def adjust_penalty(contest: str, code: str, body: PenaltyRequest, viewer: Judge) -> PenaltyAdjustmentRead:
        row = await submissions.adjust_penalty(
            viewer,
            contest,
            code,
            penalty_sec=body.penalty_sec,
            reason=body.reason,
            confirmation=body.confirmation(),
        )
        return PenaltyAdjustmentRead(participant_id=row.id, participant=row.code, penalty_sec=row.penalty_adjust_sec)


def _add_rejudge_routes(routes: APIRouter, submissions: ContestSubmissionService) -> None:
    @routes.post(
        "/submissions/{number}:rejudge",
        status_code=202,
        summary="Judge a submission again",
        description="The verdict changes when the rejudge is applied.",
    )
    async def rejudge(contest: str, number: int, body: JuryRejudgeRequest, viewer: Judge) -> RejudgeBatchRead:
        return RejudgeBatchRead.of(await submissions.rejudge(viewer, contest, number, reason=body.reason))

    @routes.post("/submissions/{number}/rejudges/{batch_id}:apply", summary="Let the new verdict of a rejudge count")
    async def apply_rejudge(contest: str, number: int, batch_id: str, viewer: Judge) -> RejudgeBatchRead:
        return RejudgeBatchRead.of(await submissions.apply_rejudge(viewer, contest, number, batch_id))

    @routes.post("/submissions/{number}/rejudges/{batch_id}:discard", summary="Discard the new verdict of a rejudge")
    async def discard_rejudge(contest: str, number: int, batch_id: str, viewer: Judge) -> RejudgeBatchRead:
        return RejudgeBatchRead.of(await submissions.discard_rejudge(viewer, contest, number, batch_id))


def _add_pause_routes(routes: APIRouter, pauses: JudgingPauseService) -> None:
    @routes.post(
        "/problems/{label}:pause-judging",
        status_code=204,
        summary="Pause the judging of a problem",
        description="Submissions are accepted and wait; judge runs that have begun are finished.",
        response_class=Response,
    )
    async def pause(contest: str, label: str, body: PauseJudgingRequest, viewer: Judge) -> Response:
        await pauses.set_paused(viewer, contest, label, is_paused=True, reason=body.reason)
        return Response(status_code=204)

    @routes.post(
        "/problems/{label}:resume-judging",
        status_code=204,
        summary="Resume the judging of a problem",
        description="Submissions that wait are judged in the order in which they were made.",
        response_class=Response,
    )
    async def resume(contest: str, label: str, body: PauseJudgingRequest, viewer: Judge) -> Response:
        await pauses.set_paused(viewer, contest, label, is_paused=False, reason=body.reason)
        return Response(status_code=204)


def _read(item: SubmissionForJury) -> ContestSubmissionRead:
    score = item.row.override_score_micro
    return ContestSubmissionRead.of(
        item.row,
        participant=item.participant.code,
        problem=item.row.label,
        time_sec=None if item.time_us is None else item.time_us / _MICROSECONDS,
        is_late=item.is_late,
        override_score=None if score is None else score / MICRO_POINTS,
    )
