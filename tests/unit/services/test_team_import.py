"""Imports of teams and accounts over the API: preview, all or nothing, and logins of the new accounts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.store_harness import StoreHarness
from tests.unit.services.test_contests import HOUR_MS, ROOT, new_contest, ok

IMPORT = f"{ROOT}/spring/participants:import"
GROUPS = "groups\t1\nnorth\tNorth\n"
TEAMS = "teams\t2\n1\t447\tnorth\tNull Pointers\tUniversity of North\tUN\tNOR\tINST-9\n2\t\t\tSegfaults\n"
ACCOUNTS = (
    "accounts\t1\nteam\tNull Pointers\tteam-001\t\t127.0.0.0/8\n"
    "team\tSegfaults\tteam-002\tpw-of-the-2nd\njudge\tJ\tjay\t\n"
)


@pytest.fixture
async def published(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A server with the problem "sum", on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


def files(**texts: str) -> dict[str, Any]:
    return {"files": [{"name": f"{name}.tsv", "text": text} for name, text in texts.items()]}


def actions(report: dict[str, Any]) -> dict[str, str]:
    return {f"{item['kind']} {item['code']}": item["action"] for item in report["items"]}


async def test_preview_writes_nothing_and_the_import_does_what_it_said(published: PublishedProblem) -> None:
    body = files(groups=GROUPS, teams=TEAMS, accounts=ACCOUNTS)
    async with published.user_client("setter") as organiser, published.user_client("contestant") as other:
        await new_contest(organiser)
        seen = await ok(await organiser.post(IMPORT, params={"preview": True}, json=body))
        assert (set(actions(seen).values()), seen["findings"], seen["accounts"]) == ({"create"}, [], [])
        assert (await ok(await organiser.get(f"{ROOT}/spring/participants")))["items"] == []
        done = await ok(await organiser.post(IMPORT, json=body))
        assert actions(done) == actions(seen)
        assert [item["username"] for item in done["accounts"]] == ["team-001", "jay"]
        first, second = (await ok(await organiser.get(f"{ROOT}/spring/participants")))["items"]
        assert (first["name"], first["groups"], first["members"]) == ("Null Pointers", ["north"], ["team-001"])
        assert (first["organization"]["formal_name"], second["organization"]) == ("University of North", None)
        roles = (await ok(await organiser.get(f"{ROOT}/spring/roles")))["items"]
        assert ("jay", "judge") in {(item["user_name"], item["role"]) for item in roles}
        again = await ok(await organiser.post(IMPORT, params={"preview": True}, json=files(groups=GROUPS, teams=TEAMS)))
        assert set(actions(again).values()) == {"unchanged"}
        changed = files(teams=TEAMS.replace("Segfaults", "Stack Smashers").replace("north", ""))
        assert actions(await ok(await organiser.post(IMPORT, json=changed))) == {
            "organization 9": "unchanged",
            "team 1": "update",
            "team 2": "update",
        }
        first, second = (await ok(await organiser.get(f"{ROOT}/spring/participants")))["items"]
        assert (first["groups"], second["name"]) == ([], "Stack Smashers")
        assert (await other.post(IMPORT, json=body)).status_code == 404


async def test_one_error_imports_nothing_and_all_errors_are_named(published: PublishedProblem) -> None:
    teams = "teams\t1\n1\t\tsouth\tA\n2\t\t\tB\n2\t\t\tC\n"
    accounts = "accounts\t1\nteam\tD\tteam9\tx\n"
    async with published.user_client("setter") as organiser:
        await new_contest(organiser)
        refused = await organiser.post(IMPORT, json=files(teams=teams, accounts=accounts))
        assert (refused.status_code, refused.json()["fields"]["field"]) == (400, "files")
        assert (await ok(await organiser.get(f"{ROOT}/spring/participants")))["items"] == []
        seen = await ok(
            await organiser.post(IMPORT, params={"preview": True}, json=files(teams=teams, accounts=accounts))
        )
        assert [(item["path"], item["line"], item["message"].split(":")[0]) for item in seen["findings"]] == [
            ("accounts.tsv", 2, "password"),
            ("accounts.tsv", 2, "team_id"),
            ("teams.tsv", 2, "group_ids"),
            ("teams.tsv", 4, "id"),
        ]


async def test_user_of_another_team_is_refused(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser:
        await new_contest(organiser)
        await ok(await organiser.post(IMPORT, json=files(teams=TEAMS, groups=GROUPS, accounts=ACCOUNTS)))
        account = json.dumps([{"username": "team-001", "type": "team", "team_id": "2"}])
        body = {"files": [{"name": "accounts.json", "text": account}]}
        refused = await organiser.post(IMPORT, json=body)
        assert "takes part in this contest for another team" in refused.json()["detail"]


async def test_password_of_an_account_of_somebody_else_stays(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser, published.user_client("contestant") as other:
        await new_contest(organiser)
        name = (await ok(await other.get("/api/v1/me")))["name"]
        account = json.dumps([{"username": name, "password": "new-and-Strong-9", "type": "judge"}])
        done = await ok(await organiser.post(IMPORT, json={"files": [{"name": "accounts.json", "text": account}]}))
        assert [item["severity"] for item in done["findings"]] == ["warning"]
        login = {"name": name, "password": "new-and-Strong-9", "token_name": "t"}
        assert (await other.post("/api/v1/login:token", json=login)).status_code == 401


async def test_new_account_logs_in_from_its_network_until_the_day_after_the_contest(
    published: PublishedProblem, store: StoreHarness
) -> None:
    async with published.user_client("setter") as organiser, published.user_client("contestant") as other:
        await new_contest(organiser)
        accounts = ACCOUNTS.replace("pw-of-the-2nd", "pw-of-the-2nd\t192.0.2.0/24")
        done = await ok(await organiser.post(IMPORT, json=files(teams=TEAMS, groups=GROUPS, accounts=accounts)))
        secret = done["accounts"][0]["password"]
        token = await ok(
            await other.post("/api/v1/login:token", json={"name": "team-001", "password": secret, "token_name": "t"})
        )
        header = {"Authorization": f"Bearer {token['secret']}"}
        assert (await ok(await other.get("/api/v1/me", headers=header)))["name"] == "team-001"
        refused = await other.post(
            "/api/v1/login:token", json={"name": "team-002", "password": "pw-of-the-2nd", "token_name": "t"}
        )
        assert (refused.status_code, "network of its contest" in refused.json()["detail"]) == (403, True)
        await store.clock.advance(31 * HOUR_MS)
        late = await other.post("/api/v1/login:token", json={"name": "team-001", "password": secret, "token_name": "t"})
        assert (late.status_code, "has ended" in late.json()["detail"]) == (401, True)


async def test_thousand_teams_in_one_import(published: PublishedProblem) -> None:
    text = "teams\t1\n" + "".join(f"{number}\t\t\tTeam {number}\n" for number in range(1_000))
    async with published.user_client("setter") as organiser:
        await new_contest(organiser)
        done = await ok(await organiser.post(IMPORT, json=files(teams=text)))
        assert len(done["items"]) == 1_000
        page = await ok(await organiser.get(f"{ROOT}/spring/participants", params={"limit": 1_000}))
        assert len(page["items"]) == 1_000


async def test_organiser_gets_tokens_of_the_accounts_that_were_made_for_the_contest(
    published: PublishedProblem, store: StoreHarness
) -> None:
    async with published.user_client("setter") as organiser, published.user_client("contestant") as other:
        await new_contest(organiser)
        await ok(await organiser.post(IMPORT, json=files(teams=TEAMS, groups=GROUPS, accounts=ACCOUNTS)))
        own = (await ok(await other.get("/api/v1/me")))["name"]
        account = json.dumps([{"username": own, "type": "team", "team_id": "2"}])
        await ok(await organiser.post(IMPORT, json={"files": [{"name": "accounts.json", "text": account}]}))
        body = {"name": "rehearsal", "expires_in_hours": 2}
        tokens = f"{ROOT}/spring/accounts:create-tokens"
        assert (await other.post(tokens, json=body)).status_code == 404
        made = (await ok(await organiser.post(tokens, json=body)))["items"]
        # Neither a judge, nor an account of somebody else, nor one that is bound to a network.
        assert [(item["username"], item["participant"]) for item in made] == [("team-002", "2")]
        header = {"Authorization": f"Bearer {made[0]['secret']}"}
        assert (await ok(await other.get("/api/v1/me", headers=header)))["name"] == "team-002"
        unused = (await ok(await organiser.post(tokens, json=body)))["items"][0]
        await store.clock.advance(3 * HOUR_MS)
        header = {"Authorization": f"Bearer {unused['secret']}"}
        assert (await other.get("/api/v1/me", headers=header)).status_code == 401
        assert (await organiser.post(tokens, json={"expires_in_hours": 0})).status_code in (400, 422)
