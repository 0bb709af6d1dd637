"""Accounts that were made for a contest, over the API: cards, new passwords, disabling, expiry, and networks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.domain.timestamps import format_timestamp
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.store_harness import NOON_US, StoreHarness
from tests.unit.services.test_basic_auth import unverified
from tests.unit.services.test_contests import HOUR_MS, HOUR_US, ROOT, new_contest, ok

SPRING = f"{ROOT}/spring"
ACCOUNTS = f"{SPRING}/accounts"
DAY_US = 24 * HOUR_US
END_US = NOON_US + 6 * HOUR_US


@pytest.fixture
async def published(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A server with the problem "sum", on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


class AccountTester:
    """A published contest from 13:00 to 18:00 with two teams without members, its organiser, and a visitor."""

    def __init__(self, organiser: httpx.AsyncClient, visitor: httpx.AsyncClient) -> None:
        self.organiser, self.visitor = organiser, visitor

    async def post(self, action: str, **body: Any) -> Any:
        return await ok(await self.organiser.post(f"{ACCOUNTS}:{action}", json=body))

    async def listed(self) -> dict[str, Any]:
        items = (await ok(await self.organiser.get(ACCOUNTS)))["items"]
        return {item["username"]: item for item in items}

    async def log_in(self, name: str, password: str) -> httpx.Response:
        body = {"name": name, "password": password, "token_name": "t"}
        return await self.visitor.post("/api/v1/login:token", json=body)

    async def token(self, card: dict[str, Any]) -> dict[str, str]:
        made = await ok(await self.log_in(card["username"], card["password"]))
        return {"Authorization": f"Bearer {made['secret']}"}


@pytest.fixture
async def tester(published: PublishedProblem) -> AsyncIterator[AccountTester]:
    async with AsyncExitStack() as stack:
        organiser = await stack.enter_async_context(published.user_client("setter"))
        visitor = await stack.enter_async_context(published.api.client())
        await new_contest(organiser, freeze_after_sec=None)
        await ok(await organiser.post(f"{SPRING}:publish"))
        for code, name in (("1", "Null Pointers"), ("B2", "Segfaults")):
            body = {"code": code, "name": name, "location": f"Seat {code}"}
            await ok(await organiser.post(f"{SPRING}/participants", json=body))
        yield AccountTester(organiser, visitor)


async def test_accounts_are_made_once_for_teams_without_members_and_log_in(
    tester: AccountTester, published: PublishedProblem
) -> None:
    await published.api.user("contestant", "spring-b2")
    cards = (await tester.post("create", prefix="spring-"))["items"]
    assert [(card["team"], card["name"], card["location"]) for card in cards] == [
        ("1", "Null Pointers", "Seat 1"),
        ("B2", "Segfaults", "Seat B2"),
    ]
    assert cards[0]["username"] == "spring-1"
    assert cards[1]["username"].startswith("spring-b2-")  # the other name is taken
    assert (await tester.post("create"))["items"] == []
    me = await ok(await tester.visitor.get("/api/v1/me", headers=await tester.token(cards[0])))
    assert (me["name"], me["role"]) == ("spring-1", "contestant")
    (first, _) = (await ok(await tester.organiser.get(f"{SPRING}/participants")))["items"]
    assert first["members"] == ["spring-1"]
    listed = await tester.listed()
    assert listed["spring-1"]["participant"] == "1"
    assert "password" not in str(listed)
    more = (await tester.post("create", participants=["1"]))["items"]
    assert more[0]["username"].startswith("team1")
    await tester.organiser.patch(SPRING, json={"max_team_members": 2})
    full = await tester.organiser.post(f"{ACCOUNTS}:create", json={"participants": ["1"]})
    assert (full.status_code, full.json()["fields"]["field"]) == (400, "participants")
    unknown = await tester.organiser.post(f"{ACCOUNTS}:create", json={"participants": ["1", "9"]})
    assert unknown.json()["fields"]["field"] == "participants[1]"
    bad = await tester.organiser.post(f"{ACCOUNTS}:create", json={"prefix": "a b"})
    assert bad.json()["fields"]["field"] == "prefix"


async def test_new_passwords_replace_the_old_ones_and_end_sessions(
    tester: AccountTester, published: PublishedProblem
) -> None:
    old, other = (await tester.post("create"))["items"]
    token, other_token = await tester.token(old), await tester.token(other)
    (new,) = (await tester.post("renew-passwords", names=[old["username"]]))["items"]
    assert (new["username"], new["password"] != old["password"]) == (old["username"], True)
    assert (await tester.log_in(old["username"], old["password"])).status_code == 401
    assert (await tester.visitor.get("/api/v1/me", headers=token)).status_code == 401
    assert (await tester.visitor.get("/api/v1/me", headers=other_token)).status_code == 200
    await tester.token(new)
    assert len((await tester.post("renew-passwords"))["items"]) == 2
    async with published.user_client("contestant") as user:
        name = (await ok(await user.get("/api/v1/me")))["name"]
        foreign = await tester.organiser.post(f"{ACCOUNTS}:renew-passwords", json={"names": [name]})
        assert (foreign.status_code, foreign.json()["fields"]["field"]) == (400, "names[0]")
        assert (await user.post(f"{ACCOUNTS}:renew-passwords", json={})).status_code == 403
        assert (await user.get(ACCOUNTS)).status_code == 403


@pytest.mark.parametrize("change", ["disabled_at = created_at", "expires_at = created_at"])
async def test_streams_opened_with_a_password_end_with_the_account(
    tester: AccountTester, published: PublishedProblem, change: str
) -> None:
    card, other = (await tester.post("create"))["items"]
    basic, credentials = unverified(published.api, [0.0])
    viewers = [await basic.find_viewer(item["username"], item["password"], "") for item in (card, other)]
    assert await credentials.find_revoked(viewers) == set()
    await published.api.store.write(f"UPDATE contest_accounts SET {change} WHERE user_id = :id", id=viewers[0].id)
    assert await credentials.find_revoked(viewers) == {viewers[0]}


async def test_organisers_do_not_decide_on_accounts_with_a_role_in_the_installation(
    tester: AccountTester, published: PublishedProblem
) -> None:
    promoted, other = (await tester.post("create"))["items"]
    name = promoted["username"]
    async with published.user_client("admin") as admin:
        (user,) = (await ok(await admin.get("/api/v1/users", params={"search": name})))["items"]
        body = {"role": "judge", "reason": "helps out"}
        await ok(await admin.patch(f"/api/v1/users/{user['id']}", json=body))
    for action in ("renew-passwords", "disable"):
        refused = await tester.organiser.post(f"{ACCOUNTS}:{action}", json={"names": [name]})
        assert (refused.status_code, "ask an administrator" in refused.json()["detail"]) == (403, True), action
    assert [item["username"] for item in (await tester.post("renew-passwords"))["items"]] == [other["username"]]
    made = await tester.post("create-tokens", name="rehearsal", expires_in_hours=1)
    assert [item["username"] for item in made["items"]] == [other["username"]]
    text = json.dumps([{"id": name, "username": name, "password": "new-password-1", "type": "other"}])
    files = {"files": [{"name": "accounts.json", "text": text}]}
    await ok(await tester.organiser.post(f"{SPRING}/participants:import", json=files))
    assert (await tester.log_in(name, "new-password-1")).status_code == 401
    assert (await tester.log_in(name, promoted["password"])).is_success
    assert (await tester.post("disable", reason="over"))["changed"] == 1


async def test_all_accounts_are_disabled_and_enabled_but_not_those_of_staff(tester: AccountTester) -> None:
    text = "accounts\t1\nadmin\tChief\tchief\t\n"
    body = {"files": [{"name": "accounts.tsv", "text": text}]}
    (chief,) = (await ok(await tester.organiser.post(f"{SPRING}/participants:import", json=body)))["accounts"]
    card, _ = (await tester.post("create"))["items"]
    token = await tester.token(card)
    assert (await tester.post("disable", reason="the contest is over"))["changed"] == 2
    assert (await tester.visitor.get("/api/v1/me", headers=token)).status_code == 401
    refused = await tester.log_in(card["username"], card["password"])
    assert (refused.status_code, "disabled this account" in refused.json()["detail"]) == (401, True)
    assert await tester.token(chief)
    assert {name for name, item in (await tester.listed()).items() if item["is_disabled"]} == {"b2", "team1"}
    assert (await tester.post("disable"))["changed"] == 0
    assert (await tester.post("enable", names=[card["username"]]))["changed"] == 1
    assert (await tester.visitor.get("/api/v1/me", headers=token)).status_code == 200
    assert (await tester.post("enable"))["changed"] == 1


async def test_expiry_follows_the_timeline(tester: AccountTester, store: StoreHarness) -> None:
    (card, _) = (await tester.post("create"))["items"]
    name = card["username"]

    async def expires_after_end_us() -> int | None:
        (row,) = await store.rows(
            "SELECT expires_at FROM contest_accounts JOIN users ON users.id = user_id WHERE name = '" + name + "'"
        )
        return None if row["expires_at"] is None else int(row["expires_at"]) - END_US - DAY_US

    assert await expires_after_end_us() == 0
    await ok(await tester.organiser.post(f"{SPRING}:extend", json={"extra_sec": 600, "reason": "late"}))
    assert await expires_after_end_us() == 600_000_000
    await ok(await tester.organiser.patch(f"{SPRING}/participants/1", json={"extra_sec": 60}))
    assert await expires_after_end_us() == 660_000_000
    groups = {"groups": [{"code": "all", "name": "All"}]}
    await ok(await tester.organiser.put(f"{SPRING}/groups", json=groups))
    await ok(await tester.organiser.patch(f"{SPRING}/participants/B2", json={"groups": ["all"]}))
    await ok(await tester.organiser.post(f"{SPRING}/groups/all:times", json={"delay_sec": 120}))
    assert await expires_after_end_us() == 720_000_000
    await store.clock.advance(2 * HOUR_MS)
    await ok(await tester.organiser.post(f"{SPRING}:pause", json={}))
    assert await expires_after_end_us() is None
    await store.clock.advance(HOUR_MS)
    await ok(await tester.organiser.post(f"{SPRING}:resume", json={}))
    assert await expires_after_end_us() == 720_000_000 + HOUR_US
    intervals = (await ok(await tester.organiser.get(f"{SPRING}/intervals")))["items"]
    await ok(await tester.organiser.post(f"{SPRING}/intervals/{intervals[0]['id']}:undo", json={}))
    assert await expires_after_end_us() == 720_000_000
    assert (await tester.listed())[name]["expires_at"] == format_timestamp(END_US + DAY_US + 720_000_000)


async def test_networks_of_the_contest_bind_logins_while_it_runs(
    tester: AccountTester, published: PublishedProblem, store: StoreHarness
) -> None:
    (card, second) = (await tester.post("create"))["items"]
    await ok(await tester.organiser.patch(SPRING, json={"address_ranges": ["10.1.0.0/16"]}))
    await tester.token(card)  # before the start
    await store.clock.advance(HOUR_MS)
    refused = await tester.log_in(card["username"], card["password"])
    assert (refused.status_code, "log in from its network" in refused.json()["detail"]) == (403, True)
    wrong = await tester.log_in(card["username"], "not-the-password")
    assert wrong.status_code == 401  # the refusal does not tell a guesser about the contest
    async with published.api.client() as inside:
        await ok(await tester.organiser.patch(SPRING, json={"address_ranges": ["127.0.0.0/8"]}))
        body = {"name": card["username"], "password": card["password"], "token_name": "t"}
        await ok(await inside.post("/api/v1/login:token", json=body))
    await ok(await tester.organiser.patch(SPRING, json={"address_ranges": ["10.1.0.0/16"]}))
    grant = {"user": second["username"], "role": "balloon"}
    await ok(await tester.organiser.post(f"{SPRING}/roles", json=grant))
    await tester.token(second)  # staff of the contest
    await store.clock.advance(5 * HOUR_MS)
    await tester.token(card)  # after the end


async def test_members_are_limited_in_edits_and_imports(tester: AccountTester, published: PublishedProblem) -> None:
    users = [await published.api.user("contestant", f"user-{letter}") for letter in "abcd"]
    assert len(users) == 4
    names = [f"user-{letter}" for letter in "abcd"]
    refused = await tester.organiser.patch(f"{SPRING}/participants/1", json={"members": names})
    assert (refused.status_code, refused.json()["fields"]["field"]) == (400, "members")
    await ok(await tester.organiser.patch(f"{SPRING}/participants/1", json={"members": names[:3]}))
    text = "accounts\t1\nteam\tOne more\tteam1\t\n"
    body = {"files": [{"name": "accounts.tsv", "text": text}]}
    imported = await tester.organiser.post(f"{SPRING}/participants:import", json=body)
    assert (imported.status_code, "more than 3 members" in imported.json()["detail"]) == (400, True)
    assert "accounts.tsv:2" in imported.json()["detail"]


async def test_passwords_of_files_are_few_and_hashed_with_the_ordinary_parameters(
    tester: AccountTester, store: StoreHarness
) -> None:
    text = "accounts\t1\njudge\tJ\tjay\tgiven-Password-1\njudge\tK\tkay\t\n"
    body = {"files": [{"name": "accounts.tsv", "text": text}]}
    await ok(await tester.organiser.post(f"{SPRING}/participants:import", json=body))
    rows = await store.rows("SELECT name, password_hash FROM users WHERE name IN ('jay', 'kay') ORDER BY name")
    # In tests the ordinary parameters are m=8; generated passwords have the light ones of the product.
    assert ["m=8," in row["password_hash"] for row in rows] == [True, False]
    assert "m=1024," in rows[1]["password_hash"]
    many = "accounts\t1\n" + "".join(f"judge\tJ\tjudge-{number}\tgiven-Password-1\n" for number in range(201))
    body = {"files": [{"name": "accounts.tsv", "text": many}]}
    refused = await tester.organiser.post(f"{SPRING}/participants:import", json=body)
    assert (refused.status_code, "accounts.tsv:202" in refused.json()["detail"]) == (400, True)
    assert "more than 200 accounts" in refused.json()["detail"]


async def test_staff_who_take_part_see_what_staff_and_participants_see(
    tester: AccountTester, published: PublishedProblem, store: StoreHarness
) -> None:
    async with published.user_client("contestant") as staff:
        name = (await ok(await staff.get("/api/v1/me")))["name"]
        await ok(await staff.post(f"{SPRING}:register", json={}))
        await ok(await tester.organiser.post(f"{SPRING}/roles", json={"user": name, "role": "balloon"}))
        await store.clock.advance(HOUR_MS)
        assert len((await ok(await staff.get(f"{SPRING}/problems")))["items"]) == 1  # as a participant
        await ok(await tester.organiser.patch(f"{SPRING}/participants/{name}", json={"delay_sec": 3_600}))
        assert (await ok(await staff.get(f"{SPRING}/problems")))["items"] == []
        await ok(await tester.organiser.patch(SPRING, json={"problems_public": True}))
        assert len((await ok(await staff.get(f"{SPRING}/problems")))["items"]) == 1  # as staff
        await ok(await tester.organiser.post(f"{SPRING}/roles", json={"user": name, "role": "judge"}))
        await ok(await tester.organiser.patch(SPRING, json={"problems_public": False}))
        assert len((await ok(await staff.get(f"{SPRING}/problems")))["items"]) == 1  # as a judge


async def test_organisations_are_created_by_organisers_and_changed_by_admins(
    tester: AccountTester, published: PublishedProblem
) -> None:
    where, body = f"{SPRING}/organizations", {"code": "un", "name": "University of North", "country": "NOR"}
    assert (await ok(await tester.organiser.post(where, json=body)))["name"] == "University of North"
    await ok(await tester.organiser.patch(f"{SPRING}/participants/1", json={"organization": "un"}))
    taken = await tester.organiser.post(where, json=body | {"name": "Mine"})
    assert (taken.status_code, "ask an admin" in taken.json()["detail"]) == (409, True)
    for field, value in (("code", "a b"), ("name", " "), ("country", "no")):
        wrong = await tester.organiser.post(where, json=body | {"code": "x", field: value})
        assert (wrong.status_code, wrong.json()["fields"]["field"]) == (400, field)
    async with published.user_client("admin") as admin, published.user_client("contestant") as other:
        await ok(await admin.post(where, json=body | {"name": "North"}))
        assert (await other.get(where)).status_code == 403
    assert [item["name"] for item in (await ok(await tester.organiser.get(where)))["items"]] == ["North"]
