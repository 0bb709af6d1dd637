"""Logging in by another provider, against a real one on loopback."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from joserfc.jwk import ECKey

from adjudge.api.app import create_app
from adjudge.api.container import Services
from adjudge.domain.errors import Unavailable
from adjudge.services.oidc import OidcProvider
from tests.support.asgi_app import AsgiApp, make_services
from tests.support.dripping import dripping
from tests.support.oidc_provider import CLIENT_ID, CLIENT_SECRET, FakeOidcProvider, running_provider
from tests.support.shared_routes import add_pages, create_shared_app
from tests.support.store_harness import StoreHarness

LEAVE = "/api/v1/login/oidc"
ME = "/api/v1/me"


@pytest.fixture(scope="module")
def oidc_server() -> Iterator[FakeOidcProvider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def provider(oidc_server: FakeOidcProvider) -> FakeOidcProvider:
    oidc_server.subject, oidc_server.claims = "subject-1", {"preferred_username": "ada", "name": "Ada L."}
    oidc_server.key = oidc_server.published = ECKey.generate_key("P-256", {"kid": "first"})
    return oidc_server


@pytest.fixture
async def api(sqlite_store: StoreHarness, tmp_path: Path, provider: FakeOidcProvider) -> AsyncIterator[AsgiApp]:
    async with make_services(sqlite_store, tmp_path, {"accounts.oidc_issuer": provider.issuer}) as services:
        known = _with_provider(services, OidcProvider(provider.issuer, CLIENT_ID, CLIENT_SECRET))
        with create_shared_app(known) as app:
            yield AsgiApp(app, known, sqlite_store)


def _with_provider(services: Services, provider: OidcProvider) -> Services:
    return replace(services, logins=replace(services.logins, oidc=provider))


async def way_back(browser: httpx.AsyncClient, **query: str) -> str:
    """Leave for the provider, be let in there; where the browser is sent."""
    left = await browser.get(LEAVE, params=query)
    assert left.status_code == 303
    async with httpx.AsyncClient() as elsewhere:
        parts = urlsplit((await elsewhere.get(left.headers["Location"])).headers["Location"])
    return f"{parts.path}?{parts.query}"


async def test_a_provider_lets_somebody_in_and_knows_them_again(api: AsgiApp, provider: FakeOidcProvider) -> None:
    async with api.client() as browser, api.client() as other:
        assert (await browser.get("/api/v1/login")).json()["oidc"] == "Single sign-on"
        back = await browser.get(await way_back(browser, to="/problems?tag=dp"))
        assert (back.status_code, back.headers["Location"]) == (303, "/problems?tag=dp")
        assert "adjudge_oidc" not in browser.cookies
        me = (await browser.get(ME)).json()
        assert (me["name"], me["display_name"], me["role"]) == ("ada", "Ada L.", "contestant")
        provider.claims = {"preferred_username": "renamed"}
        await other.get(await way_back(other))
        assert (await other.get(ME)).json()["id"] == me["id"], "the subject is who they are, not the name"
        provider.subject, provider.claims = "subject-2", {"preferred_username": "ada"}
        await other.get(await way_back(other))
        second = (await other.get(ME)).json()
        assert second["id"] != me["id"]
        assert second["name"].startswith("ada-")


async def test_the_login_pages_link_leads_back_to_where_one_wanted_to_go(api: AsgiApp) -> None:
    add_pages(api.app, api.services)
    async with api.client() as browser:
        page = (await browser.get("/login", params={"next": "/problems?tag=dp&solved=no"})).text
        link = re.search(r'href="(/api/v1/login/oidc[^"]*)"', page)
        assert link is not None
        query = dict(parse_qsl(urlsplit(html.unescape(link[1])).query))
        back = await browser.get(await way_back(browser, **query))
        assert back.headers["Location"] == "/problems?tag=dp&solved=no"


@pytest.mark.parametrize("to", ["https://evil.example", "//evil.example", "/\\evil.example", "evil"])
async def test_the_way_back_leads_nowhere_else(api: AsgiApp, to: str) -> None:
    async with api.client() as browser:
        assert (await browser.get(await way_back(browser, to=to))).headers["Location"] == "/"


async def test_a_code_counts_once_and_only_in_the_browser_that_asked(api: AsgiApp) -> None:
    async with api.client() as browser, api.client() as thief:
        back = await way_back(browser)
        assert (await thief.get(back)).json()["code"] == "LOGIN_FAILED"
        await way_back(thief)
        assert (await thief.get(back)).json()["code"] == "LOGIN_FAILED", "another login's state"
        cookies = dict(browser.cookies)
        assert (await browser.get(back)).status_code == 303
        browser.cookies.update(cookies)
        assert (await browser.get(back)).json()["code"] == "LOGIN_FAILED"
        assert (await browser.get("/api/v1/login/oidc/callback?error=access_denied")).json()["code"] == "LOGIN_FAILED"


LIES: dict[str, Callable[[FakeOidcProvider], object]] = {
    "for somebody else": lambda provider: provider.claims.update(aud="another-client"),
    "for many, made for another": lambda provider: provider.claims.update(aud=[CLIENT_ID, "b"], azp="b"),
    "by somebody else": lambda provider: provider.claims.update(iss="http://evil.example"),
    "expired": lambda provider: provider.claims.update(exp=1),
    "another login's": lambda provider: provider.claims.update(nonce="old"),
    "nobody's": lambda provider: provider.claims.update(sub=None),
    "forged": lambda provider: setattr(provider, "key", ECKey.generate_key("P-256", {"kid": "first"})),
}


@pytest.mark.parametrize("lie", LIES)
async def test_an_id_token_that_is_not_right_in_everything_is_refused(
    api: AsgiApp, provider: FakeOidcProvider, lie: str
) -> None:
    async with api.client() as browser:
        LIES[lie](provider)
        answer = await browser.get(await way_back(browser))
        assert (answer.status_code, answer.json()["code"]) == (401, "LOGIN_FAILED")
        assert "adjudge_session" not in browser.cookies


async def test_keys_that_the_provider_changed_are_fetched_again(api: AsgiApp, provider: FakeOidcProvider) -> None:
    async with api.client() as browser:
        assert (await browser.get(await way_back(browser))).status_code == 303
        provider.key = provider.published = ECKey.generate_key("P-256", {"kid": "second"})
        assert (await browser.get(await way_back(browser))).status_code == 303


async def test_without_a_provider_there_is_no_such_way(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    async with make_services(sqlite_store, tmp_path) as services:
        api = AsgiApp(create_app(services), services, sqlite_store)
        async with api.client() as browser:
            assert (await browser.get(LEAVE)).json()["code"] == "LOGIN_PROVIDER_NOT_FOUND"


async def test_a_provider_that_is_away_or_another_is_said_so(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    async with make_services(sqlite_store, tmp_path) as services:
        away = _with_provider(services, OidcProvider("http://127.0.0.1:1", CLIENT_ID, CLIENT_SECRET))
        api = AsgiApp(create_app(away), away, sqlite_store)
        async with api.client() as browser:
            assert (await browser.get(LEAVE)).status_code == 503


async def test_a_provider_that_answers_byte_by_byte_is_given_up() -> None:
    """Each byte comes in time, the whole answer never does."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
    async with asyncio.timeout(60), dripping(head, b" ") as issuer:
        with pytest.raises(Unavailable, match="does not respond"):
            await OidcProvider(issuer, CLIENT_ID, CLIENT_SECRET, timeout_sec=0.5).start_login("http://judge/back")
