"""Pages: scoreboard, projector view, the submissions of a cell, and the unfreezing ceremony."""

from __future__ import annotations

import json
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.contests.live_board import BoardFilter
from adjudge.contests.visibility import Access, RouteClass
from adjudge.domain.contest import ContestRole
from adjudge.domain.permissions import Permission
from adjudge.services.scoreboard import ScoreboardService
from adjudge.services.scoreboard_exports import ScoreboardExportService
from adjudge.services.viewer import Viewer
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.i18n import Translations
from adjudge.web.render import page_router, request_translations

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
Given = Annotated[str, Query(max_length=36)]
_ROWS: Final = 100
"""Rows in the page itself; the script loads more."""
_ORGANIZATIONS: Final = 30
"""Organisations that the filter lists; with more of them it is a search."""
_TEXTS: Final = (
    "shown",
    "frozen",
    "first",
    "solved",
    "partial",
    "tried",
    "pending",
    "disqualified",
    "unofficial",
    "virtual",
    "test",
)


def router(page: ContestPageRenderer, scoreboards: ScoreboardService, exports: ScoreboardExportService) -> APIRouter:
    routes = page_router(page.pages)

    @routes.get("/contests/{slug}/scoreboard")
    async def scoreboard(
        request: Request,
        viewer: Reader,
        slug: str,
        *,
        view: Given = "",
        group: Given = "",
        organization: Annotated[str, Query(max_length=200)] = "",
        projector: Given = "",
    ) -> Response:
        contest = await scoreboards.access.find(viewer, slug)
        is_jury = view == "jury"
        found = await scoreboards.find(viewer, slug, is_jury=is_jury)
        chosen = await scoreboards.find_organization(found, organization)
        which = BoardFilter(group or None, chosen.id if chosen else None)
        query = {"view": "jury" if is_jury else "", "group": group, "organization": chosen.id if chosen else ""}
        return await page.render(
            request,
            contest,
            "scoreboard_projector.html" if projector else "scoreboard.html",
            tab="/scoreboard",
            board=await scoreboards.page(found, which, offset=0, limit=_ROWS),
            filters=await scoreboards.filters(found, limit=_ORGANIZATIONS + 1),
            most_organizations=_ORGANIZATIONS,
            is_jury=is_jury,
            edits_awards=bool(contest.roles & {ContestRole.ORGANISER, ContestRole.JUDGE}),
            sees_statistics=contest.access(RouteClass.STATISTICS) is not Access.NONE,
            group=group,
            organization=chosen,
            projector=bool(projector),
            query=urlencode({name: value for name, value in query.items() if value}),
            texts=_texts(request_translations(request)),
        )

    @routes.get("/contests/{slug}/scoreboard/{participant}/{label}")
    async def cell(request: Request, viewer: Reader, slug: str, participant: str, label: str) -> Response:
        person, items = await exports.list_cell(viewer, slug, participant, label)
        contest = await scoreboards.access.find(viewer, slug)
        return await page.render(
            request,
            contest,
            "scoreboard_cell.html",
            tab="/scoreboard",
            participant=person,
            label=label,
            items=items,
        )

    @routes.get("/contests/{slug}/resolver")
    async def resolver(request: Request, viewer: Reader, slug: str) -> Response:
        await exports.resolver(viewer, slug)  # checks that the viewer may see it
        contest = await scoreboards.access.find(viewer, slug)
        return await page.render(
            request, contest, "resolver.html", tab="/scoreboard", texts=_texts(request_translations(request))
        )

    return routes


def _texts(spoken: Translations) -> str:
    """The texts that the script needs, as JSON."""
    return json.dumps({name: spoken.label("scoreboard", name) for name in _TEXTS}, ensure_ascii=False)
