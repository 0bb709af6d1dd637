"""Languages and templates."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from adjudge.api.dependencies import require_permission
from adjudge.api.parts import Parts
from adjudge.api.responses import conditional_response, request_etag
from adjudge.api.schema.problems import LanguageList, LanguageTemplateRead
from adjudge.domain.permissions import Permission
from adjudge.services import languages
from adjudge.services.viewer import Viewer

Reader = Annotated[Viewer, require_permission(Permission.PROBLEM_READ)]


def router(parts: Parts) -> APIRouter:
    """``/languages``."""
    routes = APIRouter(prefix="/languages", tags=["languages"])

    @routes.get("", summary="List languages", responses={200: {"model": LanguageList}, 304: {"description": "Known"}})
    async def list_languages(_viewer: Reader, request: Request) -> Response:
        return conditional_response(request_etag(request), await languages.list_languages(parts))

    @routes.get(
        "/{language}/template",
        summary="Get the source template of a language",
        responses={200: {"model": LanguageTemplateRead}, 304: {"description": "Known"}},
    )
    async def read_template(
        _viewer: Reader, request: Request, language: Annotated[str, Path(max_length=40)]
    ) -> Response:
        return conditional_response(request_etag(request), await languages.get_template(parts, language))

    return routes
