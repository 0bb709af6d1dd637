"""Prefixes of the Contest API, and routes whose errors have its form: ``{"code": STATUS, "message": TEXT}``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from adjudge.api.errors import get_request_id, handle_error
from adjudge.api.routing import ERROR_RESPONSES
from adjudge.contests.ccs.version import CcsVersion
from adjudge.domain.errors import AdjudgeError

PREFIXES: Final[Mapping[str, CcsVersion]] = {
    "/api/2023-06": CcsVersion.V2023_06,
    "/api/2026-01": CcsVersion.V2026_01,
    "/api/v4": CcsVersion.V2023_06,
    "/api": CcsVersion.V2023_06,
}
"""``/api/v4`` and ``/api`` are what clients of DOMjudge and the ICPC tools try."""
VERSIONED: Final = frozenset({"/api/2023-06", "/api/2026-01"})
"""Prefixes whose routes are in the OpenAPI document; the others are the same routes."""
ERROR_SCHEMA: Final = {
    "type": "object",
    "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
    "required": ["code", "message"],
}
_ERROR_CONTENT: Final = {
    "application/json": {"schema": ERROR_SCHEMA},
    "application/problem+json": {"schema": {"type": "object"}},
}
"""Errors of a request that does not reach a route are problems (RFC 9457), as everywhere."""
_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    **ERROR_RESPONSES,
    "4XX": {"description": "Error in the form of the Contest API.", "content": _ERROR_CONTENT},
    "5XX": {"description": "Error in the form of the Contest API.", "content": _ERROR_CONTENT},
}
_KEPT_HEADERS: Final = ("retry-after", "allow")


class CcsRoute(APIRoute):
    """A route whose errors have the form of the Contest API."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except RequestValidationError as error:
                found = error.errors()[0]
                return error_response(400, f"{found['loc'][-1]}: {found['msg']}")
            except HTTPException as error:
                return error_response(error.status_code, str(error.detail), error.headers or {})
            except AdjudgeError as error:
                response = handle_error(error, get_request_id(request))  # logs server errors
                return error_response(response.status_code, error.message, response.headers)

        return handle


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error in the form of the Contest API."""
    kept = {name: value for name, value in (headers or {}).items() if name.lower() in _KEPT_HEADERS}
    return JSONResponse({"code": status, "message": message.encode(errors="backslashreplace").decode()}, status, kept)


def ccs_router(prefix: str, tag: str = "contest-api", documented: Collection[str] = VERSIONED) -> APIRouter:
    """A router under one of ``PREFIXES``; it is in the OpenAPI document under ``documented`` ones."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=CcsRoute,
        responses=_ERRORS,
        include_in_schema=prefix in documented,
    )


def answer(kind: str) -> dict[int | str, dict[str, Any]]:
    """The description of a successful response: a JSON ``object`` or ``array``."""
    content = {"application/json": {"schema": {"type": kind}}}
    return {200: {"description": "As in the specification.", "content": content}}
