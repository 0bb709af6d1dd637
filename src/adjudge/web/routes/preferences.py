"""What a reader chooses for themselves: the language (the theme never leaves the browser)."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from adjudge.api.browser import own_path
from adjudge.domain.errors import InvalidInput
from adjudge.web import words
from adjudge.web.render import Pages, see_other
from adjudge.web.routes.router import page_router

_YEAR_SEC: Final = 365 * 24 * 3600


def router(pages: Pages) -> APIRouter:
    """Routes of preferences."""
    routes = page_router(pages)

    @routes.post("/language")
    async def choose_language(
        request: Request, language: Annotated[str, Form()], back: Annotated[str, Form(alias="next")] = "/"
    ) -> Response:
        if language not in words.languages():
            known = ", ".join(words.languages())
            raise InvalidInput(f"language: {language[:20]!r} is not supported; available: {known}.", field="language")
        answer = see_other(own_path(back))
        secure = request.url.scheme == "https"
        answer.set_cookie(words.COOKIE, language, max_age=_YEAR_SEC, secure=secure, httponly=True, samesite="lax")
        return answer

    return routes
