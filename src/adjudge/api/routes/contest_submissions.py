"""Submissions of all participants of a contest, as far as the viewer may see them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routing import api_router
from adjudge.domain.permissions import Permission
from adjudge.schema.contest_submissions import VisibleSubmissionPage, VisibleSubmissionRead
from adjudge.services.viewer import Viewer
from adjudge.services.visible_submissions import VisibleSubmission, VisibleSubmissionService

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]


def router(submissions: VisibleSubmissionService) -> APIRouter:
    routes = api_router("contests", "/contests/{contest}/submissions")

    @routes.get(
        "",
        summary="List the submissions of all participants, newest first",
        description="What is visible of them depends on the phase and the settings of the contest.",
    )
    async def page(
        contest: str,
        viewer: Reader,
        *,
        participant: Annotated[str, Query(max_length=64, description="Code or id.")] = "",
        problem: Annotated[str, Query(max_length=36, description="Label.")] = "",
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> VisibleSubmissionPage:
        position = decode_cursor(cursor, [int])
        before = int(str(position[0])) if position else None
        _, items = await submissions.list_submissions(
            viewer, contest, participant=participant, problem=problem, before=before, limit=limit + 1
        )
        after = encode_cursor([items[limit - 1].submission.number]) if len(items) > limit else None
        return VisibleSubmissionPage(items=[_read(item) for item in items[:limit]], next=after)

    return routes


def _read(item: VisibleSubmission) -> VisibleSubmissionRead:
    return VisibleSubmissionRead.of(
        item.submission,
        participant_id=item.participant.id,
        participant=item.participant.code,
        name=item.participant.name,
        problem=item.label,
    )
