"""Languages and templates."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from adjudge.api.actions import languages
from adjudge.api.asking import needs
from adjudge.api.parts import Parts
from adjudge.api.sending import known, stored
from adjudge.api.viewer import Viewer
from adjudge.api.wire.problems import LanguageList, TemplateView
from adjudge.domain.access import Permission

Reader = Annotated[Viewer, needs(Permission.PROBLEM_READ)]


def router(parts: Parts) -> APIRouter:
    """``/languages``."""
    routes = APIRouter(prefix="/languages", tags=["languages"])

    @routes.get("", summary="List languages", responses={200: {"model": LanguageList}, 304: {"description": "Known"}})
    async def list_languages(_viewer: Reader, request: Request) -> Response:
        return stored(known(request), await languages.every(parts))

    @routes.get(
        "/{language}/template",
        summary="Get the source template of a language",
        responses={200: {"model": TemplateView}, 304: {"description": "Known"}},
    )
    async def read_template(
        _viewer: Reader, request: Request, language: Annotated[str, Path(max_length=40)]
    ) -> Response:
        return stored(known(request), await languages.template(parts, language))

    return routes
