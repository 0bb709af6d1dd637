"""Creates routers for pages."""

from __future__ import annotations

from fastapi import APIRouter

from adjudge.web.render import PageRenderer, page_route


def page_router(pages: PageRenderer) -> APIRouter:
    """A router whose routes are not in the OpenAPI document and render errors as pages."""
    return APIRouter(include_in_schema=False, route_class=page_route(pages))
