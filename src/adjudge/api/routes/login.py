"""Getting in and out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.actions import accounts, login
from adjudge.api.actions.login import NewAccount, Opened, Origin
from adjudge.api.asking import address_of, needs
from adjudge.api.browser import SESSION_COOKIE, check_origin, csrf_token, drop_cookie, set_cookie
from adjudge.api.parts import Parts
from adjudge.api.viewer import Viewer
from adjudge.api.wire.accounts import (
    LoginMethods,
    LoginOrder,
    LoginTokenOrder,
    Me,
    RegisterOrder,
    TokenMade,
    UserInfo,
)
from adjudge.domain.access import EVERYTHING, Permission
from adjudge.domain.errors import PasswordChangeRequired, Unauthenticated


def router(parts: Parts) -> APIRouter:
    """Routes that anybody reaches, since nobody is known yet; throttled by name and address."""
    routes = APIRouter(tags=["login"])

    @routes.get("/login", summary="List login methods")
    async def methods() -> LoginMethods:
        settings = parts.settings.accounts
        return LoginMethods(
            registration=settings.registration, oidc=settings.oidc_label if settings.oidc_issuer else None
        )

    @routes.post("/login", summary="Log in with a password; sets the session cookie")
    async def log_in(order: LoginOrder, request: Request, response: Response) -> Me:
        check_origin(request)
        opened = await login.login(parts, order.name, order.password, origin_of(request))
        return await welcome(parts, opened, request, response)

    @routes.post("/login:token", status_code=201, summary="Create an API token with username and password")
    async def log_in_for_token(order: LoginTokenOrder, request: Request) -> TokenMade:
        user = await login.check_password(parts, order.name, order.password, origin_of(request))
        if user.must_change_password:
            raise PasswordChangeRequired
        viewer = accounts.viewer_for(user)
        made = await accounts.create_token(
            parts, viewer, name=order.token_name, scopes=[EVERYTHING], expires_in_days=order.expires_in_days
        )
        return TokenMade.of_made(made)

    @routes.post("/register", status_code=201, summary="Register an account")
    async def register(order: RegisterOrder, request: Request, response: Response) -> Me:
        check_origin(request)
        account = NewAccount(order.name, order.password, order.email, order.display_name, order.invitation)
        return await welcome(parts, await login.register(parts, account, origin_of(request)), request, response)

    @routes.post("/logout", status_code=204, summary="Log out")
    async def log_out(
        viewer: Annotated[Viewer, needs(Permission.ACCOUNT_OWN)], request: Request, response: Response
    ) -> None:
        await login.logout(parts, viewer)
        drop_cookie(response, request, SESSION_COOKIE)

    return routes


def origin_of(request: Request) -> Origin:
    """From where a request comes, for the list of sessions."""
    return Origin(address_of(request), request.headers.get("User-Agent", ""))


async def welcome(parts: Parts, opened: Opened, request: Request, response: Response) -> Me:
    """Set the cookie of a new session and say who it belongs to."""
    set_cookie(response, request, SESSION_COOKIE, opened.secret, max_age_sec=opened.max_age_sec)
    viewer = await parts.credentials.of_session(opened.secret)
    if viewer is None:
        raise Unauthenticated
    return me_of(UserInfo.of(opened.user), viewer)


def me_of(user: UserInfo, viewer: Viewer) -> Me:
    """The user, with what they may do with what they came by."""
    return Me(**user.model_dump(), permissions=sorted(viewer.permissions), csrf_token=csrf_token(viewer) or None)
