"""Files of submissions: read them, and parse them from a request."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.datastructures import UploadFile

from adjudge.api.auth import require_permission
from adjudge.api.routing import api_router
from adjudge.api.schema.submissions import SubmissionFileCreate
from adjudge.api.uploads import form_text
from adjudge.domain.errors import InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.judge.sources import SourceFile
from adjudge.schema.submissions import SubmissionFileList, SubmissionFileRead
from adjudge.services.submission_sources import SubmissionSourceService
from adjudge.services.submit import SubmitRequest
from adjudge.services.submitted_files import decode_source, zip_files
from adjudge.services.viewer import Viewer

FORM: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["problem"],
    "properties": {
        "problem": {"type": "string", "examples": ["multiples"]},
        "language": {"type": "string", "examples": ["cpp20"], "description": "Not needed for output files."},
        "source": {"type": "string", "format": "binary", "description": "Source file."},
        "files": {
            "type": "array",
            "items": {"type": "string", "format": "binary"},
            "description": "Several files instead of `source`; archives (.zip, .tar, .tar.gz, .tgz) are unpacked.",
        },
        "entry_point": {"type": "string", "examples": ["org.example.Main"]},
        "contest": {"type": "string", "examples": ["spring-2026"], "description": "Slug or ID; empty for none."},
    },
}
"""A submission as a form."""
UPLOADS_MAX: Final = 1_000
Reader = Annotated[Viewer, require_permission(Permission.SUBMISSION_READ)]
_PRIVATE: Final = {"Cache-Control": "private, no-store", "X-Content-Type-Options": "nosniff"}
_TEXT: Final = "text/plain; charset=utf-8"


def router(sources: SubmissionSourceService) -> APIRouter:
    """Routes that read the files of a submission."""
    routes = api_router("submissions")

    @routes.get(
        "/submissions/{submission_id}/source",
        summary="Get the source code of a submission of one file",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def source(submission_id: str, viewer: Reader) -> Response:
        return _attachment(await sources.get_source(viewer, submission_id), submission_id, _TEXT)

    @routes.get("/submissions/{submission_id}/files", summary="Get all files of a submission with their contents")
    async def files(submission_id: str, viewer: Reader) -> SubmissionFileList:
        found = await sources.get_files(viewer, submission_id)
        return SubmissionFileList(entry_point=found.entry_point, items=[_file_read(file) for file in found.files])

    @routes.get(
        "/submissions/{submission_id}/files/{name:path}",
        summary="Download one file of a submission",
        response_class=Response,
        responses={200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}},
    )
    async def file(submission_id: str, name: str, viewer: Reader) -> Response:
        found = await sources.get_file(viewer, submission_id, name)
        return _attachment(found.data, found.name.rpartition("/")[2], "application/octet-stream")

    @routes.get(
        "/submissions/{submission_id}/archive",
        summary="Download all files of a submission as a ZIP archive",
        response_class=Response,
        responses={200: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}}},
    )
    async def archive(submission_id: str, viewer: Reader) -> Response:
        found = await sources.get_files(viewer, submission_id)
        return _attachment(zip_files(found.files), f"{submission_id}.zip", "application/zip")

    return routes


def _attachment(data: bytes, name: str, media_type: str) -> Response:
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return Response(data, media_type=media_type, headers={"Content-Disposition": disposition, **_PRIVATE})


def decode_files(items: Sequence[SubmissionFileCreate], field: str) -> tuple[SourceFile, ...]:
    """The files of a JSON document."""
    return tuple(_file(item, f"{field}[{index}]") for index, item in enumerate(items))


def _file(item: SubmissionFileCreate, field: str) -> SourceFile:
    if (item.content is None) == (item.content_base64 is None):
        raise InvalidInput(f"{field}: expected either `content` or `content_base64`.", field=field)
    if item.content_base64 is None:
        try:
            return SourceFile(item.name, (item.content or "").encode())
        except UnicodeEncodeError as error:
            name = f"{field}.content"
            raise InvalidInput(f"{name}: unpaired UTF-16 surrogate at character {error.start}.", field=name) from None
    try:
        return SourceFile(item.name, base64.b64decode(item.content_base64, validate=True))
    except (binascii.Error, ValueError):
        name = f"{field}.content_base64"
        raise InvalidInput(f"{name}: not valid Base64.", field=name) from None


async def form_submit_request(request: Request) -> SubmitRequest:
    """A submission from a form."""
    async with request.form(max_files=UPLOADS_MAX, max_fields=8) as form:
        problem = form_text(form, "problem")
        if not problem:
            raise InvalidInput("problem: missing form field.", field="problem")
        language, entry_point, contest = (form_text(form, name) for name in ("language", "entry_point", "contest"))
        files = await read_uploads(form.getlist("files"))
        given = form.get("source")
        if (given is None) == (not files):
            raise InvalidInput("source: expected a file upload in this field, or several in `files`.", field="source")
        if files:
            return SubmitRequest(problem, language, "", files, entry_point, contest)
        if not isinstance(given, UploadFile):
            raise InvalidInput("source: expected a file upload in this field.", field="source")
        text = decode_source(await given.read(), "source")
        return SubmitRequest(problem, language, text, (), entry_point, contest)


async def read_uploads(values: Sequence[UploadFile | str]) -> tuple[SourceFile, ...]:
    """The uploaded files of a form field; a browser sends one without a name where none was chosen."""
    uploads = [value for value in values if isinstance(value, UploadFile) and value.filename]
    return tuple([SourceFile(upload.filename or "", await upload.read()) for upload in uploads])


def _file_read(file: SourceFile) -> SubmissionFileRead:
    text: str | None = None
    encoded: str | None = None
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        encoded = base64.b64encode(file.data).decode()
    return SubmissionFileRead.of(file, size_bytes=len(file.data), content=text, content_base64=encoded)
