"""Pages: the materials of a contest, for its organisers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.uploads import iter_file
from adjudge.domain.contest import ContestRole, MaterialVisibility
from adjudge.domain.errors import AdjudgeError, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.services.contest_materials import ContestMaterialService, MaterialChange
from adjudge.services.viewer import Viewer
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import page_router, redirect

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]


def router(page: ContestPageRenderer, materials: ContestMaterialService) -> APIRouter:
    routes = page_router(page.pages)

    async def render(
        request: Request, viewer: Viewer, slug: str, error: AdjudgeError | None = None, **given: Any
    ) -> Response:
        view = await materials.access.find_as(viewer, slug, ContestRole.ORGANISER)
        return await page.render(
            request,
            view,
            "contest_materials.html",
            tab="/settings",
            status=error.http_status if error else 200,
            error=error,
            materials=await materials.list_materials(view),
            choices=list(MaterialVisibility),
            given={"title": "", "visible": MaterialVisibility.ALWAYS, **given},
        )

    @routes.get("/contests/{slug}/settings/materials")
    async def listed(request: Request, viewer: Member, slug: str) -> Response:
        return await render(request, viewer, slug)

    @routes.post("/contests/{slug}/settings/materials")
    async def save(request: Request, viewer: Member, slug: str) -> Response:
        """Upload a file."""
        title, visible = await forms.text(request, "title"), await forms.text(request, "visible")
        try:
            file = await forms.upload(request, "file")
            if file is None:
                raise InvalidInput("file: select a file.", field="file")
            name = (file.filename or "").replace("\\", "/").rpartition("/")[2]
            change = MaterialChange(title, _visibility(visible))
            await materials.save(viewer, slug, name, iter_file(file), change)
        except NotFound:
            raise
        except AdjudgeError as error:
            return await render(request, viewer, slug, error, title=title, visible=visible)
        return redirect(_path(slug), done="material_saved")

    @routes.post("/contests/{slug}/settings/materials/change")
    async def change(request: Request, viewer: Member, slug: str) -> Response:
        """Change the title of a file and when it is visible, or delete it."""
        name = await forms.text(request, "name")
        if await forms.text(request, "action") == "delete":
            await materials.delete(viewer, slug, name)
            return redirect(_path(slug), done="material_deleted")
        title, visible = await forms.text(request, "title"), await forms.text(request, "visible")
        try:
            await materials.update(viewer, slug, name, MaterialChange(title, _visibility(visible)))
        except InvalidInput as error:
            return await render(request, viewer, slug, error)
        return redirect(_path(slug), done="material_saved")

    return routes


def _path(slug: str) -> str:
    return f"/contests/{slug}/settings/materials"


def _visibility(text: str) -> MaterialVisibility:
    try:
        return MaterialVisibility(text)
    except ValueError:
        raise InvalidInput(f"visible: expected one of {', '.join(MaterialVisibility)}.", field="visible") from None
