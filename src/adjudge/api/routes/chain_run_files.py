"""Files of chain runs: uploaded before a run that uses them, downloaded from the artifacts of nodes."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.responses import file_response
from adjudge.api.routes.chains import Controller
from adjudge.api.routing import api_router
from adjudge.domain.permissions import Permission
from adjudge.schema.chain_runs import FileCreated
from adjudge.services.chain_run_files import ChainRunFileService
from adjudge.services.viewer import Viewer

_BYTES: Final = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_FILE_RESPONSE: Final[dict[int | str, dict[str, Any]]] = {200: {"description": "File content.", "content": _BYTES}}


def router(run_files: ChainRunFileService) -> APIRouter:
    routes = api_router("runs")

    @routes.post(
        "/files",
        status_code=201,
        summary="Upload a file for a run",
        description=(
            "Send the file as the body and pass its digest in the run parameters. Unreferenced files "
            "are deleted after a day."
        ),
        openapi_extra={"requestBody": {"required": True, "content": _BYTES}},
    )
    async def store(viewer: Controller, request: Request) -> FileCreated:  # noqa: ARG001  # checks the permission
        stored = await run_files.store_file(request.stream())
        return FileCreated(digest=stored.digest, size_bytes=stored.size_bytes)

    @routes.get(
        "/runs/{run_id}/nodes/{node_id}/files/{digest}",
        summary="Download a file of an artifact",
        response_class=Response,
        responses=_FILE_RESPONSE,
    )
    async def fetch(
        run_id: str,
        node_id: str,
        digest: Annotated[str, Path(pattern="^[0-9a-f]{64}$")],
        viewer: Annotated[Viewer, require_permission(Permission.RUN_READ)],
        name: Annotated[str, Query(max_length=200, description="File name for the download.")] = "",
    ) -> Response:
        found = await run_files.find_file(viewer, run_id, node_id, digest)
        return file_response(
            run_files.blobs.open(digest), name=name or digest, size_bytes=found.size_bytes, digest=digest
        )

    return routes
