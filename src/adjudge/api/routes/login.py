"""Login, token login, registration and logout."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import client_address, require_permission
from adjudge.api.cookies import SESSION_COOKIE, delete_cookie, set_cookie
from adjudge.api.csrf import check_origin, csrf_token
from adjudge.api.routing import api_router
from adjudge.api.schema.account import LoginRequest, RegisterRequest, TokenLoginRequest
from adjudge.domain.errors import PasswordChangeRequired, Unauthenticated
from adjudge.domain.permissions import ALL_SCOPES, Permission
from adjudge.schema.account import AccountRead, LoginMethods, TokenCreated
from adjudge.services.account import AccountService, viewer_for_user
from adjudge.services.login import ClientInfo, LoginService, NewLogin, Registration
from adjudge.services.viewer import CredentialCache, Viewer
from adjudge.store.accounts.users import UserRow


def router(credentials: CredentialCache, accounts: AccountService, logins: LoginService) -> APIRouter:
    """Public routes, except logout; attempts are limited by user name and address."""
    routes = api_router("login")

    @routes.get("/login", summary="List login methods")
    async def methods() -> LoginMethods:
        settings = logins.settings
        return LoginMethods(
            registration=settings.registration, oidc=settings.oidc_label if settings.oidc_issuer else None
        )

    @routes.post("/login", summary="Log in with a password; sets the session cookie")
    async def log_in(order: LoginRequest, request: Request, response: Response) -> AccountRead:
        check_origin(request)
        opened = await logins.login(order.name, order.password, client_info(request))
        return await set_session(credentials, opened, request, response)

    @routes.post("/login:token", status_code=201, summary="Create an API token with username and password")
    async def log_in_for_token(order: TokenLoginRequest, request: Request) -> TokenCreated:
        user = await logins.check_password(order.name, order.password, client_info(request))
        if user.must_change_password:
            raise PasswordChangeRequired
        viewer = viewer_for_user(user)
        made = await accounts.create_token(
            viewer, name=order.token_name, scopes=[ALL_SCOPES], expires_in_days=order.expires_in_days
        )
        return TokenCreated.of(made.token, secret=made.secret)

    @routes.post("/register", status_code=201, summary="Register an account")
    async def register(order: RegisterRequest, request: Request, response: Response) -> AccountRead:
        check_origin(request)
        account = Registration(order.name, order.password, order.email, order.display_name, order.invitation)
        return await set_session(credentials, await logins.register(account, client_info(request)), request, response)

    @routes.post("/logout", status_code=204, summary="Log out")
    async def log_out(
        viewer: Annotated[Viewer, require_permission(Permission.ACCOUNT_OWN)], request: Request, response: Response
    ) -> None:
        await logins.logout(viewer)
        delete_cookie(response, request, SESSION_COOKIE)

    return routes


def client_info(request: Request) -> ClientInfo:
    """Address and user agent of a request, for the list of sessions."""
    return ClientInfo(client_address(request), request.headers.get("User-Agent", ""))


async def set_session(
    credentials: CredentialCache, opened: NewLogin, request: Request, response: Response
) -> AccountRead:
    """Set the cookie of a new session and return its user."""
    set_cookie(response, request, SESSION_COOKIE, opened.secret, max_age_sec=opened.max_age_sec)
    viewer = await credentials.viewer_for_session(opened.secret)
    if viewer is None:
        raise Unauthenticated
    return account_read(opened.user, viewer)


def account_read(user: UserRow, viewer: Viewer) -> AccountRead:
    """The user, with the permissions of the credential of this request."""
    return AccountRead.of(user, permissions=sorted(viewer.permissions), csrf_token=csrf_token(viewer) or None)
