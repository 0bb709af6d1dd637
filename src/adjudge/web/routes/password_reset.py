"""Pages of password resets: request a link by mail, and set a password with a link."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import client_address
from adjudge.api.csrf import check_origin
from adjudge.domain.errors import AdjudgeError, InvalidInput
from adjudge.services.password_reset import PATH, PasswordResetService, ResetLinkInvalid
from adjudge.web import forms
from adjudge.web.render import PageRenderer, no_store, page_router, redirect

REQUEST_PATH: Final = "/forgot-password"


def router(pages: PageRenderer, resets: PasswordResetService) -> APIRouter:
    routes = page_router(pages)
    _add_request(routes, pages, resets)
    _add_reset(routes, pages, resets)
    return routes


def _add_request(routes: APIRouter, pages: PageRenderer, resets: PasswordResetService) -> None:
    async def form(
        request: Request, who: str = "", error: AdjudgeError | None = None, *, is_sent: bool = False
    ) -> Response:
        return await pages.render(
            request,
            "forgot_password.html",
            status=error.http_status if error else 200,
            is_offered=resets.is_offered,
            is_sent=is_sent,
            who=who,
            error=error,
        )

    @routes.get(REQUEST_PATH)
    async def forgot(request: Request) -> Response:
        return await form(request)

    @routes.post(REQUEST_PATH)
    async def send(request: Request) -> Response:
        check_origin(request)
        who = await forms.text(request, "who", limit=254)
        try:
            await resets.request(who, client_address(request))
        except AdjudgeError as error:
            return await form(request, who, error)
        return await form(request, is_sent=True)


def _add_reset(routes: APIRouter, pages: PageRenderer, resets: PasswordResetService) -> None:
    async def form(request: Request, token: str, error: AdjudgeError | None = None) -> Response:
        status = error.http_status if error else 200
        answer = await pages.render(request, "reset_password.html", status=status, token=token, error=error)
        answer.headers["Referrer-Policy"] = "no-referrer"
        return no_store(answer)

    @routes.get(PATH)
    async def open_link(request: Request, token: Annotated[str, Query(max_length=200)] = "") -> Response:
        try:
            await resets.check(token)
        except AdjudgeError as error:
            return await form(request, "", error)
        return await form(request, token)

    @routes.post(PATH)
    async def reset(request: Request) -> Response:
        check_origin(request)
        token = await forms.text(request, "token", limit=200)
        password = await forms.text(request, "password")
        try:
            if password != await forms.text(request, "again"):
                raise InvalidInput("again: does not match the password.", field="again")
            await resets.reset(token, password)
        except ResetLinkInvalid as error:
            return await form(request, "", error)
        except AdjudgeError as error:
            return await form(request, token, error)
        return redirect("/login", done="password")
