"""The router that every group of pages starts from."""

from __future__ import annotations

from fastapi import APIRouter

from adjudge.web.render import PageRenderer, page_route


def page_router(pages: PageRenderer) -> APIRouter:
    """Pages are no part of the API's description, and fail as pages."""
    return APIRouter(include_in_schema=False, route_class=page_route(pages))
