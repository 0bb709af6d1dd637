"""Getting in: passwords, sessions, registration, and requests that other sites' pages send."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from argon2 import PasswordHasher

from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import new_id
from adjudge.domain.permissions import Role
from adjudge.services.passwords import PasswordHashing, generate_one_time_password, validate_new_password
from adjudge.services.users import UserSpec
from adjudge.store.accounts import api_tokens
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.store_harness import StoreHarness

PASSWORD = "a-long-enough-secret"
LOGIN = "/api/v1/login"
ME = "/api/v1/me"


async def add_user(api: AsgiApp, name: str = "ada", role: Role = Role.CONTESTANT, *, must_change: bool = False) -> str:
    order = UserSpec(name, role, password=PASSWORD, must_change_password=must_change)
    return (await api.services.users.create_user(order, actor="test")).user.id


async def log_in(client: httpx.AsyncClient, name: str = "ada", password: str = PASSWORD) -> dict[str, Any]:
    answer = await client.post(LOGIN, json={"name": name, "password": password})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_a_password_opens_a_session_that_knows_who_i_am(api_on_both: AsgiApp) -> None:
    api = api_on_both
    await add_user(api)
    async with api.client() as browser:
        answer = await browser.post(LOGIN, json={"name": " Ada ", "password": PASSWORD})
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith("adjudge_session=")
        assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
        me = (await browser.get(ME)).json()
        assert (me["name"], me["role"], me["csrf_token"]) == ("ada", "contestant", answer.json()["csrf_token"])
        stored = await api.store.row("SELECT * FROM sessions")
        assert browser.cookies["adjudge_session"] not in str(stored)


async def test_under_https_the_cookie_is_bound_to_the_host(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    async with make_app(sqlite_store, tmp_path, {"server.public_url": "https://judge.example"}) as api:
        await add_user(api)
        async with api.client() as browser:
            headers = {"Origin": "https://judge.example"}
            answer = await browser.post(LOGIN, json={"name": "ada", "password": PASSWORD}, headers=headers)
            cookie = answer.headers["Set-Cookie"]
            assert cookie.startswith("__Host-adjudge_session=")
            assert "Secure" in cookie.split("; ")
            secret = cookie.split(";")[0].partition("=")[2]
            plain = await browser.get(ME, headers={"Cookie": f"adjudge_session={secret}"})
            assert plain.status_code == 401, "a cookie that plain http could have set counts for nothing"


@pytest.mark.parametrize(
    ("name", "password"), [("ada", "wrong"), ("nobody", PASSWORD), ("\0", PASSWORD), ("ada", ""), ("robot", PASSWORD)]
)
async def test_reason_of_a_failed_login_is_not_revealed(api: AsgiApp, name: str, password: str) -> None:
    await add_user(api)
    await api.services.users.create_user(UserSpec("robot", Role.SERVICE), actor="test")
    async with api.client() as browser:
        answer = await browser.post(LOGIN, json={"name": name, "password": password})
    assert (answer.status_code, answer.json()["code"]) == (401, "LOGIN_FAILED")
    assert answer.json()["detail"] == "Wrong user name or password."


async def test_a_disabled_user_is_out_at_once(api: AsgiApp) -> None:
    user_id = await add_user(api)
    async with api.client() as browser, api.as_role("admin") as admin:
        await log_in(browser)
        answer = await admin.post(f"/api/v1/users/{user_id}:disable", json={"reason": "left"})
        assert answer.json()["disabled"] is True
        assert (await browser.get(ME)).status_code == 401
        assert (await browser.post(LOGIN, json={"name": "ada", "password": PASSWORD})).status_code == 401
        await admin.post(f"/api/v1/users/{user_id}:enable", json={"reason": "back"})
        await log_in(browser)


async def test_guessing_is_slowed_down(api: AsgiApp) -> None:
    await add_user(api)
    async with api.client() as browser:
        answers = [await browser.post(LOGIN, json={"name": "ada", "password": "guess"}) for _ in range(11)]
        assert [answer.status_code for answer in answers] == [401] * 10 + [429]
        assert answers[-1].json()["code"] == "RATE_LIMITED"
        assert int(answers[-1].headers["Retry-After"]) >= 1
        others = await browser.post(LOGIN, json={"name": "grace", "password": "guess"})
        assert others.status_code == 401


async def test_a_session_slides_and_has_an_end(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    lives: dict[str, object] = {"accounts.session_idle_hours": 1.0, "accounts.session_max_hours": 2.0}
    async with make_app(sqlite_store, tmp_path, lives) as api, api.client() as browser:
        user_id = await add_user(api)
        await log_in(browser)
        statuses = []
        for _ in range(3):
            await sqlite_store.clock.advance(ms=3_000_000)
            api.services.credentials.invalidate_user(user_id)
            statuses.append((await browser.get(ME)).status_code)
            await api.services.credentials.close()
        assert statuses == [200, 200, 401], "used within the hour it goes on, but not past its second"
        await log_in(browser)
        await sqlite_store.clock.advance(ms=3_600_001)
        api.services.credentials.invalidate_user(user_id)
        assert (await browser.get(ME)).status_code == 401, "not used for an hour it has ended"


async def test_logout_ends_the_session_for_every_copy_of_its_cookie(api: AsgiApp) -> None:
    await add_user(api)
    async with api.client() as browser, api.client() as thief:
        me = await log_in(browser)
        thief.cookies.update(browser.cookies)
        assert (await thief.get(ME)).status_code == 200
        answer = await browser.post("/api/v1/logout", headers={"X-CSRF-Token": me["csrf_token"]})
        assert answer.status_code == 204
        assert "adjudge_session" not in browser.cookies
        assert (await thief.get(ME)).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 204),
        ({"Origin": "http://adjudge", "Sec-Fetch-Site": "same-origin"}, 204),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"X-CSRF-Token": "wrong"}, 403),
        ({"X-CSRF-Token": ""}, 403),
    ],
)
async def test_an_unsafe_request_must_come_from_our_page(api: AsgiApp, headers: dict[str, str], status: int) -> None:
    await add_user(api)
    async with api.client() as browser:
        token = (await log_in(browser))["csrf_token"]
        answer = await browser.post("/api/v1/logout", headers={"X-CSRF-Token": token} | headers)
        assert answer.status_code == status
        if status == 403:
            assert answer.json()["code"] == "CSRF_REFUSED"
            assert (await browser.get(ME)).status_code == 200, "reading needs no proof"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/contests:import",
        "/api/v1/problems:import",
        "/api/contests/spring/problems",
        "/api/v4/contests/spring/problemset",
    ],
)
async def test_the_api_reads_no_form_for_the_token(api: AsgiApp, path: str) -> None:
    """The body of an upload may be large, so it is not read before the request is known to be permitted."""
    await add_user(api)
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        yield f'--x\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n{token}\r\n'.encode()
        yield b'--x\r\nContent-Disposition: form-data; name="zip"; filename="a.zip"\r\n\r\n'
        for _ in range(64):
            read += 1
            yield bytes(65_536)
        yield b"\r\n--x--\r\n"

    async with api.client() as browser:
        token = (await log_in(browser))["csrf_token"]
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        answer = await browser.post(path, content=body(), headers=headers)
    assert (answer.status_code, "CSRF" in answer.text or "csrf" in answer.text) == (403, True), answer.text
    assert read <= 1


async def test_another_sites_page_cannot_log_somebody_in(api: AsgiApp) -> None:
    await add_user(api)
    async with api.client() as browser:
        order = {"name": "ada", "password": PASSWORD}
        answer = await browser.post(LOGIN, json=order, headers={"Origin": "http://evil.example"})
        assert (answer.status_code, answer.json()["code"]) == (403, "CSRF_REFUSED")


async def test_a_given_password_must_be_changed_first(api: AsgiApp) -> None:
    await add_user(api, must_change=True)
    async with api.client() as browser, api.client() as other:
        me = await log_in(browser)
        await log_in(other)
        assert (me["must_change_password"], me["permissions"]) == (True, ["account:own"])
        assert (await browser.get("/api/v1/users")).json()["code"] == "PASSWORD_CHANGE_REQUIRED"
        headers = {"X-CSRF-Token": me["csrf_token"]}
        for wrong, code in (
            ({"current": "wrong", "new": "another-long-secret"}, "LOGIN_FAILED"),
            ({"current": PASSWORD, "new": PASSWORD}, "INVALID_INPUT"),
            ({"current": PASSWORD, "new": "short"}, "INVALID_INPUT"),
            ({"current": PASSWORD, "new": "xx-ada-xx-ada"}, "INVALID_INPUT"),
        ):
            answer = await browser.post("/api/v1/me:password", json=wrong, headers=headers)
            assert answer.json()["code"] == code, wrong
        change = {"current": PASSWORD, "new": "another-long-secret"}
        assert (await browser.post("/api/v1/me:password", json=change, headers=headers)).status_code == 204
        assert "submission:create" in (await browser.get(ME)).json()["permissions"]
        assert (await other.get(ME)).status_code == 401, "every other session has ended"
        await log_in(other, password="another-long-secret")


async def test_token_of_the_operator_works_before_a_password_is_chosen_and_after(api: AsgiApp) -> None:
    user_id, secret = await add_user(api, role=Role.ADMIN, must_change=True), api_tokens.new_secret()
    await api.store.transact(lambda tx: api_tokens.insert(tx, api_tokens.NewApiToken(new_id(), user_id, "t", secret)))
    async with api.client(secret) as program, api.client() as browser:
        assert (await program.get("/api/v1/users")).status_code == 200
        me = await log_in(browser)
        headers = {"X-CSRF-Token": me["csrf_token"]}
        change = {"current": PASSWORD, "new": "another-long-secret"}
        assert (await browser.post("/api/v1/me:password", json=change, headers=headers)).status_code == 204
        api.services.credentials.invalidate_user(user_id)
        assert (await program.get("/api/v1/users")).status_code == 200


async def test_no_token_is_made_with_a_password_that_was_given(api: AsgiApp) -> None:
    await add_user(api, must_change=True)
    async with api.client() as browser:
        me = await log_in(browser)
        order = {"name": "t", "scopes": ["account:own"]}
        answer = await browser.post("/api/v1/me/tokens", json=order, headers={"X-CSRF-Token": me["csrf_token"]})
        assert (answer.status_code, answer.json()["code"]) == (403, "PASSWORD_CHANGE_REQUIRED")


async def test_new_password_revokes_other_tokens_by_default(api: AsgiApp) -> None:
    user_id = await add_user(api)
    for number, (fields, left) in enumerate((({}, 1), ({"revoke_tokens": False}, 2))):
        mine, other = api_tokens.new_secret(), api_tokens.new_secret()
        for secret in (mine, other):
            new = api_tokens.NewApiToken(new_id(), user_id, "t", secret)
            await api.store.transact(lambda tx, new=new: api_tokens.insert(tx, new))  # type: ignore[misc]  # a default binds it
        async with api.client(mine) as client, api.client(other) as elsewhere:
            assert (await elsewhere.get(ME)).status_code == 200
            current = PASSWORD if number == 0 else "another-long-secret-0"
            change = {"current": current, "new": f"another-long-secret-{number}"} | fields
            assert (await client.post("/api/v1/me:password", json=change)).status_code == 204
            assert (await client.get(ME)).status_code == 200, "what it was changed by stays"
            assert (await elsewhere.get(ME)).status_code == (401 if left == 1 else 200)


async def test_registration_is_closed_by_invitation_or_open(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    order, roles = {"name": "eve", "password": PASSWORD}, []
    for mode, status in (("closed", 403), ("invitation", 403), ("open", 201)):
        async with make_app(sqlite_store, tmp_path, {"accounts.registration": mode}) as api, api.client() as browser:
            answer = await browser.post("/api/v1/register", json=order)
            assert answer.status_code == status, answer.text
            roles.append(answer.json().get("role"))
            assert (await browser.get(LOGIN)).json() == {"registration": mode, "oidc": None}
    assert roles == [None, None, "contestant"]


async def test_an_invitation_gives_its_role_as_often_as_it_says(api_on_both: AsgiApp) -> None:
    api = api_on_both
    async with api.as_role("admin") as admin, api.client() as browser:
        made = (await admin.post("/api/v1/invitations", json={"role": "setter", "uses": 1})).json()
        assert made["code"] not in str(await api.store.rows("SELECT * FROM invitations"))
        order = {"name": "eve", "password": PASSWORD, "invitation": made["code"]}
        taken = await browser.post("/api/v1/register", json=order | {"password": "short"})
        assert taken.status_code == 400
        answer = await browser.post("/api/v1/register", json=order)
        assert (answer.status_code, answer.json()["role"]) == (201, "setter")
        again = await browser.post("/api/v1/register", json=order | {"name": "mallory"})
        assert again.json()["code"] == "INVALID_INPUT"
        listed = (await admin.get("/api/v1/invitations")).json()["items"]
        assert [(item["uses"], item["max_uses"]) for item in listed] == [(1, 1)]


async def test_an_invitation_that_ended_lets_nobody_in(api: AsgiApp) -> None:
    async with api.as_role("admin") as admin, api.client() as browser:
        for ending in ("revoke", "expire"):
            made = (await admin.post("/api/v1/invitations", json={"expires_in_days": 1})).json()
            if ending == "revoke":
                assert (await admin.delete(f"/api/v1/invitations/{made['id']}")).status_code == 204
            else:
                await api.store.clock.advance(ms=86_400_001)
            order = {"name": "eve", "password": PASSWORD, "invitation": made["code"]}
            assert (await browser.post("/api/v1/register", json=order)).status_code == 400


async def test_a_command_line_logs_in_for_a_token(api: AsgiApp) -> None:
    await add_user(api)
    async with api.client() as client:
        order = {"name": "ada", "password": PASSWORD, "token_name": "laptop"}
        made = (await client.post("/api/v1/login:token", json=order)).json()
        assert "Set-Cookie" not in (await client.post("/api/v1/login:token", json=order)).headers
    async with api.client(made["secret"]) as client:
        assert (await client.get(ME)).json()["name"] == "ada"


@pytest.fixture
async def passwords() -> PasswordHashing:
    return PasswordHashing(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


async def test_a_hash_follows_its_parameters(passwords: PasswordHashing) -> None:
    stored = await passwords.hash(PASSWORD)
    stronger = PasswordHashing(PasswordHasher(time_cost=2, memory_cost=8, parallelism=1))
    assert (await passwords.check(stored, PASSWORD)).fresh_hash is None
    checked = await stronger.check(stored, PASSWORD)
    assert checked.right
    assert checked.fresh_hash is not None
    assert (await stronger.check(checked.fresh_hash, PASSWORD)).fresh_hash is None
    assert not (await stronger.check(checked.fresh_hash, "other")).right
    assert not (await stronger.check("not a hash", PASSWORD)).right


async def test_a_login_renews_a_weak_hash(api: AsgiApp) -> None:
    await add_user(api)
    weak = PasswordHasher(time_cost=2, memory_cost=8, parallelism=1).hash(PASSWORD)
    await api.store.write("UPDATE users SET password_hash = :hash", hash=weak)
    async with api.client() as browser:
        await log_in(browser)
        assert (await api.store.row("SELECT password_hash FROM users"))["password_hash"] != weak
        await log_in(browser)


@pytest.mark.parametrize(
    "password", ["short", "aaaaaaaaaaaaaa", "i-am-ada-and-long", "x" * 1_025, "nul\0in-the-middle"]
)
def test_a_password_that_is_easy_to_guess_is_refused(password: str) -> None:
    with pytest.raises(InvalidInput, match="password"):
        validate_new_password(password, name="ada", min_length=10)


def test_one_time_passwords_would_pass_for_chosen_ones() -> None:
    assert validate_new_password(generate_one_time_password(), name="ada", min_length=10)
