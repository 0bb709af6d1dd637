"""Pages: a new contest, the settings of a contest, and its roles."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.domain.contest import SECOND_US, ContestRole
from adjudge.domain.errors import AdjudgeError, Conflict, InvalidInput, NameTaken, VersionConflict
from adjudge.domain.permissions import Permission
from adjudge.judge.languages import Languages
from adjudge.services.contest_access import ContestView
from adjudge.services.contests import ContestService
from adjudge.services.viewer import Viewer
from adjudge.store.contests.models import ContestSettings
from adjudge.web import contest_form, forms
from adjudge.web.contest_form import ContestForm
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import page_router, redirect

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
"""Organisers are ordinary users with a role in the contest."""
Creator = Annotated[Viewer, require_permission(Permission.CONTEST_CREATE)]
TAB: Final = "/settings"
_NEW: Final = ContestSettings("", 5 * 3600 * SECOND_US)
_LONGEST: Final = 20_000


def router(page: ContestPageRenderer, contests: ContestService, languages: Languages) -> APIRouter:
    routes = page_router(page.pages)
    _add_new_routes(routes, page, contests, languages)
    _add_settings_routes(routes, page, contests, languages)
    _add_role_routes(routes, page, contests)
    return routes


def _form_parts(languages: Languages) -> dict[str, Any]:
    """What the form offers."""
    return {
        "sections": contest_form.SECTIONS,
        "zones": contest_form.zones(),
        "languages_offered": {language.id: language.name for language in languages.offered()},
    }


async def _read(request: Request, languages: Languages) -> tuple[ContestForm, dict[str, Any]]:
    """The form as it was sent, and its values."""
    values: dict[str, Any] = {
        field.name: await forms.text(request, field.name, limit=_LONGEST) for field in contest_form.FIELDS
    }
    values["allowed_languages[]"] = await forms.checked_values(request, "allowed_languages")
    zone = await forms.text(request, "zone", limit=64)
    return contest_form.read(values, contest_form.parse_zone(zone), [language.id for language in languages])


def _add_new_routes(
    routes: APIRouter, page: ContestPageRenderer, contests: ContestService, languages: Languages
) -> None:
    async def render(request: Request, form: ContestForm, status: int = 200) -> Response:
        return await page.pages.render(
            request, "contest_new.html", status=status, form=form, conflict=False, **_form_parts(languages)
        )

    @routes.get("/contests/new")
    async def new(request: Request, viewer: Creator) -> Response:  # noqa: ARG001  # the permission is checked
        return await render(request, contest_form.show(_NEW, ""))

    @routes.post("/contests/new")
    async def create(request: Request, viewer: Creator) -> Response:
        form, parsed = await _read(request, languages)
        if form.errors:
            return await render(request, form, 400)
        try:
            made = await contests.create(viewer, parsed["slug"], contest_form.apply(_NEW, parsed))
        except (InvalidInput, Conflict) as error:
            return await render(request, _with_error(form, error), error.http_status)
        return redirect(f"/contests/{made.contest.slug}/settings/problems", done="contest_created")


def _with_error(form: ContestForm, error: AdjudgeError) -> ContestForm:
    if isinstance(error, InvalidInput):
        return contest_form.with_error(form, error)
    field = "slug" if isinstance(error, NameTaken) else ""
    return contest_form.with_error(form, InvalidInput(error.message, field=field))


def _add_settings_routes(
    routes: APIRouter, page: ContestPageRenderer, contests: ContestService, languages: Languages
) -> None:
    async def render(request: Request, view: ContestView, form: ContestForm, **shown: Any) -> Response:
        given = {"version": view.contest.version, "conflict": False, **shown}
        return await page.render(
            request, view, "contest_settings.html", tab=TAB, form=form, **_form_parts(languages), **given
        )

    @routes.get("/contests/{slug}/settings")
    async def settings(request: Request, viewer: Member, slug: str) -> Response:
        view = await contests.access.find_as(viewer, slug, ContestRole.ORGANISER)
        return await render(request, view, contest_form.show(view.contest.settings, view.contest.slug))

    @routes.post("/contests/{slug}/settings")
    async def save(request: Request, viewer: Member, slug: str) -> Response:
        view = await contests.access.find_as(viewer, slug, ContestRole.ORGANISER)
        version = await sent_version(request)
        form, parsed = await _read(request, languages)
        if form.errors:
            return await render(request, view, form, status=400, version=version)
        try:
            saved = await contests.update(
                viewer,
                view.contest.id,
                lambda before: contest_form.apply(before, parsed),
                slug=parsed["slug"],
                version=version,
            )
        except VersionConflict:
            return await render(request, view, form, status=409, conflict=True)
        except (InvalidInput, Conflict) as error:
            return await render(request, view, _with_error(form, error), status=error.http_status, version=version)
        return redirect(f"/contests/{saved.contest.slug}/settings", done="saved")


async def sent_version(request: Request) -> int:
    """The version of the contest that the form was made from."""
    return await forms.number(request, "version")


def _add_role_routes(routes: APIRouter, page: ContestPageRenderer, contests: ContestService) -> None:
    async def render(request: Request, viewer: Viewer, slug: str, **shown: Any) -> Response:
        view = await contests.access.find_as(viewer, slug, ContestRole.ORGANISER)
        given = {"error": None, "user": "", "role": ContestRole.JUDGE, **shown}
        return await page.render(
            request,
            view,
            "contest_roles.html",
            tab=TAB,
            roles=await contests.list_roles(viewer, slug),
            known_roles=tuple(ContestRole),
            **given,
        )

    @routes.get("/contests/{slug}/settings/roles")
    async def roles(request: Request, viewer: Member, slug: str) -> Response:
        return await render(request, viewer, slug)

    @routes.post("/contests/{slug}/settings/roles")
    async def grant(request: Request, viewer: Member, slug: str) -> Response:
        user, role = await _role(request)
        try:
            await contests.grant_role(viewer, slug, user, role)
        except InvalidInput as error:
            return await render(request, viewer, slug, status=400, error=error, user=user, role=role)
        return redirect(f"/contests/{slug}/settings/roles", done="saved")

    @routes.post("/contests/{slug}/settings/roles/revoke")
    async def revoke(request: Request, viewer: Member, slug: str) -> Response:
        user, role = await _role(request)
        try:
            await contests.revoke_role(viewer, slug, user, role)
        except InvalidInput as error:
            return await render(request, viewer, slug, status=400, error=error)
        return redirect(f"/contests/{slug}/settings/roles", done="saved")


async def _role(request: Request) -> tuple[str, ContestRole]:
    user, role = await forms.text(request, "user", limit=64), await forms.text(request, "role", limit=40)
    if role not in set(ContestRole):
        raise InvalidInput(f"role: expected one of: {', '.join(ContestRole)}.", field="role")
    return user.strip(), ContestRole(role)
