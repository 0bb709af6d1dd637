"""Page: the own participation in a contest: registration, teams, windows, virtual runs and practice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.domain.errors import AdjudgeError, NotFound
from adjudge.domain.permissions import Permission
from adjudge.services.contest_registration import ContestRegistrationService
from adjudge.services.viewer import Viewer
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import no_store, page_router, redirect

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]

_ACTIONS: Final[dict[str, Callable[[ContestRegistrationService, Viewer, str], Awaitable[object]]]] = {
    "leave": ContestRegistrationService.leave,
    "window": ContestRegistrationService.start_window,
    "virtual": ContestRegistrationService.start_virtual,
    "practice": ContestRegistrationService.practise,
}
"""Buttons of the registration page that need nothing but the contest."""


def router(page: ContestPageRenderer, registrations: ContestRegistrationService) -> APIRouter:
    """The page of the own participation."""
    routes = page_router(page.pages)

    async def show(request: Request, viewer: Viewer, slug: str, code: str, **shown: Any) -> Response:
        info = await registrations.describe(viewer, slug, code)
        shown = {"error": None, "name": "", "join_code": "", "made": None, **shown}
        status = shown["error"].http_status if shown["error"] else 200
        own = next((item for item in info.view.participants if item.run_no == 0), None)
        return await page.render(
            request, info.view, "contest_register.html", status=status, info=info, own=own, code=code, **shown
        )

    @routes.get("/contests/{slug}/register")
    async def form(
        request: Request, viewer: Member, slug: str, code: Annotated[str, Query(max_length=100)] = ""
    ) -> Response:
        return await show(request, viewer, slug, code)

    @routes.post("/contests/{slug}/register")
    async def register(request: Request, viewer: Member, slug: str) -> Response:
        do = await forms.text(request, "do", limit=20)
        code, name = await forms.text(request, "code", limit=100), await forms.text(request, "name", limit=200)
        join_code = await forms.text(request, "join_code", limit=100)
        try:
            if do in ("team", "renew"):
                made = await (
                    registrations.create_team(viewer, slug, name, code)
                    if do == "team"
                    else registrations.renew_join_code(viewer, slug)
                )
                return no_store(await show(request, viewer, slug, "", made=made))
            if do == "join":
                await registrations.join_team(viewer, slug, join_code)
            elif do in _ACTIONS:
                await _ACTIONS[do](registrations, viewer, slug)
            else:
                await registrations.register(viewer, slug, code)
        except NotFound:
            raise
        except AdjudgeError as error:
            return await show(request, viewer, slug, code, error=error, name=name, join_code=join_code)
        return redirect(f"/contests/{slug}", done="saved")

    return routes
