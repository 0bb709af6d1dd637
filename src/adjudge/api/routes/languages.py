"""Languages and templates."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.responses import conditional_response, request_etag
from adjudge.api.routing import api_router
from adjudge.domain.permissions import Permission
from adjudge.schema.problems import LanguageList, LanguageTemplateRead
from adjudge.services.languages import LanguageService
from adjudge.services.viewer import Viewer

Reader = Annotated[Viewer, require_permission(Permission.PROBLEM_READ)]


def router(language_service: LanguageService) -> APIRouter:
    routes = api_router("languages", "/languages")

    @routes.get("", summary="List languages", responses={200: {"model": LanguageList}, 304: {"description": "Known"}})
    async def list_languages(_viewer: Reader, request: Request) -> Response:
        return conditional_response(request_etag(request), await language_service.list_languages())

    @routes.get(
        "/{language}/template",
        summary="Get the source template of a language",
        responses={200: {"model": LanguageTemplateRead}, 304: {"description": "Known"}},
    )
    async def read_template(
        _viewer: Reader, request: Request, language: Annotated[str, Path(max_length=40)]
    ) -> Response:
        return conditional_response(request_etag(request), await language_service.get_template(language))

    return routes
