"""Routers of the API: every path starts with ``API_ROOT``, and every operation documents the error response.

Routers are not included into each other: FastAPI matches an included router anew for every request. Their routes are
added to the application one by one, where ``api.middleware.RouteIndex`` finds them.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter

from adjudge.api.schema.base import ErrorResponse

API_ROOT: Final = "/api/v1"
ERROR_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    "default": {"model": ErrorResponse, "description": "Error with a stable code (RFC 9457); see the error reference."}
}


def is_ccs_path(path: str) -> bool:
    """Whether the path belongs to the Contest API, which is everything under ``/api`` but ``API_ROOT``."""
    is_api = path == "/api" or path.startswith("/api/")
    return is_api and path != API_ROOT and not path.startswith(f"{API_ROOT}/")


def api_router(tag: str, prefix: str = "") -> APIRouter:
    """A router under ``API_ROOT`` and ``prefix``, whose operations are listed under ``tag``."""
    return APIRouter(prefix=f"{API_ROOT}{prefix}", tags=[tag], responses=ERROR_RESPONSES)
