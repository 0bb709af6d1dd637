"""Login with OpenID Connect: the redirect to the provider, and its callback."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse

from adjudge.api.cookies import SESSION_COOKIE, cookie_name, delete_cookie, set_cookie
from adjudge.api.csrf import safe_redirect_path
from adjudge.api.routes.login import client_info
from adjudge.api.routing import api_router
from adjudge.domain.errors import LoginFailed, NotFound
from adjudge.services.login import LoginService
from adjudge.services.oidc import OidcProvider

_COOKIE: Final = "adjudge_oidc"
_LOGIN_TIMEOUT_SEC: Final = 600
_CALLBACK: Final = "/api/v1/login/oidc/callback"


def router(logins: LoginService) -> APIRouter:
    """The start and the callback of a login. A browser follows both, so both respond with a redirect."""
    routes = api_router("login")

    @routes.get(
        "/login/oidc", status_code=303, response_class=RedirectResponse, summary="Start an OpenID Connect login"
    )
    async def leave(
        request: Request,
        to: Annotated[str, Query(max_length=500, description=("Path to return to after the login."))] = "/",
    ) -> RedirectResponse:
        started = await _provider(logins).start_login(_redirect_uri(request))
        answer = RedirectResponse(started.url, 303)
        set_cookie(
            answer, request, _COOKIE, f"{started.cookie}.{safe_redirect_path(to)}", max_age_sec=_LOGIN_TIMEOUT_SEC
        )
        return answer

    @routes.get(
        "/login/oidc/callback", status_code=303, response_class=RedirectResponse, summary=("OpenID Connect callback")
    )
    async def come_back(
        request: Request,
        state: Annotated[str, Query(max_length=500)] = "",
        code: Annotated[str, Query(max_length=5000)] = "",
        error: Annotated[str, Query(max_length=500)] = "",
    ) -> RedirectResponse:
        if error or not code:
            raise LoginFailed("The identity provider denied the login.", error=error[:100])
        *kept, to = (request.cookies.get(cookie_name(_COOKIE, request)) or ".").split(".", 3)
        identity = await _provider(logins).complete_login(
            code=code, state=state, cookie=".".join(kept), redirect_uri=_redirect_uri(request)
        )
        opened = await logins.login_with_oidc(identity, client_info(request))
        answer = RedirectResponse(safe_redirect_path(to), 303)
        set_cookie(answer, request, SESSION_COOKIE, opened.secret, max_age_sec=opened.max_age_sec)
        delete_cookie(answer, request, _COOKIE)
        return answer

    return routes


def _provider(logins: LoginService) -> OidcProvider:
    if logins.oidc is None:
        raise NotFound("login_provider", "oidc")
    return logins.oidc


def _redirect_uri(request: Request) -> str:
    public_url: str = request.app.state.public_url
    base = public_url or f"{request.url.scheme}://{request.headers.get('Host', '')}"
    return f"{base.rstrip('/')}{_CALLBACK}"
