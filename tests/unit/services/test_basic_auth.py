"""HTTP Basic authentication of the Contest API."""

from __future__ import annotations

import base64

import httpx
import pytest

from adjudge.domain.errors import LoginFailed
from adjudge.domain.ids import new_id
from adjudge.services.basic_auth import BasicAuthentication
from adjudge.services.passwords import PasswordCheck, PasswordHashing
from adjudge.services.viewer import AuthMethod, CredentialCache
from adjudge.store.accounts import users
from tests.support.asgi_app import AsgiApp

PASSWORD = "correct horse: battery"  # of a test
ROOT = "/api/contests"


async def new_user(api: AsgiApp, name: str = "ann", *, password: str = PASSWORD, **fields: object) -> str:
    hashed = await api.services.logins.passwords.hash(password)
    user = users.NewUser(new_id(), name, password_hash=hashed, **fields)  # type: ignore[arg-type]
    await api.store.transact(lambda tx: users.insert(tx, user))
    return user.id


async def ask(api: AsgiApp, auth: tuple[str, str], path: str = ROOT, **options: object) -> httpx.Response:
    async with api.client() as client:
        return await client.request(str(options.pop("method", "GET")), path, auth=auth, **options)  # type: ignore[arg-type]


def unverified(api: AsgiApp, clock: list[float]) -> tuple[BasicAuthentication, CredentialCache]:
    """An own cache with a clock of the test."""
    credentials = CredentialCache(api.store.database, cache_sec=3, session_idle_us=1, clock=lambda: clock[0])
    logins = api.services.logins
    return BasicAuthentication(api.store.database, logins, credentials, clock=lambda: clock[0]), credentials


async def test_password_opens_the_contest_api_and_nothing_else(api_on_both: AsgiApp) -> None:
    api = api_on_both
    await new_user(api)
    for path in (ROOT, "/api/v4/contests", "/api/2023-06/contests", "/api/2026-01/contests"):
        assert (await ask(api, ("ann", PASSWORD), path)).status_code == 200
        assert (await ask(api, ("Ann", PASSWORD), path)).status_code == 200, "names have no case"
    assert (await ask(api, ("ann", PASSWORD), "/api/v1/me")).status_code == 401
    assert (await ask(api, ("ann", PASSWORD), "/judge0/about")).status_code == 401


async def test_wrong_password_is_refused_in_the_form_of_the_api(api: AsgiApp) -> None:
    await new_user(api)
    for auth in (("ann", "wrong"), ("nobody", PASSWORD), ("", ""), ("a b\0", "\0")):
        answer = await ask(api, auth)
        assert answer.status_code == 401
        assert answer.json() == {"code": 401, "message": "Wrong user name or password."}


@pytest.mark.parametrize(
    "given", ["Basic", "Basic ", "Basic x", "Basic " + base64.b64encode(b"ann").decode(), "Basic /w=="]
)
async def test_malformed_header_is_refused(api: AsgiApp, given: str) -> None:
    async with api.client(headers={"Authorization": given}) as client:
        answer = await client.get(ROOT)
        assert answer.status_code == 401
        assert "name:password" in answer.json()["message"] or "Bearer" in answer.json()["message"]


async def test_attempts_are_limited_as_logins(api: AsgiApp) -> None:
    await new_user(api)
    found = [(await ask(api, ("ann", f"wrong {number}"))).status_code for number in range(12)]
    assert found[0] == 401
    assert found[-1] == 429
    answer = await ask(api, ("ann", "wrong"))
    assert answer.json()["code"] == 429
    assert int(answer.headers["Retry-After"]) > 0


async def test_password_is_checked_once_in_ten_minutes(api: AsgiApp, monkeypatch: pytest.MonkeyPatch) -> None:
    await new_user(api)
    checks = 0
    check = PasswordHashing.check

    async def counted(self: PasswordHashing, stored: str | None, password: str) -> PasswordCheck:
        nonlocal checks
        checks += 1
        return await check(self, stored, password)

    monkeypatch.setattr(PasswordHashing, "check", counted)
    clock = [0.0]
    basic, _ = unverified(api, clock)
    for clock[0] in (0.0, 1.0, 5.0, 100.0, 599.0):
        assert (await basic.find_viewer("ann", PASSWORD, "")).via is AuthMethod.BASIC
    assert checks == 1
    await basic.find_viewer("ann", PASSWORD, "10.0.0.1")
    assert checks == 2, "another address is another credential"
    clock[0] = 700.0
    await basic.find_viewer("ann", PASSWORD, "")
    assert checks == 3


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE users SET password_hash = 'other' WHERE id = :id",
        "UPDATE users SET disabled_at = created_at WHERE id = :id",
    ],
)
async def test_change_elsewhere_holds_when_the_cache_has_expired(api_on_both: AsgiApp, change: str) -> None:
    api, clock = api_on_both, [0.0]
    user_id = await new_user(api)
    basic, credentials = unverified(api, clock)
    viewer = await basic.find_viewer("ann", PASSWORD, "")
    assert viewer.user_id == user_id
    assert await credentials.find_revoked([viewer]) == set()
    await api.store.write(change, id=user_id)
    assert await credentials.find_revoked([viewer]) == {viewer}, "open streams end"
    clock[0] = 4.0
    with pytest.raises(LoginFailed):
        await basic.find_viewer("ann", PASSWORD, "")


async def test_change_in_this_process_holds_at_once(api: AsgiApp) -> None:
    user_id = await new_user(api)
    assert (await ask(api, ("ann", PASSWORD))).status_code == 200
    await api.store.write("UPDATE users SET disabled_at = created_at WHERE id = :id", id=user_id)
    api.services.credentials.invalidate_user(user_id)
    assert (await ask(api, ("ann", PASSWORD))).status_code == 401


async def test_password_that_must_be_changed_opens_nothing(api: AsgiApp) -> None:
    await new_user(api, must_change_password=True)
    answer = await ask(api, ("ann", PASSWORD))
    assert (answer.status_code, answer.json()["code"]) == (403, 403)


async def test_pages_of_other_origins_change_nothing(api: AsgiApp) -> None:
    """A browser that knows the password sends it with forms of any page."""
    await new_user(api)
    path = f"{ROOT}/none/clarifications"
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = await ask(api, ("ann", PASSWORD), path, method="POST", headers=headers, json={"text": "?"})
        assert answer.status_code == 403
        assert "CSRF" in answer.json()["message"]
    assert (await ask(api, ("ann", PASSWORD), path, method="POST", json={"text": "?"})).status_code == 404


async def test_account_of_a_contest_is_bound_to_its_network(api_on_both: AsgiApp) -> None:
    api = api_on_both
    user_id = await new_user(api)
    async with api.as_role("setter") as setter:
        body = {"slug": "spring", "title": "Spring", "duration_sec": 60}
        contest_id = (await setter.post("/api/v1/contests", json=body)).json()["id"]
    insert = """
        INSERT INTO contest_accounts (user_id, contest_id, address_ranges, temporary, created_at)
        VALUES (:user_id, :contest_id, '["10.0.0.0/8"]', TRUE, 1)
    """
    await api.store.write(insert, user_id=user_id, contest_id=contest_id)
    answer = await ask(api, ("ann", PASSWORD))
    assert answer.status_code == 403
    assert "network" in answer.json()["message"]
    basic = api.services.basic_auth
    assert (await basic.find_viewer("ann", PASSWORD, "10.1.2.3")).user_id == user_id
