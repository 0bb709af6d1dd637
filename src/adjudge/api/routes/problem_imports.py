"""Imports of problem packages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import StreamingResponse

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routes.events import STREAM, encode_stream
from adjudge.api.routes.problems import Cursor, Limit
from adjudge.api.routing import api_router
from adjudge.api.schema.problems import import_read
from adjudge.api.sse import EventStreamResponse, SseConnections
from adjudge.api.uploads import open_upload
from adjudge.domain.permissions import Permission
from adjudge.domain.problem_metadata import MAX_TAGS
from adjudge.schema.problems import (
    ImportAccepted,
    ImportPage,
    ImportRead,
)
from adjudge.services.problem_imports import ImportRequest, ImportState, ProblemImportService, StartedImport
from adjudge.services.submission_events import BEAT, Stream, StreamEvent
from adjudge.services.viewer import Viewer

Writer = Annotated[Viewer, require_permission(Permission.PROBLEM_WRITE)]
_ARCHIVE: Final = {"type": "string", "format": "binary", "description": "ZIP archive of the problem package."}
_UPLOAD: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "application/zip": {"schema": _ARCHIVE},
            "multipart/form-data": {
                "schema": {"type": "object", "properties": {"package": _ARCHIVE}, "required": ["package"]}
            },
        },
    }
}


def router(imports: ProblemImportService, connections: SseConnections) -> APIRouter:
    routes = api_router("problems")

    @routes.post(
        "/problems:import",
        status_code=202,
        summary="Import a problem package",
        description=(
            "Send the archive as the body (`application/zip`) or as form file `package`. A new slug "
            "creates a problem; a slug of yours adds a revision. The import runs in the background."
        ),
        openapi_extra=_UPLOAD,
    )
    async def import_package(
        viewer: Writer,
        request: Request,
        *,
        slug: Annotated[str | None, Query(max_length=64, description="Default: the package's name.")] = None,
        title: Annotated[str | None, Query(max_length=200)] = None,
        tag: Annotated[
            list[str] | None, Query(max_length=MAX_TAGS, description="Default: the package's keywords.")
        ] = None,
        difficulty: Annotated[float | None, Query(ge=0)] = None,
        verify: Annotated[
            bool | None,
            Query(description="Verify the jury solutions. Default: same as `publish`; required for publishing."),
        ] = None,
        publish: Annotated[bool, Query(description="Publish if verification passes.")] = False,
        file_name: Annotated[str, Query(max_length=200, examples=["multiples.zip"])] = "",
    ) -> ImportAccepted:
        import_request = ImportRequest(
            slug, title, tuple(tag) if tag is not None else None, difficulty, verify, publish
        )
        async with open_upload(request, file_name, imports.upload_limit_bytes) as upload:
            return import_accepted(await imports.start_import(viewer, import_request, upload.pieces, upload.file_name))

    @routes.get("/imports", summary="List your imports, newest first")
    async def list_imports(viewer: Writer, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT) -> ImportPage:
        position = decode_cursor(cursor, [str])
        rows = await imports.list_imports(viewer, before=str(position[0]) if position else None, limit=limit + 1)
        more = encode_cursor([rows[limit - 1].row.id]) if len(rows) > limit else None
        return ImportPage(items=[import_read(item) for item in rows[:limit]], next=more)

    @routes.get("/imports/{import_id}", summary="Get the status and findings of an import")
    async def read_import(viewer: Writer, import_id: Annotated[str, Path(max_length=64)]) -> ImportRead:
        return import_read(await imports.get_import(viewer, import_id))

    @routes.get(
        "/imports/{import_id}/events",
        summary="Stream the events of an import",
        description=(
            "Events: `import` with the current state, and `end`. Each connection starts with the current state."
        ),
        responses=STREAM,
        response_class=StreamingResponse,
    )
    async def watch_import(viewer: Writer, import_id: Annotated[str, Path(max_length=64)]) -> StreamingResponse:
        states = await imports.watch_import(viewer, import_id)
        return EventStreamResponse(connections, viewer, encode_stream(_import_events(states)))

    @routes.post("/imports/{import_id}:cancel", summary="Cancel an import")
    async def cancel_import(viewer: Writer, import_id: Annotated[str, Path(max_length=64)]) -> ImportRead:
        return import_read(await imports.cancel_import(viewer, import_id))

    return routes


def import_accepted(started: StartedImport) -> ImportAccepted:
    """The response to a started import or verification."""
    return ImportAccepted(id=started.id, job_id=started.job_id, url=f"/api/v1/imports/{started.id}")


async def _import_events(states: AsyncGenerator[ImportState | None, None]) -> Stream:
    async with aclosing(states):
        async for state in states:
            if state is None:
                yield [BEAT]
                continue
            shown = import_read(state)
            yield [StreamEvent("import", asdict(shown))]
            if shown.finished_at is not None:
                yield [StreamEvent("end", {"import_id": shown.id, "state": shown.state})]
