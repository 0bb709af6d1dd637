"""Login and account pages."""

from __future__ import annotations

import re

import httpx

from adjudge.domain.permissions import Role
from adjudge.services.users import UserSpec
from tests.support.asgi_app import AsgiApp

PASSWORD = "a long enough passphrase"


async def _user(pages: AsgiApp, name: str = "ada", role: Role = Role.CONTESTANT, *, must_change: bool = False) -> None:
    await pages.services.users.create_user(
        UserSpec(name, role, password=PASSWORD, must_change_password=must_change), actor="t"
    )


async def _log_in(
    browser: httpx.AsyncClient, name: str = "ada", password: str = PASSWORD, **more: str
) -> httpx.Response:
    return await browser.post("/login", data={"name": name, "password": password, **more})


def _csrf(page: httpx.Response) -> str:
    found = re.search(r'name="csrf_token" value="([^"]+)"', page.text)
    assert found, page.text
    return found[1]


async def test_login_redirects_to_the_requested_page(pages: AsgiApp) -> None:
    await _user(pages)
    async with pages.client() as browser:
        turned_away = await browser.get("/me")
        assert (turned_away.status_code, turned_away.headers["Location"]) == (303, "/login?next=/me")
        answer = await _log_in(browser, next="/me")
        assert (answer.status_code, answer.headers["Location"]) == (303, "/me")
        assert "ada" in (await browser.get("/me")).text


async def test_wrong_password_shows_an_error_and_keeps_the_name(pages: AsgiApp) -> None:
    await _user(pages)
    async with pages.client() as browser:
        answer = await _log_in(browser, password="wrong", name='ada"><script>')
    assert answer.status_code == 401
    assert 'role="alert"' in answer.text
    assert "<script>" not in answer.text.replace("<script src", "").replace("<script type", "")


async def test_form_without_csrf_token_is_rejected(pages: AsgiApp) -> None:
    await _user(pages)
    async with pages.client() as browser:
        await _log_in(browser)
        refused = await browser.post("/me", data={"display_name": "Mallory"})
        assert refused.status_code == 403
        page = await browser.get("/me")
        assert "Mallory" not in page.text
        done = await browser.post("/me", data={"display_name": "Ada L.", "csrf_token": _csrf(page)})
        assert done.status_code == 303
        assert "Ada L." in (await browser.get("/me")).text


async def test_one_time_password_must_be_changed_first(pages: AsgiApp) -> None:
    await _user(pages, must_change=True)
    async with pages.client() as browser:
        assert (await _log_in(browser, next="/me/tokens")).headers["Location"] == "/me/password"
        page = await browser.get("/me/password")
        assert 'value="tokens">' in page.text, "a first password revokes no tokens by default"
        fields = {"current": PASSWORD, "new": "another long passphrase", "csrf_token": _csrf(page)}
        mistyped = await browser.post("/me/password", data={**fields, "again": "something else"})
        assert mistyped.status_code == 400
        assert (await browser.post("/me/password", data={**fields, "again": fields["new"]})).status_code == 303
        assert (await browser.get("/me")).status_code == 200


async def test_token_is_shown_once_and_can_be_revoked(pages: AsgiApp) -> None:
    await _user(pages)
    async with pages.client() as browser:
        await _log_in(browser)
        token = _csrf(await browser.get("/me/tokens"))
        made = await browser.post("/me/tokens", data={"name": "<b>bot</b>", "days": "7", "csrf_token": token})
        assert made.headers["Cache-Control"] == "no-store"
        secret = re.search(r"adj_[\w-]+", made.text)
        assert secret
        assert "<b>bot</b>" not in made.text
        listed = await browser.get("/me/tokens")
        assert secret[0] not in listed.text
        async with pages.client(secret[0]) as program:
            assert (await program.get("/api/v1/me")).status_code == 200
        token_id = re.search(r"/me/tokens/([\w-]+)/revoke", listed.text)
        assert token_id
        await browser.post(f"/me/tokens/{token_id[1]}/revoke", data={"csrf_token": token})
        async with pages.client(secret[0]) as program:
            assert (await program.get("/api/v1/me")).status_code == 401


async def test_logout_ends_the_session(pages: AsgiApp) -> None:
    await _user(pages)
    async with pages.client() as browser:
        await _log_in(browser)
        await browser.post("/logout", data={"csrf_token": _csrf(await browser.get("/me"))})
        assert (await browser.get("/me")).status_code == 303


async def test_registration_form_is_prefilled_with_the_invitation(pages: AsgiApp) -> None:
    async with pages.client() as visitor:
        answer = await visitor.get("/register", params={"invitation": "abc-1"})
        assert (answer.status_code, 'value="abc-1"' in answer.text) == (200, True)
