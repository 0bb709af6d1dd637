"""Export and import of contest packages."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from adjudge.api.auth import require_permission
from adjudge.api.routing import api_router
from adjudge.api.uploads import open_upload
from adjudge.domain.permissions import Permission
from adjudge.schema.contest_package import ContestImportItem, ContestImportRead
from adjudge.schema.problems import FindingRead
from adjudge.services.contest_package.export import ContestExport, ContestPackageExporter
from adjudge.services.contest_package.importer import ContestPackageImporter, PackageOptions, PackageReport
from adjudge.services.viewer import Viewer

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
Creator = Annotated[Viewer, require_permission(Permission.CONTEST_CREATE)]
_ARCHIVE: Final = {"type": "string", "format": "binary", "description": "ZIP archive of the contest package."}
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
_ZIP: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "ZIP archive.", "content": {"application/zip": {"schema": _ARCHIVE}}}
}


def router(exports: ContestPackageExporter, imports: ContestPackageImporter) -> APIRouter:
    """All routes."""
    routes = api_router("contests")

    @routes.get(
        "/contests/{contest}/package",
        summary="Export a contest as a contest package",
        description=(
            "For organisers: settings, problems, teams, accounts without passwords, and everything that happened. "
            "Without `submissions` the package is a draft of the same contest. Problems whose tests you may not read "
            "are listed without their packages."
        ),
        response_class=StreamingResponse,
        responses=_ZIP,
    )
    async def export(
        contest: str,
        viewer: Member,
        submissions: Annotated[bool, Query(description="Include what happened in the contest.")] = True,
    ) -> StreamingResponse:
        return export_response(await exports.export(viewer, contest, with_submissions=submissions))

    @routes.post(
        "/contests:import",
        summary="Import a contest package",
        description=(
            "Send the archive as the body (`application/zip`) or as form file `package`. All or nothing. With "
            "`preview`, nothing is written, and errors are listed in `findings`. A contest that exists as the package "
            "says stays unchanged; one that differs is refused. Only administrators may import submissions."
        ),
        openapi_extra=_UPLOAD,
    )
    async def import_contest(
        viewer: Creator,
        request: Request,
        *,
        preview: Annotated[bool, Query()] = False,
        slug: Annotated[str | None, Query(max_length=36, description="Default: the ID of the contest.")] = None,
        verify: Annotated[bool, Query(description="Verify new problem revisions in the background.")] = False,
        file_name: Annotated[str, Query(max_length=200, examples=["finals.zip"])] = "",
    ) -> ContestImportRead:
        async with open_upload(request, file_name, imports.upload_limit_bytes) as upload:
            digest = await imports.upload(viewer, upload.pieces)
            options = PackageOptions(slug or None, upload.file_name, verify)
        run = imports.preview if preview else imports.apply
        return _read(await run(viewer, digest, options), is_preview=preview)

    return routes


def export_response(found: ContestExport) -> StreamingResponse:
    """An archive that is sent while it is written."""
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(found.file_name)}",
        "Cache-Control": "private, no-store",
    }
    return StreamingResponse(found.pieces, headers=headers, media_type="application/zip")


def _read(report: PackageReport, *, is_preview: bool) -> ContestImportRead:
    return ContestImportRead(
        contest=report.slug,
        is_preview=is_preview,
        is_unchanged=report.is_unchanged,
        package=report.digest,
        items=[
            ContestImportItem(kind=item.kind, code=item.code, name=item.name, action=item.action.value)
            for item in report.items
        ],
        findings=[
            FindingRead(
                severity=item.severity.value, path=item.path, line=item.line, message=item.message, fix=item.fix
            )
            for item in report.findings
        ],
        verifications=report.verifications,
    )
