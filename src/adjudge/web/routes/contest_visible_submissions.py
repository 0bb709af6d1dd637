"""Page: the submissions of all participants of a contest, as far as the viewer may see them."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import decode_cursor, encode_cursor
from adjudge.domain.permissions import Permission
from adjudge.services.contests import ContestService
from adjudge.services.viewer import Viewer
from adjudge.services.visible_submissions import VisibleSubmissionService
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import page_router

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
TAB: Final = "/submissions/all"
_PAGE: Final = 50


def router(page: ContestPageRenderer, contests: ContestService, submissions: VisibleSubmissionService) -> APIRouter:
    routes = page_router(page.pages)

    @routes.get("/contests/{slug}/submissions/all")
    async def every(
        request: Request,
        viewer: Reader,
        slug: str,
        *,
        participant: Annotated[str, Query(max_length=64)] = "",
        problem: Annotated[str, Query(max_length=36)] = "",
        cursor: Annotated[str, Query(max_length=2048)] = "",
    ) -> Response:
        position = decode_cursor(cursor or None, [int])
        before = int(str(position[0])) if position else None
        view, items = await submissions.list_submissions(
            viewer, slug, participant=participant.strip(), problem=problem, before=before, limit=_PAGE + 1
        )
        asked = {"participant": participant.strip(), "problem": problem}
        more = ""
        if len(items) > _PAGE:
            more = urlencode({**asked, "cursor": encode_cursor([items[_PAGE - 1].submission.number])})
        return await page.render(
            request,
            view,
            "contest_all_submissions.html",
            tab=TAB,
            items=items[:_PAGE],
            asked=asked,
            query=urlencode({**asked, "cursor": cursor}),
            problems=await contests.list_problems(view),
            more=more,
        )

    return routes
