"""One's own account, and other people's for those who may."""

from __future__ import annotations

import pytest

from adjudge.services.users import CreatedUser, UserSpec
from tests.support.asgi_app import AsgiApp
from tests.unit.services.test_login import PASSWORD, add_user, log_in

ME = "/api/v1/me"
TOKENS = "/api/v1/me/tokens"


async def test_a_token_is_shown_once_listed_and_revoked(api_on_both: AsgiApp) -> None:
    api = api_on_both
    _, secret = await api.user("contestant")
    async with api.client(secret) as client:
        made = (await client.post(TOKENS, json={"name": "ci", "scopes": ["account:own"]})).json()
        listed = (await client.get(TOKENS)).json()["items"]
        assert listed[0]["id"] == made["id"]
        assert made["secret"] not in str(listed) + str(await api.store.rows("SELECT * FROM api_tokens"))
        async with api.client(made["secret"]) as narrow:
            assert (await narrow.get(ME)).json()["permissions"] == ["account:own"]
            assert (await client.delete(f"{TOKENS}/{made['id']}")).status_code == 204
            assert (await narrow.get(ME)).status_code == 401, "the process that revoked it forgets it at once"
        assert (await client.delete(f"{TOKENS}/{made['id']}")).json()["code"] == "TOKEN_NOT_FOUND"


async def test_a_token_ends_when_it_said_it_would(api: AsgiApp) -> None:
    _, secret = await api.user("contestant")
    async with api.client(secret) as client:
        made = (await client.post(TOKENS, json={"name": "short", "expires_in_days": 0.5})).json()
        async with api.client(made["secret"]) as short:
            assert (await short.get(ME)).status_code == 200
            await api.store.clock.advance(ms=43_200_001)
            api.services.credentials.invalidate_user((await client.get(ME)).json()["id"])
            assert (await short.get(ME)).status_code == 401


@pytest.mark.parametrize(
    ("scopes", "code"),
    [
        (["ops:control"], "FORBIDDEN"),
        (["submission:create", "user:write"], "FORBIDDEN"),
        (["no:such"], "INVALID_INPUT"),
        ([], "INVALID_INPUT"),
    ],
)
async def test_a_token_never_gets_what_its_maker_has_not(api: AsgiApp, scopes: list[str], code: str) -> None:
    async with api.as_role("contestant") as client:
        answer = await client.post(TOKENS, json={"name": "wide", "scopes": scopes})
        assert answer.json()["code"] == code


async def test_a_narrow_token_makes_no_wider_one(api: AsgiApp) -> None:
    async with api.as_role("admin") as admin:
        made = (await admin.post(TOKENS, json={"name": "narrow", "scopes": ["account:own"]})).json()
    async with api.client(made["secret"]) as narrow:
        for scopes in (["*"], ["ops:control"]):
            answer = await narrow.post(TOKENS, json={"name": "wide", "scopes": scopes})
            assert answer.json()["code"] == "FORBIDDEN"


async def test_another_users_tokens_and_sessions_are_not_found(api: AsgiApp) -> None:
    await add_user(api)
    async with api.client() as ada, api.as_role("admin") as other:
        csrf = (await log_in(ada))["csrf_token"]
        token = (await ada.post(TOKENS, json={"name": "hers"}, headers={"X-CSRF-Token": csrf})).json()
        (session,) = (await ada.get("/api/v1/me/sessions")).json()["items"]
        assert (await other.delete(f"{TOKENS}/{token['id']}")).json()["code"] == "TOKEN_NOT_FOUND"
        answer = await other.delete(f"/api/v1/me/sessions/{session['id']}")
        assert answer.json()["code"] == "SESSION_NOT_FOUND"
        assert token["id"] not in (await other.get(TOKENS)).text
        assert (await ada.get(ME)).status_code == 200


async def test_i_see_where_i_am_logged_in_and_can_end_it(api: AsgiApp) -> None:
    await add_user(api)
    async with api.client() as first, api.client() as second:
        first.headers["User-Agent"] = "first\tbrowser"
        await log_in(first)
        csrf = (await log_in(second))["csrf_token"]
        items = (await second.get("/api/v1/me/sessions")).json()["items"]
        assert [item["current"] for item in items] == [True, False]
        assert items[1]["user_agent"] == "firstbrowser"
        path = f"/api/v1/me/sessions/{items[1]['id']}"
        assert (await second.delete(path, headers={"X-CSRF-Token": csrf})).status_code == 204
        assert (await first.get(ME)).status_code == 401
        assert (await second.get(ME)).status_code == 200


async def test_a_profile_changes_only_where_it_says(api: AsgiApp) -> None:
    async with api.as_role("contestant") as client, api.as_role("contestant") as other:
        await client.patch(ME, json={"email": "ada@example.org", "display_name": "Ada\u0007 L."})
        me = (await client.patch(ME, json={"email": None})).json()
        assert (me["email"], me["display_name"]) == (None, "Ada L.")
        assert (await client.patch(ME, json={"email": "not an address"})).status_code == 400
        assert (await client.patch(ME, json={"role": "admin"})).status_code == 400
        await client.patch(ME, json={"email": "ada@example.org"})
        taken = await other.patch(ME, json={"email": "ada@example.org"})
        assert (taken.status_code, taken.json()["code"]) == (409, "NAME_TAKEN")


async def test_admins_create_find_promote_and_reset(api_on_both: AsgiApp) -> None:
    api = api_on_both
    async with api.as_role("admin") as admin, api.client() as browser:
        made = (await admin.post("/api/v1/users", json={"name": "Grace", "role": "setter"})).json()
        user_id = made["user"]["id"]
        assert (made["user"]["name"], made["user"]["must_change_password"]) == ("grace", True)
        await log_in(browser, "grace", made["one_time_password"])
        assert (await admin.post("/api/v1/users", json={"name": "GRACE"})).json()["code"] == "NAME_TAKEN"
        found = (await admin.get("/api/v1/users", params={"search": "rac", "role": "setter"})).json()
        assert [user["id"] for user in found["items"]] == [user_id]
        assert (await admin.get("/api/v1/users", params={"search": "r_c"})).json()["items"] == []
        patch = {"role": "judge", "reason": "joins the jury"}
        assert (await admin.patch(f"/api/v1/users/{user_id}", json=patch)).json()["role"] == "judge"
        reset = await admin.post(f"/api/v1/users/{user_id}:reset-password", json={"reason": "forgot it"})
        assert (await browser.get(ME)).status_code == 401
        await log_in(browser, "grace", reset.json()["one_time_password"])
    log = await api.store.rows("SELECT action FROM audit_log WHERE object_id = :id ORDER BY id", id=user_id)
    assert [entry["action"] for entry in log] == ["create", "change_role", "reset_password"]
    secrets = (made["one_time_password"], reset.json()["one_time_password"])
    assert not [secret for secret in secrets if secret in str(await api.store.rows("SELECT * FROM audit_log"))]


async def test_users_come_in_pages(api: AsgiApp) -> None:
    async with api.as_role("admin") as admin:
        for number in range(4):
            await admin.post("/api/v1/users", json={"name": f"bot{number}", "role": "service"})
        names, cursor = [], None
        while True:
            params = {"limit": "2", "search": "bot"} | ({"cursor": cursor} if cursor else {})
            page = (await admin.get("/api/v1/users", params=params)).json()
            names += [user["name"] for user in page["items"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert names == ["bot0", "bot1", "bot2", "bot3"]
        assert (await admin.get("/api/v1/users", params={"cursor": "bm9uc2Vuc2U"})).status_code == 400


async def test_the_last_admin_stays(api: AsgiApp) -> None:
    user_id, secret = await api.user("admin")
    async with api.client(secret) as admin:
        for path, method, body in (
            (f"/api/v1/users/{user_id}:disable", "POST", {"reason": "x"}),
            (f"/api/v1/users/{user_id}", "PATCH", {"role": "judge", "reason": "x"}),
        ):
            assert (await admin.request(method, path, json=body)).json()["code"] == "CONFLICT"
        await api.user("admin")
        answer = await admin.patch(f"/api/v1/users/{user_id}", json={"role": "judge", "reason": "x"})
        assert answer.json()["role"] == "judge"
        assert (await admin.get("/api/v1/users")).status_code == 403, "the new role counts at once"


async def test_what_is_no_id_is_not_found(api: AsgiApp) -> None:
    async with api.as_role("admin") as admin:
        assert (await admin.get("/api/v1/users/nobody")).json()["code"] == "USER_NOT_FOUND"


async def test_a_credential_is_not_looked_up_for_every_request(api: AsgiApp) -> None:
    user_id, secret = await api.user("contestant")
    async with api.client(secret) as client:
        await client.get(ME)
        await api.store.write("UPDATE api_tokens SET revoked_at = created_at WHERE user_id = :id", id=user_id)
        assert (await client.get(ME)).status_code == 200, "revoked behind our back: believed for a few seconds"
        api.services.credentials.invalidate_user(user_id)
        assert (await client.get(ME)).status_code == 401


def test_passwords_are_not_in_reprs() -> None:
    assert PASSWORD not in repr(UserSpec("ada", password=PASSWORD))
    assert PASSWORD not in repr(CreatedUser(None, PASSWORD))  # type: ignore[arg-type]  # only its repr matters


async def test_a_password_is_not_guessed_through_an_open_session(api: AsgiApp) -> None:
    await add_user(api)
    async with api.client() as browser:
        me = await log_in(browser)
        headers = {"X-CSRF-Token": me["csrf_token"]}
        body = {"current": "a wrong guess", "new": "another good one"}
        seen = [(await browser.post(f"{ME}:password", json=body, headers=headers)).status_code for _ in range(30)]
    assert seen[-1] == 429
