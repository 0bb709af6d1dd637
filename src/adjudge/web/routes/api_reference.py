"""``/api/v1/docs``: the API reference, without external resources."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.web.api_reference import ApiReference, build_reference
from adjudge.web.render import PageRenderer, page_router


def router(pages: PageRenderer) -> APIRouter:
    """The page, public like the OpenAPI document."""
    routes = page_router(pages)

    known: list[ApiReference] = []

    @routes.get("/api/v1/docs")
    async def api_docs(request: Request) -> Response:
        if not known:  # built on first request, when all routes are registered
            known.append(build_reference(request.app.openapi()))
        return await pages.render(request, "api_reference.html", reference=known[0])

    return routes
