"""Pages: the participants of a contest: list, add, change, disqualify, remove."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import decode_cursor, encode_cursor
from adjudge.domain.contest import ContestRole, ParticipantKind
from adjudge.domain.errors import AdjudgeError, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.services.contest_groups import ContestGroupService
from adjudge.services.participants import ParticipantDetail, ParticipantService, ParticipantSpec
from adjudge.services.viewer import Viewer
from adjudge.store.contests.registration import ParticipantFilter
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import page_router, redirect

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
_Given = dict[str, Any] | None
_Where = tuple[str, str]
"""Slug of the contest and code of the participant."""
TAB: Final = "/participants"
KINDS: Final = (ParticipantKind.OFFICIAL, ParticipantKind.UNOFFICIAL, ParticipantKind.TEST)
"""The kinds that organisers give; users start virtual runs and practice themselves."""
_PAGE: Final = 100
_TEXTS: Final = ("code", "name", "kind", "organization", "groups", "members", "label", "location")
_BOXES: Final = ("hidden", "disqualified", "is_team")
_EDITED: Final = (*_TEXTS, "delay_min", "extra_min", "reason")


def router(page: ContestPageRenderer, participants: ParticipantService, groups: ContestGroupService) -> APIRouter:
    """The pages of participants."""
    routes = page_router(page.pages)
    _add_list_route(routes, page, participants, groups)
    _add_new_routes(routes, page, participants)
    _add_edit_routes(routes, page, participants)
    return routes


def _add_list_route(
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
        organization: Annotated[str, Query(max_length=36)] = "",
        search: Annotated[str, Query(max_length=100)] = "",
        cursor: str | None = None,
    ) -> Response:
        position = decode_cursor(cursor, [str])
        after = str(position[0]) if position else ""
        wanted = ParticipantFilter(kind or None, search=search, organization=organization, with_hidden=True)
        view, rows = await participants.list_participants(viewer, slug, wanted, group=group, after=after, limit=_PAGE)
        given = {"kind": kind, "group": group, "organization": organization, "search": search}
        more = urlencode(given | {"cursor": encode_cursor([rows[-1].row.id])}) if len(rows) == _PAGE else ""
        return await page.render(
            request,
            view,
            "contest_participants.html",
            tab=TAB,
            rows=rows,
            groups=await groups.list_groups(viewer, slug),
            kinds=ParticipantKind if view.sees_all else KINDS[:2],
            given=given,
            more=more,
        )


def _add_new_routes(routes: APIRouter, page: ContestPageRenderer, participants: ParticipantService) -> None:
    async def show(
        request: Request,
        viewer: Viewer,
        slug: str,
        error: AdjudgeError | None = None,
        given: dict[str, Any] | None = None,
    ) -> Response:
        view = await participants.access.find_as(viewer, slug, ContestRole.ORGANISER)
        empty = dict.fromkeys((*_TEXTS, "user"), "") | {"form": "team", "hidden": False}
        status = error.http_status if error else 200
        return await page.render(
            request,
            view,
            "contest_participant_new.html",
            tab=TAB,
            status=status,
            given=empty | (given or {}),
            kinds=KINDS,
            error=error,
        )

    @routes.get("/contests/{slug}/add-participant")
    async def new(request: Request, viewer: Member, slug: str) -> Response:
        return await show(request, viewer, slug)

    @routes.post("/contests/{slug}/add-participant")
    async def add(request: Request, viewer: Member, slug: str) -> Response:
        given = await _texts(request, (*_TEXTS, "user", "form"))
        given["hidden"] = bool(await forms.checked_values(request, "hidden"))
        try:
            made = await participants.add(viewer, slug, _spec(given))
        except NotFound:
            raise
        except AdjudgeError as error:
            return await show(request, viewer, slug, error, given)
        return redirect(f"/contests/{slug}/participants/{made.row.code}", done="saved")


def _add_edit_routes(routes: APIRouter, page: ContestPageRenderer, participants: ParticipantService) -> None:
    async def show(
        request: Request,
        viewer: Viewer,
        where: tuple[str, str],
        error: AdjudgeError | None = None,
        given: _Given = None,
    ) -> Response:
        view, found = await participants.get(viewer, *where)
        status = error.http_status if error else 200
        return await page.render(
            request,
            view,
            "contest_participant.html",
            tab=TAB,
            status=status,
            found=found,
            given=_stored(found) | (given or {}),
            kinds=KINDS if found.row.kind in KINDS else (found.row.kind,),
            changes=await participants.list_changes(viewer, *where) if view.is_organiser else [],
            error=error,
        )

    @routes.get("/contests/{slug}/participants/{code}")
    async def one(request: Request, viewer: Member, slug: str, code: str) -> Response:
        return await show(request, viewer, (slug, code))

    @routes.post("/contests/{slug}/participants/{code}")
    async def save(request: Request, viewer: Member, slug: str, code: str) -> Response:
        given = await _texts(request, _EDITED)
        given |= {
            name: bool(await forms.checked_values(request, name)) for name in ("hidden", "disqualified", "is_team")
        }
        try:
            given["version"] = await forms.number(request, "version")
            saved = await participants.update(
                viewer, slug, code, _changes(given), reason=given["reason"], version=given["version"]
            )
        except NotFound:
            raise
        except AdjudgeError as error:
            return await show(request, viewer, (slug, code), error, given)
        return redirect(f"/contests/{slug}/participants/{saved.row.code}", done="saved")

    @routes.post("/contests/{slug}/participants/{code}/remove")
    async def remove(request: Request, viewer: Member, slug: str, code: str) -> Response:
        try:
            await participants.remove(viewer, slug, code)
        except NotFound:
            raise
        except AdjudgeError as error:
            return await show(request, viewer, (slug, code), error)
        return redirect(f"/contests/{slug}/participants", done="deleted")


async def _texts(request: Request, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: (await forms.text(request, name, limit=2_000)).strip() for name in names}


def _stored(found: ParticipantDetail) -> dict[str, Any]:
    """The values of the form as they are stored."""
    row = found.row
    return {
        "code": row.code,
        "name": row.name,
        "kind": row.kind,
        "organization": found.organization.code if found.organization else "",
        "groups": ", ".join(found.groups),
        "members": ", ".join(found.members),
        "label": row.label or "",
        "location": row.location or "",
        "delay_min": f"{row.delay_us / 60e6:g}",
        "extra_min": f"{row.extra_us / 60e6:g}",
        "hidden": row.hidden,
        "disqualified": row.disqualified_at is not None,
        "version": row.version,
        "reason": "",
        "is_team": row.team_id is not None,
    }


def _spec(given: dict[str, Any]) -> ParticipantSpec:
    is_user = given["form"] == "user"
    if is_user and not given["user"]:
        raise InvalidInput("user: enter the name of a user.", field="user")
    return ParticipantSpec(
        user=given["user"] if is_user else None,
        name=given["name"],
        code=given["code"],
        kind=parse_kind(given["kind"]),
        organization=given["organization"] or None,
        groups=tuple(split(given["groups"])),
        members=() if is_user else tuple(split(given["members"])),
        label=given["label"] or None,
        location=given["location"] or None,
        hidden=given["hidden"],
    )


def _changes(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of the form as the service takes them."""
    changes = {
        "code": given["code"],
        "name": given["name"],
        "kind": parse_kind(given["kind"]),
        "organization": given["organization"] or None,
        "label": given["label"] or None,
        "location": given["location"] or None,
        "delay_us": minutes_us(given["delay_min"], "delay_min"),
        "extra_us": minutes_us(given["extra_min"], "extra_min"),
        "groups": split(given["groups"]),
        "hidden": given["hidden"],
        "disqualified": given["disqualified"],
    }
    return changes | ({"members": split(given["members"])} if given["is_team"] else {})


def split(text: str) -> list[str]:
    """The parts of a list with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_kind(text: str) -> ParticipantKind:
    """The kind of a participant in a form."""
    try:
        return ParticipantKind(text)
    except ValueError:
        raise InvalidInput(f"kind: {text[:20]!r} is not a kind of participants.", field="kind") from None


def minutes_us(text: str, field: str) -> int:
    """Minutes of a form as microseconds."""
    try:
        value = float(text or 0)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 366 * 1440:
        raise InvalidInput(f"{field}: expected minutes, for example 15.", field=field)
    return round(value * 60_000_000)
