"""Files that objects of the Contest API refer to."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter
from fastapi.responses import Response

from adjudge.api.responses import file_response
from adjudge.api.routes.ccs.collections import ContestId, ObjectId, Reader
from adjudge.api.routes.ccs.routing import ccs_router
from adjudge.api.routes.contest_photos import photo_response
from adjudge.services.ccs_files import CcsFileService

_BINARY: Final = {"schema": {"type": "string", "format": "binary"}}


def _content(*types: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"description": "The file.", "content": dict.fromkeys(types, _BINARY)}}


_PICTURE: Final = _content("image/png", "image/jpeg", "image/webp")


def file_router(prefix: str, files: CcsFileService) -> APIRouter:
    """The routes of files, under one prefix."""
    routes = ccs_router(prefix)

    @routes.get(
        "/contests/{contest}/submissions/{object_id}/files",
        summary="Download the files of a submission as a ZIP archive",
        response_class=Response,
        responses=_content("application/zip"),
    )
    async def submission(contest: ContestId, object_id: ObjectId, viewer: Reader) -> Response:
        data = await files.submission_zip(viewer, contest, object_id)
        headers = {"Content-Disposition": "attachment; filename=files.zip", "Cache-Control": "private, no-store"}
        return Response(data, media_type="application/zip", headers=headers)

    @routes.get(
        "/contests/{contest}/teams/{object_id}/photo",
        summary="Download the photo of a team",
        response_class=Response,
        responses=_PICTURE,
    )
    async def photo(contest: ContestId, object_id: ObjectId, viewer: Reader) -> Response:
        return photo_response(await files.photo(viewer, contest, object_id))

    @routes.get(
        "/contests/{contest}/organizations/{object_id}/logo",
        summary="Download the logo of an organisation",
        response_class=Response,
        responses=_PICTURE,
    )
    async def logo(contest: ContestId, object_id: ObjectId, viewer: Reader) -> Response:
        return photo_response(await files.logo(viewer, contest, object_id))

    _add_problem_files(routes, files)
    return routes


def _add_problem_files(routes: APIRouter, files: CcsFileService) -> None:
    @routes.get(
        "/contests/{contest}/problems/{label}/statement",
        summary="Download the statement of a problem as PDF",
        response_class=Response,
        responses=_content("application/pdf"),
    )
    async def statement(contest: ContestId, label: ObjectId, viewer: Reader) -> Response:
        found = await files.statement(viewer, contest, label)
        return file_response(
            files.problems.problems.read_file(found), name=found.name, size_bytes=found.size_bytes, digest=found.digest
        )

    @routes.get(
        "/contests/{contest}/problems/{label}/attachments/{name:path}",
        summary="Download an attachment of a problem",
        response_class=Response,
        responses=_content("application/octet-stream", "application/pdf", "image/png", "image/jpeg", "image/webp"),
    )
    async def attachment(contest: ContestId, label: ObjectId, name: str, viewer: Reader) -> Response:
        found = await files.attachment(viewer, contest, label, name)
        return file_response(
            files.problems.problems.read_file(found), name=found.name, size_bytes=found.size_bytes, digest=found.digest
        )
