"""Pages: login, registration and the own account."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import current_viewer, require_permission
from adjudge.api.cookies import SESSION_COOKIE, delete_cookie, set_cookie
from adjudge.api.csrf import check_origin, safe_redirect_path
from adjudge.api.routes.login import client_info
from adjudge.api.schema.base import decode_json
from adjudge.domain.errors import AdjudgeError, InvalidInput
from adjudge.domain.permissions import ALL_SCOPES, Permission
from adjudge.schema.problems import ProblemPage
from adjudge.services.account import AccountService, CreatedToken
from adjudge.services.login import LoginService, NewLogin, Registration
from adjudge.services.problems import ProblemService
from adjudge.services.viewer import Viewer
from adjudge.store.problems.models import ProblemFilter, ProblemSort
from adjudge.web import forms
from adjudge.web.render import PageRenderer, no_store, page_router, redirect

_REGISTERED: Final = ("name", "email", "display_name", "invitation")
"""Registration fields that are kept in the form after an error."""
Own = Annotated[Viewer, require_permission(Permission.ACCOUNT_OWN)]
_DAYS_MOST: Final = 3650
_SOLVED: Final = 100


def router(pages: PageRenderer, accounts: AccountService, logins: LoginService, problems: ProblemService) -> APIRouter:
    routes = page_router(pages)
    _add_login_routes(routes, pages, logins)
    _add_profile_routes(routes, pages, accounts, problems)
    _add_token_routes(routes, pages, accounts)
    return routes


def _add_login_routes(routes: APIRouter, pages: PageRenderer, logins: LoginService) -> None:
    settings = logins.settings
    oidc = settings.oidc_label if settings.oidc_issuer else None
    shown: dict[str, Any] = {"registration": settings.registration, "oidc": oidc}

    @routes.get("/login")
    async def login_page(request: Request, next_path: Annotated[str, Query(alias="next")] = "/") -> Response:
        return await pages.render(
            request, "login.html", next_path=safe_redirect_path(next_path), error=None, name="", **shown
        )

    @routes.post("/login")
    async def log_in(request: Request) -> Response:
        check_origin(request)
        name, next_path = await forms.text(request, "name"), safe_redirect_path(await forms.text(request, "next"))
        try:
            opened = await logins.login(name, await forms.text(request, "password"), client_info(request))
        except AdjudgeError as error:
            return await pages.render(
                request, "login.html", status=error.http_status, next_path=next_path, error=error, name=name, **shown
            )
        return _login_redirect(request, opened, "/me/password" if opened.user.must_change_password else next_path)

    @routes.get("/register")
    async def register_page(request: Request, invitation: str = "") -> Response:
        given = {**dict.fromkeys(_REGISTERED, ""), "invitation": invitation}
        return await pages.render(request, "register.html", error=None, given=given, **shown)

    @routes.post("/register")
    async def register(request: Request) -> Response:
        check_origin(request)
        given = {field: await forms.text(request, field) for field in _REGISTERED}
        password = await forms.text(request, "password")
        try:
            account = Registration(
                given["name"], password, given["email"], given["display_name"], given["invitation"] or None
            )
            opened = await logins.register(account, client_info(request))
        except AdjudgeError as error:
            return await pages.render(
                request, "register.html", status=error.http_status, error=error, given=given, **shown
            )
        return _login_redirect(request, opened, "/problems")

    @routes.post("/logout")
    async def log_out(request: Request) -> Response:
        await logins.logout(await current_viewer(request))
        answer = redirect("/")
        delete_cookie(answer, request, SESSION_COOKIE)
        return answer


def _login_redirect(request: Request, opened: NewLogin, path: str) -> Response:
    answer = redirect(path)
    set_cookie(answer, request, SESSION_COOKIE, opened.secret, max_age_sec=opened.max_age_sec)
    return answer


def _add_profile_routes(
    routes: APIRouter, pages: PageRenderer, accounts: AccountService, problems: ProblemService
) -> None:
    @routes.get("/me")
    async def profile(request: Request, viewer: Own) -> Response:
        return await pages.render(
            request,
            "account.html",
            user=await accounts.get_account(viewer),
            sessions=await accounts.list_sessions(viewer),
            solved=await _solved(problems, viewer),
            current=viewer.credential_id,
        )

    @routes.post("/me")
    async def update(request: Request, viewer: Own) -> Response:
        changes = {field: await forms.text(request, field) or None for field in ("email", "display_name")}
        await accounts.update_account(viewer, changes)
        return redirect("/me", done="saved")

    @routes.post("/me/sessions/{session_id}/end")
    async def end_session(viewer: Own, session_id: str) -> Response:
        await accounts.revoke_session(viewer, session_id)
        return redirect("/me", done="ended")

    @routes.get("/me/password")
    async def password_page(request: Request, viewer: Own) -> Response:
        return await pages.render(request, "password.html", error=None, required=viewer.must_change_password)

    @routes.post("/me/password")
    async def change_password(request: Request, viewer: Own) -> Response:
        new = await forms.text(request, "new")
        try:
            if new != await forms.text(request, "again"):
                raise InvalidInput("confirm: the passwords do not match.", field="again")
            await accounts.change_password(
                viewer,
                current=await forms.text(request, "current"),
                new=new,
                revoke_tokens="tokens" in await forms.checked_values(request, "end"),
            )
        except AdjudgeError as error:
            return await pages.render(
                request,
                "password.html",
                status=error.http_status,
                error=error,
                required=viewer.must_change_password,
            )
        return redirect("/problems" if viewer.must_change_password else "/me", done="password")


async def _solved(problems: ProblemService, viewer: Viewer) -> ProblemPage:
    wanted = ProblemFilter(is_solved=True, sort=ProblemSort.TITLE)
    found = await problems.list_problems(viewer, wanted, after=None, limit=_SOLVED)
    return decode_json(ProblemPage, found.body)


def _add_token_routes(routes: APIRouter, pages: PageRenderer, accounts: AccountService) -> None:
    async def page(request: Request, viewer: Viewer, *, made: CreatedToken | None = None) -> Response:
        listed = await accounts.list_tokens(viewer)
        scopes = sorted(viewer.permissions)
        return await pages.render(request, "tokens.html", tokens=listed, made=made, scopes=scopes)

    @routes.get("/me/tokens")
    async def tokens_page(request: Request, viewer: Own) -> Response:
        return await page(request, viewer)

    @routes.post("/me/tokens")
    async def create(request: Request, viewer: Own) -> Response:
        scopes = await forms.checked_values(request, "scope") or [ALL_SCOPES]
        name, days = await forms.text(request, "name", limit=100), await forms.text(request, "days", limit=10)
        if days and not days.isdecimal():
            raise InvalidInput("days: expected a whole number, or leave empty.", field="days")
        expires = min(int(days), _DAYS_MOST) if days else None
        made = await accounts.create_token(viewer, name=name, scopes=scopes, expires_in_days=expires)
        return no_store(await page(request, viewer, made=made))

    @routes.post("/me/tokens/{token_id}/revoke")
    async def revoke(viewer: Own, token_id: str) -> Response:
        await accounts.revoke_token(viewer, token_id)
        return redirect("/me/tokens", done="revoked")
