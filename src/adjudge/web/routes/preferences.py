"""Preferences: the language. The theme is stored in the browser only."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from adjudge.api.csrf import safe_redirect_path
from adjudge.domain.errors import InvalidInput
from adjudge.web import i18n
from adjudge.web.render import PageRenderer, page_router, redirect

_YEAR_SEC: Final = 365 * 24 * 3600


def router(pages: PageRenderer) -> APIRouter:
    routes = page_router(pages)

    @routes.post("/preferences/language")
    async def choose_language(
        request: Request, language: Annotated[str, Form()], back: Annotated[str, Form(alias="next")] = "/"
    ) -> Response:
        if language not in i18n.available_languages():
            known = ", ".join(i18n.available_languages())
            raise InvalidInput(f"language: {language[:20]!r} is not supported; available: {known}.", field="language")
        answer = redirect(safe_redirect_path(back))
        secure = request.url.scheme == "https"
        answer.set_cookie(i18n.COOKIE, language, max_age=_YEAR_SEC, secure=secure, httponly=True, samesite="lax")
        return answer

    return routes
