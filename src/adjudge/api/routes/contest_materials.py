"""Materials of a contest: files that organisers publish."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import Field

from adjudge.api.auth import require_permission
from adjudge.api.responses import file_response
from adjudge.api.routing import api_router
from adjudge.api.schema.base import ApiModel
from adjudge.domain.contest import MaterialVisibility
from adjudge.domain.permissions import Permission
from adjudge.schema.contest_materials import MaterialList, MaterialRead
from adjudge.services.contest_materials import MAX_NAME, MAX_TITLE, ContestMaterialService, MaterialChange
from adjudge.services.viewer import Viewer
from adjudge.store.contests.activity_models import MaterialRow

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
"""Organisers are ordinary users with a role in the contest; the service checks it."""
Name = Annotated[str, Path(min_length=1, max_length=MAX_NAME, description="File name.")]
_BYTES: Final = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_FILE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "File content.",
        "content": {
            name: {"schema": {"type": "string", "format": "binary"}}
            for name in (*_BYTES, "application/pdf", "image/png", "image/jpeg", "image/gif", "image/webp")
        },
    }
}


class MaterialUpdate(ApiModel):
    """Changes of a material; what is missing stays as it is."""

    title: str | None = Field(None, max_length=MAX_TITLE)
    visible: MaterialVisibility | None = None


def router(materials: ContestMaterialService) -> APIRouter:
    """All routes."""
    routes = api_router("contests", "/contests/{contest}/materials")

    @routes.get("", summary="List the materials of a contest")
    async def listed(contest: str, viewer: Reader) -> MaterialList:
        view = await materials.access.find(viewer, contest)
        rows = await materials.list_materials(view)
        return MaterialList(items=[_read(view.contest.slug, row) for row in rows])

    @routes.get("/{material}", summary="Download a material", response_class=Response, responses=_FILE)
    async def download(contest: str, material: Name, viewer: Reader) -> Response:
        row = await materials.find(viewer, contest, material)
        return file_response(materials.read_file(row), name=row.name, size_bytes=row.size_bytes, digest=row.digest)

    @routes.put(
        "/{material}",
        summary="Upload a material, or replace it",
        description="Send the file as the body. A new file is visible always, unless `visible` says otherwise.",
        openapi_extra={"requestBody": {"required": True, "content": _BYTES}},
    )
    async def save(
        contest: str,
        material: Name,
        viewer: Member,
        request: Request,
        *,
        title: Annotated[str | None, Query(max_length=MAX_TITLE)] = None,
        visible: Annotated[MaterialVisibility | None, Query()] = None,
    ) -> MaterialRead:
        change = MaterialChange(title, visible)
        return _read(contest, await materials.save(viewer, contest, material, request.stream(), change))

    @routes.patch("/{material}", summary="Change the title of a material, or when it is visible")
    async def update(contest: str, material: Name, body: MaterialUpdate, viewer: Member) -> MaterialRead:
        change = MaterialChange(body.title, body.visible)
        return _read(contest, await materials.update(viewer, contest, material, change))

    @routes.delete("/{material}", status_code=204, summary="Delete a material")
    async def delete(contest: str, material: Name, viewer: Member) -> Response:
        await materials.delete(viewer, contest, material)
        return Response(status_code=204)

    return routes


def _read(contest: str, row: MaterialRow) -> MaterialRead:
    url = f"/api/v1/contests/{quote(contest, safe='')}/materials/{quote(row.name, safe='')}"
    return MaterialRead.of(row, url=url)
