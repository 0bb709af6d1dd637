"""The application factory: wires routes, errors and headers around what is passed in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from adjudge import __version__
from adjudge.api import errors
from adjudge.api.envelope import Envelope
from adjudge.api.routes import about, health
from adjudge.api.wire import Problem
from adjudge.domain.ids import NewId, new_id

Check = Callable[[], Awaitable[None]]
"""Asks one part whether it answers; returns if it does, raises if not."""

API_ROOT: Final = "/api/v1"
OPENAPI_PATH: Final = f"{API_ROOT}/openapi.json"
_PROBLEM_RESPONSE: Final[dict[int | str, dict[str, Any]]] = {
    "default": {"model": Problem, "description": "A problem with a stable code; see the reference of errors."}
}


def create_app(*, checks: Mapping[str, Check], mint_request_id: NewId = new_id) -> FastAPI:
    """Build the application. ``checks`` are the parts that must answer before it counts as ready."""
    app = FastAPI(
        title="Adjudge",
        version=__version__,
        summary="An online judge that never loses, duplicates or reorders a verdict.",
        openapi_url=OPENAPI_PATH,
        docs_url=None,
        redoc_url=None,
        responses=_PROBLEM_RESPONSE,
    )
    app.include_router(health.router(checks), prefix=API_ROOT)
    app.include_router(about.router(), prefix=API_ROOT)
    app.include_router(about.metrics_router())
    errors.install(app)
    app.add_middleware(Envelope, mint_request_id=mint_request_id)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]  # FastAPI's documented way to extend it
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI's description, with problems under their own media type."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        for path in schema["paths"].values():
            for operation in path.values():
                content = operation["responses"]["default"]["content"]
                content[errors.MEDIA_TYPE] = content.pop("application/json")
        app.openapi_schema = schema
    return app.openapi_schema
