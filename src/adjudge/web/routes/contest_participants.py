"""Pages: registration for a contest, its participants, and the import of teams and accounts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import decode_cursor, encode_cursor
from adjudge.domain.contest import ContestRole, ParticipantKind
from adjudge.domain.errors import AdjudgeError, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.services.contest_groups import ContestGroupService
from adjudge.services.contest_registration import ContestRegistrationService
from adjudge.services.participants import ParticipantService
from adjudge.services.team_import import TeamImportService
from adjudge.services.viewer import Viewer
from adjudge.store.contests.registration import ParticipantFilter
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import no_store, page_router, redirect

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
_PAGE: Final = 100
_MAX_FILE_CHARS: Final = 4_000_000
_MAX_FILES: Final = 20
_KINDS: Final = (ParticipantKind.OFFICIAL, ParticipantKind.UNOFFICIAL, ParticipantKind.TEST)

_ACTIONS: Final[dict[str, Callable[[ContestRegistrationService, Viewer, str], Awaitable[object]]]] = {
    "leave": ContestRegistrationService.leave,
    "window": ContestRegistrationService.start_window,
    "virtual": ContestRegistrationService.start_virtual,
    "practice": ContestRegistrationService.practise,
}
"""Buttons of the registration page that need nothing but the contest."""


def router(
    page: ContestPageRenderer,
    registrations: ContestRegistrationService,
    participants: ParticipantService,
    groups: ContestGroupService,
    imports: TeamImportService,
) -> APIRouter:
    routes = page_router(page.pages)
    _add_registration_routes(routes, page, registrations)
    _add_list_routes(routes, page, participants, groups)
    _add_edit_routes(routes, page, participants)
    _add_import_routes(routes, page, participants, imports)
    return routes


def _add_registration_routes(
    routes: APIRouter, page: ContestPageRenderer, registrations: ContestRegistrationService
) -> None:
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


def _add_list_routes(
    routes: APIRouter, page: ContestPageRenderer, participants: ParticipantService, groups: ContestGroupService
) -> None:
    @routes.get("/contests/{slug}/participants")
    async def listed(
        request: Request,
        viewer: Reader,
        slug: str,
        *,
        kind: Annotated[str, Query(max_length=20)] = "",
        group: Annotated[str, Query(max_length=36)] = "",
        search: Annotated[str, Query(max_length=100)] = "",
        cursor: str | None = None,
    ) -> Response:
        position = decode_cursor(cursor, [str])
        after = str(position[0]) if position else ""
        wanted = ParticipantFilter(kind or None, search=search, with_hidden=True)
        view, rows = await participants.list_participants(viewer, slug, wanted, group=group, after=after, limit=_PAGE)
        more = encode_cursor([rows[-1].row.id]) if len(rows) == _PAGE else ""
        return await page.render(
            request,
            view,
            "contest_participants.html",
            tab="/participants",
            rows=rows,
            groups=await groups.list_groups(viewer, slug),
            kinds=ParticipantKind if view.sees_all else _KINDS[:2],
            given={"kind": kind, "group": group, "search": search},
            more=more,
        )


def _add_edit_routes(routes: APIRouter, page: ContestPageRenderer, participants: ParticipantService) -> None:
    async def show(
        request: Request, viewer: Viewer, slug: str, code: str, error: AdjudgeError | None = None, **given: Any
    ) -> Response:
        view, found = await participants.get(viewer, slug, code)
        row = found.row
        stored = {
            "name": row.name,
            "kind": row.kind,
            "label": row.label or "",
            "delay_min": f"{row.delay_us / 60e6:g}",
            "extra_min": f"{row.extra_us / 60e6:g}",
            "groups": ", ".join(found.groups),
            "hidden": row.hidden,
            "disqualified": row.disqualified_at is not None,
            "version": row.version,
            "reason": "",
        }
        status = error.http_status if error else 200
        kinds = _KINDS if row.kind in _KINDS else (row.kind,)
        return await page.render(
            request,
            view,
            "contest_participant.html",
            tab="/participants",
            status=status,
            found=found,
            given=stored | given,
            kinds=kinds,
            error=error,
        )

    @routes.get("/contests/{slug}/participants/{code}")
    async def one(request: Request, viewer: Member, slug: str, code: str) -> Response:
        return await show(request, viewer, slug, code)

    @routes.post("/contests/{slug}/participants/{code}")
    async def save(request: Request, viewer: Member, slug: str, code: str) -> Response:
        names = ("name", "kind", "label", "delay_min", "extra_min", "groups", "version", "reason")
        given: dict[str, Any] = {name: (await forms.text(request, name, limit=500)).strip() for name in names}
        given["hidden"] = bool(await forms.checked_values(request, "hidden"))
        given["disqualified"] = bool(await forms.checked_values(request, "disqualified"))
        try:
            await participants.update(
                viewer,
                slug,
                code,
                _changes(given),
                reason=given["reason"],
                version=int(given["version"]) if given["version"].isdecimal() else None,
            )
        except NotFound:
            raise
        except AdjudgeError as error:
            return await show(request, viewer, slug, code, error, **given)
        return redirect(f"/contests/{slug}/participants", done="saved")

    @routes.post("/contests/{slug}/participants/{code}/remove")
    async def remove(request: Request, viewer: Member, slug: str, code: str) -> Response:
        try:
            await participants.remove(viewer, slug, code)
        except NotFound:
            raise
        except AdjudgeError as error:
            return await show(request, viewer, slug, code, error)
        return redirect(f"/contests/{slug}/participants", done="deleted")


def _changes(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of the form as the service takes them."""
    return {
        "name": given["name"],
        "kind": _kind(given["kind"]),
        "label": given["label"] or None,
        "delay_us": _minutes(given["delay_min"], "delay_min"),
        "extra_us": _minutes(given["extra_min"], "extra_min"),
        "groups": [part.strip() for part in given["groups"].split(",") if part.strip()],
        "hidden": given["hidden"],
        "disqualified": given["disqualified"],
    }


def _kind(text: str) -> ParticipantKind:
    try:
        return ParticipantKind(text)
    except ValueError:
        raise InvalidInput(f"kind: {text[:20]!r} is not a kind of participants.", field="kind") from None


def _minutes(text: str, field: str) -> int:
    try:
        value = float(text or 0)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 366 * 1440:
        raise InvalidInput(f"{field}: expected minutes, for example 15.", field=field)
    return round(value * 60_000_000)


def _add_import_routes(
    routes: APIRouter, page: ContestPageRenderer, participants: ParticipantService, imports: TeamImportService
) -> None:
    async def show(request: Request, viewer: Viewer, slug: str, **shown: Any) -> Response:
        view = await participants.access.find_as(viewer, slug, ContestRole.ORGANISER)
        shown = {"error": None, "report": None, "files": [], "is_done": False, **shown}
        status = shown["error"].http_status if shown["error"] else 200
        answer = await page.render(request, view, "contest_import.html", tab="/participants", status=status, **shown)
        return no_store(answer) if shown["is_done"] else answer

    @routes.get("/contests/{slug}/import")
    async def form(request: Request, viewer: Member, slug: str) -> Response:
        return await show(request, viewer, slug)

    @routes.post("/contests/{slug}/import")
    async def run(request: Request, viewer: Member, slug: str) -> Response:
        files: list[tuple[str, str]] = []
        try:
            files = await _given_files(request)
            if await forms.text(request, "do", limit=20) != "import":
                return await show(request, viewer, slug, report=await imports.preview(viewer, slug, files), files=files)
            report = await imports.apply(viewer, slug, files)
        except NotFound:
            raise
        except AdjudgeError as error:
            return await show(request, viewer, slug, error=error, files=files)
        return await show(request, viewer, slug, report=report, is_done=True)


async def _given_files(request: Request) -> list[tuple[str, str]]:
    """The uploaded files, or those of the preview, which its form sends again."""
    form = await request.form()
    uploaded = [item for item in form.getlist("files") if not isinstance(item, str) and item.filename]
    if len(uploaded) > _MAX_FILES:
        raise InvalidInput(f"files: at most {_MAX_FILES}.", field="files")
    files = []
    for item in uploaded:
        data = await item.read(_MAX_FILE_CHARS + 1)
        if len(data) > _MAX_FILE_CHARS:
            raise InvalidInput(f"files: {item.filename} has more than {_MAX_FILE_CHARS} bytes.", field="files")
        try:
            files.append((item.filename or "", data.decode()))
        except UnicodeDecodeError:
            raise InvalidInput(f"files: {item.filename} is not UTF-8 text.", field="files") from None
    names, texts = await forms.checked_values(request, "file_name"), await forms.checked_values(request, "file_text")
    files = files or list(zip(names, texts, strict=False))
    if not files:
        raise InvalidInput("files: select at least one file.", field="files")
    return files
