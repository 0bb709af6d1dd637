"""Pages: the contest list and the page of a contest."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import decode_cursor, encode_cursor
from adjudge.contests import clock
from adjudge.contests.formats import get_format
from adjudge.contests.formats.homework import HomeworkConfig
from adjudge.contests.times import participant_clock
from adjudge.domain.contest import ContestPhase, ContestVisibility
from adjudge.domain.permissions import Permission
from adjudge.domain.states import ContestState
from adjudge.judge.languages import Languages
from adjudge.packages.statement_html import render_statement
from adjudge.services.contest_access import ContestView
from adjudge.services.contest_materials import ContestMaterialService
from adjudge.services.contest_registration import may_practise, may_start_virtual
from adjudge.services.contests import ContestService
from adjudge.services.viewer import Viewer
from adjudge.store.contests.contest_only import ContestOnlyRow
from adjudge.web.contest_header import ContestHeader, ContestPageRenderer, make_header
from adjudge.web.contest_rules import list_rules
from adjudge.web.mathml import render_math
from adjudge.web.render import page_router, redirect, request_translations

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
_PAGE: Final = 100
_OVER: Final = frozenset({ContestPhase.ENDED, ContestPhase.THAWED})

Listed = tuple[ContestView, ContestHeader]


def router(
    page: ContestPageRenderer, contests: ContestService, languages: Languages, materials: ContestMaterialService
) -> APIRouter:
    routes = page_router(page.pages)

    @routes.get("/contests")
    async def listed(request: Request, viewer: Reader, cursor: str | None = None) -> Response:
        if viewer.only_contest_id is not None:
            only: ContestOnlyRow = request.state.contest_only
            is_closed = viewer.user_id is None and only.visibility == ContestVisibility.PRIVATE
            return redirect("/login" if is_closed else f"/contests/{only.slug}")
        position = decode_cursor(cursor, [str])
        before = str(position[0]) if position else None
        views, after = await contests.list_contests(viewer, before=before, limit=_PAGE)
        more = f"cursor={encode_cursor([after])}" if after else ""
        return await page.pages.render(request, "contests.html", groups=_grouped(views), more=more)

    @routes.get("/contests/{slug}")
    async def overview(request: Request, viewer: Reader, slug: str) -> Response:
        view = await contests.access.find(viewer, slug)
        names = {language.id: language.name for language in languages}
        rules = list_rules(request_translations(request), view.contest.settings, names)
        return await page.render(
            request,
            view,
            "contest.html",
            description=await _description(view),
            rules=rules,
            times=_times(view),
            materials=await materials.list_materials(view),
            may_start_virtual=may_start_virtual(view),
            may_practise=may_practise(view),
        )

    @routes.get("/contests/{slug}/state")
    async def state(
        request: Request, viewer: Reader, slug: str, tab: Annotated[str, Query(max_length=40)] = ""
    ) -> Response:
        """The live region of the header of a contest."""
        view = await contests.access.find(viewer, slug)
        return await page.render_header(request, view, tab=tab)

    return routes


def _grouped(views: list[ContestView]) -> dict[str, list[Listed]]:
    """Contests that run, come and are over; those that begin or end soonest first, past ones newest first."""
    groups: dict[str, list[Listed]] = {"running": [], "coming": [], "past": []}
    for view in views:
        groups[_group(view)].append((view, make_header(view)))
    for name in ("running", "coming"):
        groups[name].sort(key=lambda item: item[1].countdown.left_us if item[1].countdown else 1 << 62)
    groups["past"].sort(key=lambda item: item[0].contest.settings.starts_at or 0, reverse=True)
    return groups


def _group(view: ContestView) -> str:
    if view.contest.state in (ContestState.CANCELED, ContestState.FINALIZED) or view.public_phase in _OVER:
        return "past"
    return "coming" if view.public_phase is ContestPhase.BEFORE else "running"


async def _description(view: ContestView) -> str:
    html = await asyncio.to_thread(render_statement, view.contest.settings.description, "md", lambda _: None)
    return await asyncio.to_thread(render_math, html)


def _times(view: ContestView) -> dict[str, int | None]:
    """Start, freeze and end for the viewer as timestamps."""
    timeline = view.times.timeline
    own = None if view.participant is None else participant_clock(view.participant)
    own_start = None if own is None else own.started_at
    return {
        "starts_at": timeline.starts_at if own_start is None else own_start,
        "deadline_at": _deadline_at(view, own or clock.ParticipantClock()),
        "freezes_at": clock.freezes_at(timeline),
        "ends_at": clock.ends_at(timeline, own),
    }


def _deadline_at(view: ContestView, own: clock.ParticipantClock) -> int | None:
    """The deadline of a homework; None with a clock of one's own, which starts at another time."""
    config = get_format(view.contest.settings.format).parse_config(view.contest.settings.format_cfg)
    if not isinstance(config, HomeworkConfig) or config.deadline_us is None or own.started_at is not None:
        return None
    return clock.timestamp_of(view.times.timeline, config.deadline_us + own.delay_us + own.extra_us)
