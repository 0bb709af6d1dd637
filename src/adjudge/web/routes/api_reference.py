"""``/api/v1/docs``: the API for people, without anything from elsewhere."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.web.api_reference import ApiReference, build_reference
from adjudge.web.render import PageRenderer
from adjudge.web.routes.router import page_router


def router(pages: PageRenderer) -> APIRouter:
    """One page; for everybody, as the document itself is."""
    routes = page_router(pages)

    known: list[ApiReference] = []

    @routes.get("/api/v1/docs")
    async def api_docs(request: Request) -> Response:
        if not known:  # when every route is there
            known.append(build_reference(request.app.openapi()))
        return await pages.render(request, "api_reference.html", reference=known[0])

    return routes
