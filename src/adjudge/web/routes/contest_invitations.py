"""Page: invitations to a contest. A code is shown once, when it is created."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.domain.contest import ContestRole
from adjudge.domain.errors import AdjudgeError, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.domain.timestamps import parse_timestamp
from adjudge.services.contest_invitations import ContestInvitationService
from adjudge.services.viewer import Viewer
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import no_store, page_router, redirect
from adjudge.web.routes.contest_participants import KINDS, TAB, parse_kind

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
_MAX_USES = 100_000


def router(page: ContestPageRenderer, invitations: ContestInvitationService) -> APIRouter:
    """The page of invitations."""
    routes = page_router(page.pages)

    async def show(request: Request, viewer: Viewer, slug: str, **shown: Any) -> Response:
        view = await invitations.access.find_as(viewer, slug, ContestRole.ORGANISER)
        empty = {"kind": "official", "user": "", "note": "", "max_uses": "1", "expires_at": ""}
        given = {"error": None, "made": None, "link": "", "given": empty, **shown}
        status = given["error"].http_status if given["error"] else 200
        rows = await invitations.list_invitations(viewer, slug)
        answer = await page.render(
            request, view, "contest_invitations.html", tab=TAB, status=status, rows=rows, kinds=KINDS, **given
        )
        return no_store(answer) if given["made"] else answer

    @routes.get("/contests/{slug}/invitations")
    async def listed(request: Request, viewer: Member, slug: str) -> Response:
        return await show(request, viewer, slug)

    @routes.post("/contests/{slug}/invitations")
    async def create(request: Request, viewer: Member, slug: str) -> Response:
        names = ("kind", "user", "note", "max_uses", "expires_at")
        given = {name: (await forms.text(request, name, limit=200)).strip() for name in names}
        try:
            uses = await forms.number(request, "max_uses")
            if not 1 <= uses <= _MAX_USES:
                raise InvalidInput(f"max_uses: expected 1 to {_MAX_USES}.", field="max_uses")
            made = await invitations.invite(
                viewer,
                slug,
                kind=parse_kind(given["kind"]),
                user=given["user"] or None,
                note=given["note"] or None,
                max_uses=uses,
                expires_at=_timestamp(given["expires_at"]),
            )
        except NotFound:
            raise
        except AdjudgeError as error:
            return await show(request, viewer, slug, error=error, given=given)
        root = (request.app.state.public_url or str(request.base_url)).rstrip("/")
        return await show(request, viewer, slug, made=made, link=f"{root}/contests/{slug}/register?code={made.code}")

    @routes.post("/contests/{slug}/invitations/{invitation_id}/revoke")
    async def revoke(viewer: Member, slug: str, invitation_id: str) -> Response:
        await invitations.revoke_invitation(viewer, slug, invitation_id)
        return redirect(f"/contests/{slug}/invitations", done="saved")

    return routes


def _timestamp(text: str) -> int | None:
    """A time of the form, in UTC; empty: none."""
    if not text:
        return None
    return parse_timestamp(text if text.endswith("Z") else f"{text}Z", "expires_at")
