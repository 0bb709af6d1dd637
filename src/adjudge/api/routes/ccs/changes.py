"""Changing by the Contest API: submissions, clarifications, start and thaw."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from adjudge.api.auth import require_permission
from adjudge.api.routes.ccs.collections import ContestId, ObjectId
from adjudge.api.routes.ccs.multipart import FORM, read_multipart_submission
from adjudge.api.routes.ccs.routing import answer, ccs_router
from adjudge.api.routes.submissions import request_context, require_json_type
from adjudge.api.uploads import is_form
from adjudge.contests.ccs.version import CcsVersion, Object
from adjudge.domain.errors import Forbidden, InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.services.ccs_changes import CcsChangeService, CcsSubmission, parse_submission
from adjudge.services.viewer import Viewer

Submitter = Annotated[Viewer, require_permission(Permission.SUBMISSION_CREATE)]
Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
_TEXT: Final = {"type": "string"}
_ARCHIVE: Final = {**_TEXT, "examples": ["UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA=="]}
_SUBMISSION: Final = {
    "type": "object",
    "properties": {
        "problem_id": {**_TEXT, "examples": ["A"]},
        "language_id": {**_TEXT, "examples": ["cpp20"]},
        "team_id": {**_TEXT, "description": "For organisers, who submit for a team."},
        "entry_point": _TEXT,
        "files": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {"type": "object", "properties": {"data": _ARCHIVE, "mime": _TEXT}, "required": ["data"]},
            "description": "One ZIP archive in base64.",
        },
    },
    "required": ["problem_id", "language_id", "files"],
}
_CLARIFICATION: Final = {
    "type": "object",
    "properties": {
        "text": {**_TEXT, "examples": ["Is n at least 1?"]},
        "problem_id": _TEXT,
        "from_team_id": _TEXT,
        "to_team_ids": {"type": "array", "items": _TEXT},
        "to_group_ids": {"type": "array", "items": _TEXT},
        "reply_to_id": _TEXT,
    },
    "required": ["text"],
}
_PATCH: Final = {
    "type": "object",
    "properties": {
        "id": {**_TEXT, "examples": ["spring-2026"]},
        "start_time": {"type": ["string", "null"], "examples": ["2026-03-01T10:00:00+00:00"]},
        "countdown_pause_time": {"type": ["string", "null"]},
        "scoreboard_thaw_time": _TEXT,
    },
    "required": ["id"],
}
_ASSIGNED: Final = "This server assigns ids and times itself: use POST without `id` and `time`."


def _body(schema: dict[str, Any], form: dict[str, Any] | None = None) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}} | (
        {"multipart/form-data": {"schema": form}} if form is not None else {}
    )
    return {"requestBody": {"required": True, "content": content}}


def change_router(prefix: str, version: CcsVersion, service: CcsChangeService) -> APIRouter:
    """The routes that change something, under one prefix."""
    routes = ccs_router(prefix)
    _add_submissions(routes, version, service)
    _add_clarifications(routes, version, service)

    @routes.patch(
        "/contests/{contest}",
        summary="Change the start of a contest, or thaw its scoreboard",
        description="For organisers: `start_time` and `countdown_pause_time`, or `scoreboard_thaw_time`.",
        responses=answer("object"),
        openapi_extra=_body(_PATCH),
    )
    async def patch(request: Request, contest: ContestId, viewer: Member) -> JSONResponse:
        return JSONResponse(await service.patch(viewer, contest, await read_object(request), version))

    return routes


def _add_submissions(routes: APIRouter, version: CcsVersion, service: CcsChangeService) -> None:
    @routes.post(
        "/contests/{contest}/submissions",
        summary="Submit for your team, or as an organiser for any team",
        responses=answer("object"),
        openapi_extra=_body(_SUBMISSION, FORM),
    )
    async def submit(request: Request, contest: ContestId, viewer: Submitter) -> Response:
        item = await _read_submission(request)
        made = await service.submit(viewer, contest, item, request_context(request), version)
        return _created(request, made)

    @routes.put(
        "/contests/{contest}/submissions/{object_id}",
        summary="Refused: the server assigns ids and times",
        responses=answer("object"),
    )
    async def put_submission(contest: ContestId, object_id: ObjectId, viewer: Submitter) -> Response:
        del contest, object_id, viewer
        raise Forbidden(_ASSIGNED)


def _add_clarifications(routes: APIRouter, version: CcsVersion, service: CcsChangeService) -> None:
    @routes.post(
        "/contests/{contest}/clarifications",
        summary="Ask the jury; as the jury, answer or announce",
        responses=answer("object"),
        openapi_extra=_body(_CLARIFICATION),
    )
    async def clarify(request: Request, contest: ContestId, viewer: Member) -> Response:
        return _created(request, await service.clarify(viewer, contest, await read_object(request), version))

    @routes.put(
        "/contests/{contest}/clarifications/{object_id}",
        summary="Refused: the server assigns ids and times",
        responses=answer("object"),
    )
    async def put_clarification(contest: ContestId, object_id: ObjectId, viewer: Member) -> Response:
        del contest, object_id, viewer
        raise Forbidden(_ASSIGNED)


async def _read_submission(request: Request) -> CcsSubmission:
    """The body: JSON, or a form as DOMjudge's ``submit`` sends it."""
    return (
        await read_multipart_submission(request) if is_form(request) else parse_submission(await read_object(request))
    )


def _created(request: Request, item: Object) -> JSONResponse:
    """The new object; clients of the API expect 200."""
    return JSONResponse(item, headers={"Location": f"{request.url.path.rstrip('/')}/{item['id']}"})


async def read_object(request: Request) -> dict[str, Any]:
    """The body; not a FastAPI parameter, because its errors name properties as the specification does."""
    data = await request.body()
    require_json_type(request, data)
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise InvalidInput("The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise InvalidInput("The body must be a JSON object.")
    return body
