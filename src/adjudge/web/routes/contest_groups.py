"""Pages: groups and organisations of the participants of a contest."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.domain.contest import ContestRole
from adjudge.domain.errors import AdjudgeError, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.services.contest_groups import ContestGroupService
from adjudge.services.viewer import Viewer
from adjudge.store.contests.models import ContestGroupRow, OrganizationRow
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import page_router, redirect
from adjudge.web.routes.contest_participants import TAB, minutes_us

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
_NEW_ROWS: Final = 2
_EMPTY: Final = ContestGroupRow("", "", "", "")
_TIMES: Final = ("group", "delay_min", "extra_min", "reason")
_ORGANIZATION: Final = ("code", "name", "formal_name", "country", "icpc_id")


def router(page: ContestPageRenderer, groups: ContestGroupService) -> APIRouter:
    """The pages of groups and organisations."""
    routes = page_router(page.pages)
    _add_group_routes(routes, page, groups)
    _add_organization_routes(routes, page, groups)
    return routes


def _add_group_routes(routes: APIRouter, page: ContestPageRenderer, groups: ContestGroupService) -> None:
    async def show(request: Request, viewer: Viewer, slug: str, **shown: Any) -> Response:
        view = await groups.access.find_as(viewer, slug, ContestRole.ORGANISER)
        stored = await groups.list_groups(viewer, slug)
        given = {"error": None, "rows": stored, "times": dict.fromkeys(_TIMES, ""), **shown}
        status = given["error"].http_status if given["error"] else 200
        rows = [*given.pop("rows"), *[_EMPTY] * _NEW_ROWS]
        return await page.render(
            request, view, "contest_groups.html", tab=TAB, status=status, rows=rows, stored=stored, **given
        )

    @routes.get("/contests/{slug}/groups")
    async def listed(request: Request, viewer: Member, slug: str) -> Response:
        return await show(request, viewer, slug)

    @routes.post("/contests/{slug}/groups")
    async def save(request: Request, viewer: Member, slug: str) -> Response:
        rows = await _sent_groups(request)
        try:
            await groups.save_groups(viewer, slug, rows)
        except NotFound:
            raise
        except AdjudgeError as error:
            return await show(request, viewer, slug, error=error, rows=rows)
        return redirect(f"/contests/{slug}/groups", done="saved")

    @routes.post("/contests/{slug}/groups/times")
    async def times(request: Request, viewer: Member, slug: str) -> Response:
        given = {name: (await forms.text(request, name, limit=500)).strip() for name in _TIMES}
        try:
            delay_us, extra_us = (
                minutes_us(given[name], name) if given[name] else None for name in ("delay_min", "extra_min")
            )
            await groups.set_group_times(
                viewer, slug, given["group"], delay_us=delay_us, extra_us=extra_us, reason=given["reason"]
            )
        except NotFound:
            raise
        except AdjudgeError as error:
            return await show(request, viewer, slug, error=error, times=given)
        return redirect(f"/contests/{slug}/groups", done="saved")


async def _sent_groups(request: Request) -> list[ContestGroupRow]:
    """The rows of the form that have an id; the boxes carry the index of their row."""
    codes, names, icpc_ids = [await forms.checked_values(request, name) for name in ("code", "name", "icpc_id")]
    if not len(codes) == len(names) == len(icpc_ids):
        raise InvalidInput("code: every group needs an ID, a name and an ICPC ID.", field="code")
    ranked, hidden = [set(await forms.checked_values(request, name)) for name in ("ranked", "hidden")]
    return [
        ContestGroupRow(
            "",
            "",
            code.strip(),
            names[index],
            icpc_ids[index].strip() or None,
            str(index) in ranked,
            str(index) in hidden,
        )
        for index, code in enumerate(codes)
        if code.strip()
    ]


def _add_organization_routes(routes: APIRouter, page: ContestPageRenderer, groups: ContestGroupService) -> None:
    async def show(request: Request, viewer: Viewer, slug: str, **shown: Any) -> Response:
        view = await groups.access.find_as(viewer, slug, ContestRole.ORGANISER)
        given = {"error": None, "given": dict.fromkeys(_ORGANIZATION, ""), **shown}
        status = given["error"].http_status if given["error"] else 200
        rows = await groups.list_organizations(viewer, slug)
        return await page.render(
            request, view, "contest_organizations.html", tab=TAB, status=status, rows=rows, **given
        )

    @routes.get("/contests/{slug}/organizations")
    async def listed(request: Request, viewer: Member, slug: str) -> Response:
        return await show(request, viewer, slug)

    @routes.post("/contests/{slug}/organizations")
    async def save(request: Request, viewer: Member, slug: str) -> Response:
        given = {name: (await forms.text(request, name, limit=200)).strip() for name in _ORGANIZATION}
        code, name, *others = given.values()
        row = OrganizationRow("", code, name, *(value or None for value in others))
        try:
            await groups.save_organization(viewer, slug, row)
        except NotFound:
            raise
        except AdjudgeError as error:
            return await show(request, viewer, slug, error=error, given=given)
        return redirect(f"/contests/{slug}/organizations", done="saved")
