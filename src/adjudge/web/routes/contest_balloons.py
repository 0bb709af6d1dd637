"""Pages: the balloon queue of a contest."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.domain.errors import Conflict, InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.services.balloons import BalloonFilter, BalloonService
from adjudge.services.viewer import Viewer
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import page_router, redirect

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
Filter = Annotated[BalloonFilter, Query()]
TAB: Final = "/balloons"
_SHOWN: Final = 200
"""The oldest that wait, or the newest of all."""


def router(page: ContestPageRenderer, balloons: BalloonService) -> APIRouter:
    routes = page_router(page.pages)

    async def find(viewer: Viewer, slug: str, state: BalloonFilter) -> dict[str, Any]:
        is_all = state is BalloonFilter.ALL
        found = await balloons.list_balloons(viewer, slug, which=state, limit=_SHOWN, newest_first=is_all)
        return {"view": found.view, "items": found.items, "state": state}

    @routes.get("/contests/{slug}/balloons")
    async def queue(request: Request, viewer: Member, slug: str, state: Filter = BalloonFilter.WAITING) -> Response:
        found = await find(viewer, slug, state)
        return await page.render(request, found.pop("view"), "balloons.html", tab=TAB, error=None, **found)

    @routes.get("/contests/{slug}/balloons/state")
    async def live(request: Request, viewer: Member, slug: str, state: Filter = BalloonFilter.WAITING) -> Response:
        """The live region of the queue."""
        found = await find(viewer, slug, state)
        return await page.pages.render(request, "balloon_rows.html", contest=found["view"].contest, **found)

    @routes.post("/contests/{slug}/balloons")
    async def change(request: Request, viewer: Member, slug: str, state: Filter = BalloonFilter.WAITING) -> Response:
        """Deliver a balloon, undo that, or collect it."""
        actions = {"deliver": balloons.deliver, "undo": balloons.undo, "collect": balloons.collect}
        action = actions.get(await forms.text(request, "action"))
        if action is None:
            raise InvalidInput("action: expected deliver, undo or collect.", field="action")
        participant, label = await forms.text(request, "participant"), await forms.text(request, "label")
        try:
            await action(viewer, slug, participant, label)
        except Conflict as error:
            found = await find(viewer, slug, state)
            return await page.render(
                request, found.pop("view"), "balloons.html", tab=TAB, status=409, error=error, **found
            )
        return redirect(f"/contests/{slug}{TAB}?state={state}")

    return routes
