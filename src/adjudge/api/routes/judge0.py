"""The Judge0-compatible API under ``/judge0``; docs/reference/judge0.md says what is supported.

Its errors have Judge0's form: ``{"error": …}``, or ``{"field": [messages]}`` with status 422.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from adjudge.api.auth import require_permission
from adjudge.api.errors import get_request_id, handle_error
from adjudge.api.routes.submissions import request_context, require_json_type
from adjudge.api.routing import ERROR_RESPONSES
from adjudge.domain.errors import AdjudgeError, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.services.judge0 import API_VERSION, InvalidSubmission, Judge0Service
from adjudge.services.judge0_request import BATCH_MAX
from adjudge.services.judge0_response import STATUSES, NotUtf8, parse_fields
from adjudge.services.viewer import Viewer

Runner = Annotated[Viewer, require_permission(Permission.EXECUTION_CREATE)]
Operator = Annotated[Viewer, require_permission(Permission.OPS_READ)]
Base64 = Annotated[bool, Query(alias="base64_encoded", description="Whether texts are base64.")]
Fields = Annotated[str | None, Query(max_length=2_000, description="Comma-separated fields; `*` for all.")]
Token = Annotated[str, Path(max_length=64)]
_PER_PAGE_MAX: Final = 100
_FIELD_NAMES: Final = {
    "source": "source_code",
    "stdin": "stdin",
    "stdins": "number_of_runs",
    "limits.cpu_ms": "cpu_time_limit",
    "limits.wall_ms": "wall_time_limit",
    "limits.memory_mib": "memory_limit",
    "language": "language_id",
}
_ERROR_CONTENT: Final = {
    "application/json": {"schema": {"type": ["object", "array"]}},
    "application/problem+json": {"schema": {"type": "object"}},
}
"""Errors of a request that does not reach a route are problems (RFC 9457), as everywhere."""
_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    **ERROR_RESPONSES,
    "4XX": {"description": "Error in Judge0's form.", "content": _ERROR_CONTENT},
    "5XX": {"description": "Error in Judge0's form.", "content": _ERROR_CONTENT},
}
_SUBMISSION: Final = {
    "type": "object",
    "properties": {
        "source_code": {"type": "string", "examples": ["print(int(input()) * 2)"]},
        "language_id": {"type": "integer", "examples": [71]},
    },
    "additionalProperties": True,
    "required": ["source_code", "language_id"],
}
_BATCH: Final = {
    "type": "object",
    "properties": {"submissions": {"type": "array", "items": _SUBMISSION, "minItems": 1, "maxItems": BATCH_MAX}},
    "required": ["submissions"],
}


_TEXT: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "As in Judge0.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


def _answer(kind: str, code: int = 200) -> dict[int | str, dict[str, Any]]:
    """The description of a successful response: a JSON ``object`` or ``array``."""
    return {code: {"description": "As in Judge0.", "content": {"application/json": {"schema": {"type": kind}}}}}


class Judge0Route(APIRoute):
    """A route whose errors have Judge0's form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except RequestValidationError as error:
                found = error.errors()[0]
                return JSONResponse({"error": f"{found['loc'][-1]}: {found['msg']}"}, 400)
            except HTTPException as error:
                return JSONResponse({"error": error.detail}, error.status_code)
            except AdjudgeError as error:
                return _error_response(error, get_request_id(request))

        return handle


def _error_response(error: AdjudgeError, request_id: str) -> Response:
    if isinstance(error, InvalidSubmission):
        return JSONResponse(error.errors, 422)
    field = str(error.fields.get("field", "")).rpartition("].")[2]
    if isinstance(error, InvalidInput) and field in _FIELD_NAMES:
        return JSONResponse({_FIELD_NAMES[field]: [error.message]}, 422)
    if isinstance(error, InvalidInput):
        return JSONResponse({"error": error.message}, 400)
    if isinstance(error, NotFound):
        return JSONResponse({"error": f"{error.message}"}, 404)
    response = handle_error(error, request_id)  # logs server errors
    headers = {name: value for name, value in response.headers.items() if name == "retry-after"}
    return JSONResponse({"error": error.message}, error.http_status, headers)


def router(judge0: Judge0Service) -> APIRouter:
    routes = APIRouter(prefix="/judge0", tags=["judge0"], route_class=Judge0Route, responses=_ERRORS)
    _add_batches(routes, judge0)
    _add_submissions(routes, judge0)
    _add_information(routes, judge0)
    return routes


def _add_batches(routes: APIRouter, judge0: Judge0Service) -> None:
    @routes.post(
        "/submissions/batch",
        status_code=201,
        summary="Create several Judge0 submissions",
        responses=_answer("array", 201),
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _BATCH}}}},
    )
    async def create_batch(request: Request, viewer: Runner, is_base64: Base64 = False) -> JSONResponse:
        body = await _json_object(request)
        documents = body.get("submissions")
        if not isinstance(documents, list) or not documents:
            raise InvalidInput("submissions: expected a list of submissions.")
        if len(documents) > BATCH_MAX:
            raise InvalidInput(f"number of submissions in a batch should be less than or equal to {BATCH_MAX}")
        created = await judge0.create_batch(viewer, documents, request_context(request), is_base64=is_base64)
        answers = [{"token": item} if isinstance(item, str) else item for item in created]
        return JSONResponse(answers, 201 if any(isinstance(item, str) for item in created) else 422)

    @routes.get("/submissions/batch", summary="Read several Judge0 submissions", responses=_answer("object"))
    async def read_batch(
        viewer: Runner,
        is_base64: Base64 = False,
        fields: Fields = None,
        tokens: Annotated[str | None, Query(max_length=2_000, description="Comma-separated tokens.")] = None,
        token_header: Annotated[str | None, Header(alias="tokens", max_length=2_000)] = None,
    ) -> JSONResponse:
        wanted = [token.strip() for token in (tokens or token_header or "").split(",") if token.strip()]
        if not wanted:
            raise InvalidInput("tokens: expected a comma-separated list of tokens.")
        if len(wanted) > BATCH_MAX:
            raise InvalidInput(f"number of submissions in a batch should be less than or equal to {BATCH_MAX}")
        found = await judge0.read_batch(viewer, wanted, parse_fields(fields), is_base64=is_base64)
        return JSONResponse({"submissions": found})


def _add_submissions(routes: APIRouter, judge0: Judge0Service) -> None:
    @routes.post(
        "/submissions",
        status_code=201,
        summary="Create a Judge0 submission",
        responses=_answer("object", 201),
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _SUBMISSION}}}},
    )
    async def create(
        request: Request,
        viewer: Runner,
        is_base64: Base64 = False,
        is_awaited: Annotated[bool, Query(alias="wait", description="Respond with the result.")] = False,
        fields: Fields = None,
    ) -> JSONResponse:
        names, body = parse_fields(fields), await _json_object(request)
        created = await judge0.create(
            viewer, body, request_context(request), is_base64=is_base64, is_awaited=is_awaited
        )
        if not is_awaited:
            return JSONResponse({"token": created.id}, 201)
        try:
            return JSONResponse(await judge0.show(viewer, created, names, is_base64=is_base64), 201)
        except NotUtf8 as error:
            return JSONResponse({"token": created.id, "error": error.message}, 201)

    @routes.get("/submissions", summary="List your Judge0 submissions, newest first", responses=_answer("object"))
    async def list_page(
        viewer: Runner,
        is_base64: Base64 = False,
        fields: Fields = None,
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
        per_page: Annotated[int, Query(ge=1, le=_PER_PAGE_MAX)] = 20,
    ) -> JSONResponse:
        found = await judge0.list_page(viewer, parse_fields(fields), page=page, per_page=per_page, is_base64=is_base64)
        return JSONResponse({"submissions": found.submissions, "meta": found.meta()})

    @routes.get("/submissions/{token}", summary="Read a Judge0 submission", responses=_answer("object"))
    async def read(token: Token, viewer: Runner, is_base64: Base64 = False, fields: Fields = None) -> JSONResponse:
        return JSONResponse(await judge0.read(viewer, token, parse_fields(fields), is_base64=is_base64))

    @routes.delete("/submissions/{token}", summary="Refused: submissions expire", responses=_answer("object"))
    async def delete(token: Token, viewer: Runner) -> JSONResponse:
        del token, viewer
        return JSONResponse({"error": "delete not allowed"}, 400)


def _add_information(routes: APIRouter, judge0: Judge0Service) -> None:
    @routes.get("/languages", summary="List the languages with their Judge0 ids", responses=_answer("array"))
    async def languages(viewer: Runner) -> JSONResponse:
        del viewer
        return JSONResponse([item.summary() for item in judge0.list_languages()])

    @routes.get("/languages/all", summary="List all languages with their Judge0 ids", responses=_answer("array"))
    async def all_languages(viewer: Runner) -> JSONResponse:
        del viewer
        return JSONResponse([{**item.summary(), "is_archived": False} for item in judge0.list_languages()])

    @routes.get("/languages/{language_id}", summary="Read a language by its Judge0 id", responses=_answer("object"))
    async def language(language_id: int, viewer: Runner) -> JSONResponse:
        del viewer
        return JSONResponse(judge0.get_language(language_id).detail())

    @routes.get("/statuses", summary="List the statuses of submissions", responses=_answer("array"))
    async def statuses(viewer: Runner) -> JSONResponse:
        del viewer
        return JSONResponse([{"id": number, "description": text} for number, text in STATUSES.items()])

    @routes.get("/about", summary="Read the compatible version of Judge0", responses=_answer("object"))
    async def about(viewer: Runner) -> JSONResponse:
        del viewer
        return JSONResponse(judge0.about())

    @routes.get("/version", summary="Read the version as plain text", response_class=Response, responses=_TEXT)
    async def version(viewer: Runner) -> Response:
        del viewer
        return Response(API_VERSION, media_type="text/plain")

    @routes.get("/config_info", summary="Read limits and defaults", responses=_answer("object"))
    async def config(viewer: Runner) -> JSONResponse:
        del viewer
        return JSONResponse(dict(judge0.config()))

    @routes.get("/workers", summary="Read the number of workers and the queue size", responses=_answer("array"))
    async def workers(viewer: Operator) -> JSONResponse:
        del viewer
        return JSONResponse(await judge0.list_workers())


async def _json_object(request: Request) -> dict[str, Any]:
    """The body; not a FastAPI parameter, because its errors name the fields as Judge0 does."""
    data = await request.body()
    require_json_type(request, data)
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise InvalidInput("The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise InvalidInput("The body must be a JSON object.")
    return body
