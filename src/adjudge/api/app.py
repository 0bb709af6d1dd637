"""The application factory: wires routes, errors and headers around what is passed in."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from adjudge import __version__
from adjudge.api import errors
from adjudge.api.authentication import authenticator
from adjudge.api.envelope import Envelope
from adjudge.api.parts import Parts
from adjudge.api.routes import about, accounts, events, health, judge_runs, login, submissions, users
from adjudge.api.wire.base import Problem

API_ROOT: Final = "/api/v1"
OPENAPI_PATH: Final = f"{API_ROOT}/openapi.json"
_PROBLEM_RESPONSE: Final[dict[int | str, dict[str, Any]]] = {
    "default": {"model": Problem, "description": "A problem with a stable code; see the reference of errors."}
}


def create_app(parts: Parts) -> FastAPI:
    """Build the application around ``parts``."""
    app = FastAPI(
        title="Adjudge",
        version=__version__,
        summary="An online judge that never loses, duplicates or reorders a verdict.",
        openapi_url=OPENAPI_PATH,
        docs_url=None,
        redoc_url=None,
        responses=_PROBLEM_RESPONSE,
    )
    settings = parts.settings
    app.state.public_url = settings.server.public_url
    app.state.authenticate = authenticator(parts.credentials, visitors_may_read=settings.accounts.visitors_may_read)
    app.include_router(health.router(parts.checks), prefix=API_ROOT)
    app.include_router(about.router(), prefix=API_ROOT)
    app.include_router(login.router(parts), prefix=API_ROOT)
    app.include_router(accounts.router(parts), prefix=API_ROOT)
    app.include_router(users.router(parts), prefix=API_ROOT)
    for group in (submissions, judge_runs, events):
        app.include_router(group.router(parts), prefix=API_ROOT)
    app.include_router(about.metrics_router())
    errors.install(app)
    app.add_middleware(Envelope, mint_request_id=parts.mint)
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
