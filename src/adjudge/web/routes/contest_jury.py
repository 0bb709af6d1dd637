"""Pages: the dashboard of a contest's jury, and the penalties that the jury adds."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.contests import clock
from adjudge.domain.errors import AdjudgeError, InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.services.contest_access import ContestView
from adjudge.services.contest_submissions import ContestSubmissionService
from adjudge.services.judging_pause import JudgingPauseService
from adjudge.services.jury_dashboard import JuryDashboardService
from adjudge.services.passwords import LONGEST
from adjudge.services.reauthentication import Confirmation, ReauthenticationService
from adjudge.services.viewer import Viewer
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import page_router, redirect
from adjudge.web.routes.contest_lifecycle import available_actions

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
TAB: Final = "/jury"
_QUICK: Final = (
    "publish",
    "start-now",
    "pause-countdown",
    "resume-countdown",
    "pause",
    "resume",
    "freeze",
    "thaw",
    "finalize",
)
"""Actions of the lifecycle that need no input."""


def router(
    page: ContestPageRenderer,
    dashboard: JuryDashboardService,
    decisions: ContestSubmissionService,
    reauthentication: ReauthenticationService,
    pauses: JudgingPauseService,
) -> APIRouter:
    routes = page_router(page.pages)
    _add_dashboard_routes(routes, page, dashboard)
    _add_pause_route(routes, pauses)
    _add_penalty_routes(routes, page, dashboard, decisions, reauthentication)
    return routes


def _add_dashboard_routes(routes: APIRouter, page: ContestPageRenderer, dashboard: JuryDashboardService) -> None:
    async def shown(viewer: Viewer, slug: str) -> tuple[ContestView, dict[str, Any]]:
        found = await dashboard.get(viewer, slug)
        view = found.view
        actions = [name for name in _QUICK if view.is_organiser and name in available_actions(view)]
        timeline = view.times.timeline
        times = {
            "starts_at": timeline.starts_at,
            "freezes_at": clock.freezes_at(timeline),
            "ends_at": clock.ends_at(timeline),
        }
        return view, {"found": found, "actions": actions, "times": times, "phase": view.public_phase}

    @routes.get("/contests/{slug}/jury")
    async def overview(request: Request, viewer: Member, slug: str) -> Response:
        view, given = await shown(viewer, slug)
        return await page.render(request, view, "jury_dashboard.html", tab=TAB, **given)

    @routes.get("/contests/{slug}/jury/state")
    async def live(request: Request, viewer: Member, slug: str) -> Response:
        """The live region of the dashboard."""
        view, given = await shown(viewer, slug)
        return await page.pages.render(request, "jury_dashboard_state.html", view=view, contest=view.contest, **given)


def _add_pause_route(routes: APIRouter, pauses: JudgingPauseService) -> None:
    @routes.post("/contests/{slug}/jury/problems/{label}/judging")
    async def judging(request: Request, viewer: Member, slug: str, label: str) -> Response:
        """Pause or resume the judging of a problem."""
        is_paused = await forms.text(request, "pause", limit=1) == "1"
        reason = await forms.text(request, "reason", limit=500)
        await pauses.set_paused(viewer, slug, label, is_paused=is_paused, reason=reason)
        return redirect(f"/contests/{slug}/jury", done="saved")


def _add_penalty_routes(
    routes: APIRouter,
    page: ContestPageRenderer,
    dashboard: JuryDashboardService,
    decisions: ContestSubmissionService,
    reauthentication: ReauthenticationService,
) -> None:
    async def render(request: Request, viewer: Viewer, slug: str, **shown: Any) -> Response:
        view, rows = await dashboard.list_penalties(viewer, slug)
        given = {"error": None, "entered": {"participant": "", "minutes": "", "reason": ""}, **shown}
        return await page.render(
            request,
            view,
            "jury_penalties.html",
            tab=TAB,
            status=given["error"].http_status if given["error"] else 200,
            rows=rows,
            needs_password=not await reauthentication.is_recent(viewer),
            **given,
        )

    @routes.get("/contests/{slug}/jury/penalties")
    async def penalties(request: Request, viewer: Member, slug: str) -> Response:
        return await render(request, viewer, slug)

    @routes.post("/contests/{slug}/jury/penalties")
    async def adjust(request: Request, viewer: Member, slug: str) -> Response:
        entered = {name: (await forms.text(request, name, limit=500)).strip() for name in _PENALTY_FIELDS}
        password = await forms.text(request, "password", limit=LONGEST)
        try:
            await decisions.adjust_penalty(
                viewer,
                slug,
                entered["participant"],
                penalty_sec=_seconds(entered["minutes"]),
                reason=entered["reason"],
                confirmation=Confirmation(password),
            )
        except AdjudgeError as error:
            return await render(request, viewer, slug, error=error, entered=entered)
        return redirect(f"/contests/{slug}/jury/penalties", done="saved")


_PENALTY_FIELDS: Final = ("participant", "minutes", "reason")


def _seconds(minutes: str) -> int:
    try:
        return round(float(minutes) * 60)
    except (ValueError, OverflowError):
        raise InvalidInput("minutes: expected a number such as 20 or -20.", field="minutes") from None
