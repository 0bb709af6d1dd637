"""Participants over the API: registration, teams, and what organisers do, on each database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.domain.timestamps import format_timestamp
from adjudge.store.contests import queries
from adjudge.store.contests.scoreboard_log import read_between, safe_offset
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.store_harness import NOON_US, StoreHarness
from tests.unit.services.test_contests import HOUR_MS, HOUR_US, ROOT, new_contest, ok

SPRING = f"{ROOT}/spring"


@pytest.fixture
async def published(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A server with the problem "sum", on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


class People:
    """An organiser with a published contest, and three contestants."""

    def __init__(self, organiser: httpx.AsyncClient, contestants: list[httpx.AsyncClient]) -> None:
        self.organiser = organiser
        self.alice, self.bob, self.carol = contestants

    async def start(self, **settings: Any) -> None:
        """Publish a contest that starts in an hour."""
        await new_contest(self.organiser, **settings)
        await ok(await self.organiser.post(f"{SPRING}:publish"))


@pytest.fixture
async def people(published: PublishedProblem) -> AsyncIterator[People]:
    async with AsyncExitStack() as stack:
        organiser = await stack.enter_async_context(published.user_client("setter"))
        others = [await stack.enter_async_context(published.user_client("contestant")) for _ in range(3)]
        yield People(organiser, others)


async def user_name(client: httpx.AsyncClient) -> str:
    return str((await ok(await client.get("/api/v1/me")))["name"])


async def test_open_registration_alone_and_leaving_before_the_start(people: People, store: StoreHarness) -> None:
    await people.start()
    made = await ok(await people.alice.post(f"{SPRING}:register", json={}))
    assert made["participant"]["kind"] == "official"
    assert not made["participant"]["is_team"]
    assert made["participant"]["members"] is None
    again = await people.alice.post(f"{SPRING}:register", json={})
    assert (again.status_code, again.json()["detail"]) == (409, "You take part in this contest already.")
    assert (await ok(await people.alice.get(SPRING)))["is_participant"]
    await ok(await people.alice.post(f"{SPRING}:leave"))
    assert (await ok(await people.bob.get(f"{SPRING}/participants")))["items"] == []
    await ok(await people.alice.post(f"{SPRING}:register", json={}))
    await store.clock.advance(HOUR_MS)
    assert (await people.alice.post(f"{SPRING}:leave")).status_code == 409
    assert len((await ok(await people.bob.get(f"{SPRING}/participants")))["items"]) == 1


async def test_registration_by_code_also_finds_a_private_contest(people: People) -> None:
    await people.start(registration="code", registration_code="open sesame", visibility="private")
    wrong = await people.alice.post(f"{SPRING}:register", json={"code": "sesame"})
    missing = await people.alice.post(f"{ROOT}/autumn:register", json={"code": "sesame"})
    assert wrong.status_code == missing.status_code == 404
    assert wrong.json()["detail"] == missing.json()["detail"].replace("autumn", "spring")
    await ok(await people.alice.post(f"{SPRING}:register", json={"code": "open sesame"}))
    assert (await people.alice.get(SPRING)).status_code == 200
    assert (await people.bob.get(SPRING)).status_code == 404


async def test_wrong_code_of_a_public_contest_names_the_field(people: People) -> None:
    await people.start(registration="code", registration_code="open sesame")
    refused = await people.alice.post(f"{SPRING}:register", json={"code": "?"})
    assert (refused.status_code, refused.json()["fields"]["field"]) == (400, "code")


async def test_invitation_admits_as_often_as_it_says(people: People) -> None:
    await people.start(registration="invitation")
    body = {"kind": "unofficial", "max_uses": 1, "note": "guests"}
    invitation = await ok(await people.organiser.post(f"{SPRING}/invitations", json=body))
    made = await ok(await people.alice.post(f"{SPRING}:register", json={"code": invitation["code"]}))
    assert made["participant"]["kind"] == "unofficial"
    assert (await people.bob.post(f"{SPRING}:register", json={"code": invitation["code"]})).status_code == 400
    (listed,) = (await ok(await people.organiser.get(f"{SPRING}/invitations")))["items"]
    assert (listed["uses"], listed["note"]) == (1, "guests")
    assert invitation["code"] not in str(listed)
    second = await ok(await people.organiser.post(f"{SPRING}/invitations", json={}))
    await ok(await people.organiser.delete(f"{SPRING}/invitations/{second['id']}"))
    assert (await people.bob.post(f"{SPRING}:register", json={"code": second["code"]})).status_code == 400
    assert (await people.alice.post(f"{SPRING}/invitations", json={})).status_code == 403


async def test_registration_by_list_and_outside_of_its_time(people: People) -> None:
    await people.start(registration="list")
    assert (await people.alice.post(f"{SPRING}:register", json={})).status_code == 403
    times: dict[str, str | None] = {"registration_opens_at": format_timestamp(NOON_US + HOUR_US)}
    await ok(await people.organiser.patch(SPRING, json={"registration": "open"} | times))
    refused = await people.alice.post(f"{SPRING}:register", json={})
    assert refused.json()["detail"] == "Registration has not opened yet."
    times = {"registration_opens_at": None, "registration_closes_at": format_timestamp(NOON_US)}
    await ok(await people.organiser.patch(SPRING, json=times))
    refused = await people.alice.post(f"{SPRING}:register", json={})
    assert (refused.status_code, refused.json()["detail"]) == (409, "Registration is closed.")


async def test_team_with_join_code_and_limit_of_members(people: People) -> None:
    await people.start(max_team_members=2, allows_individuals=False)
    assert (await people.alice.post(f"{SPRING}:register", json={})).status_code == 409
    assert (await people.alice.post(f"{SPRING}/teams", json={"name": " "})).json()["fields"]["field"] == "name"
    team = await ok(await people.alice.post(f"{SPRING}/teams", json={"name": "Null Pointers"}))
    wrong = await people.bob.post(f"{SPRING}/teams:join", json={"join_code": "nothing"})
    assert (wrong.status_code, wrong.json()["fields"]["field"]) == (400, "join_code")
    await ok(await people.bob.post(f"{SPRING}/teams:join", json={"join_code": team["join_code"]}))
    full = await people.carol.post(f"{SPRING}/teams:join", json={"join_code": team["join_code"]})
    assert (full.status_code, full.json()["detail"]) == (409, "The team has 2 members; at most 2.")
    await ok(await people.alice.post(f"{SPRING}:leave"))
    renewed = await ok(await people.bob.post(f"{SPRING}/teams:renew-join-code"))
    assert (await people.carol.post(f"{SPRING}/teams:join", json={"join_code": team["join_code"]})).status_code == 400
    await ok(await people.carol.post(f"{SPRING}/teams:join", json={"join_code": renewed["join_code"]}))
    (listed,) = (await ok(await people.organiser.get(f"{SPRING}/participants")))["items"]
    assert listed["members"] == sorted([await user_name(people.bob), await user_name(people.carol)])
    for member in (people.bob, people.carol):
        await ok(await member.post(f"{SPRING}:leave"))
    assert (await ok(await people.organiser.get(f"{SPRING}/participants")))["items"] == []


async def test_window_virtual_run_and_practice(people: People, store: StoreHarness) -> None:
    await people.start(freeze_after_sec=None, window_sec=3_600)
    await ok(await people.alice.post(f"{SPRING}:register", json={}))
    assert (await people.alice.post(f"{SPRING}:start-window")).status_code == 409
    await store.clock.advance(HOUR_MS)
    await ok(await people.alice.post(f"{SPRING}:start-window"))
    assert (await ok(await people.alice.get(SPRING)))["phase"] == "running"
    assert (await people.alice.post(f"{SPRING}:start-window")).status_code == 409
    assert (await people.bob.post(f"{SPRING}:start-virtual")).status_code == 409
    await store.clock.advance(6 * HOUR_MS)
    assert (await people.bob.post(f"{SPRING}:register", json={})).json()["detail"] == "The contest has ended."
    first = await ok(await people.bob.post(f"{SPRING}:start-virtual"))
    assert (first["participant"]["kind"], first["participant"]["run_no"]) == ("virtual", 1)
    assert (await ok(await people.bob.get(SPRING)))["phase"] == "running"
    assert (await people.bob.post(f"{SPRING}:start-virtual")).status_code == 409
    await store.clock.advance(2 * HOUR_MS)
    second = await ok(await people.bob.post(f"{SPRING}:start-virtual"))
    assert second["participant"]["run_no"] == 2
    await ok(await people.carol.post(f"{SPRING}:practise"))
    assert (await people.carol.post(f"{SPRING}:practise")).status_code == 409
    assert len((await ok(await people.carol.get(f"{SPRING}/participants")))["items"]) == 1
    assert len((await ok(await people.organiser.get(f"{SPRING}/participants")))["items"]) == 4


async def test_practice_and_virtual_runs_of_a_closed_contest_are_for_those_who_took_part(
    people: People, store: StoreHarness
) -> None:
    await people.start(registration="list", freeze_after_sec=None)
    alice = await user_name(people.alice)
    await ok(await people.organiser.post(f"{SPRING}/participants", json={"user": alice}))
    await store.clock.advance(7 * HOUR_MS)
    for action in ("practise", "start-virtual"):
        assert (await people.bob.post(f"{SPRING}:{action}")).status_code == 403
        await ok(await people.alice.post(f"{SPRING}:{action}"))
        await ok(await people.organiser.post(f"{SPRING}:{action}"))


async def test_leaving_tells_open_scoreboards(people: People, store: StoreHarness) -> None:
    await people.start()
    await ok(await people.alice.post(f"{SPRING}:register", json={}))
    contest = await store.database.read(lambda tx: queries.find_contest(tx, "spring"))
    start = await store.database.read(safe_offset)
    await ok(await people.alice.post(f"{SPRING}:leave"))
    end = await store.database.read(safe_offset)
    entries = await store.database.read(lambda tx: read_between(tx, start, end, limit=10))
    assert [(item.contest_id, item.kind) for item in entries] == [(contest.id, "reset")]


async def test_organiser_adds_changes_hides_disqualifies_and_removes(people: People) -> None:
    await people.start()
    groups = {"groups": [{"code": "north", "name": "North"}, {"code": "guests", "name": "Guests", "ranked": False}]}
    await ok(await people.organiser.put(f"{SPRING}/groups", json=groups))
    alice, bob = await user_name(people.alice), await user_name(people.bob)
    team = {"name": "Team", "code": "t1", "members": [alice, bob], "groups": ["north"]}
    made = await ok(await people.organiser.post(f"{SPRING}/participants", json=team))
    assert (made["groups"], made["members"]) == (["north"], sorted([alice, bob]))
    for body, field in (
        (team | {"code": "t2", "members": [], "groups": ["south"]}, "groups"),
        (team | {"code": "-t"}, "code"),
        ({"user": "nobody-here"}, "user"),
        (team | {"code": "t2", "organization": "nowhere"}, "organization"),
        (team | {"code": "t2", "kind": "virtual"}, "kind"),
    ):
        refused = await people.organiser.post(f"{SPRING}/participants", json=body)
        assert (refused.status_code, refused.json()["fields"]["field"]) == (400, field), refused.text
    assert (await people.organiser.post(f"{SPRING}/participants", json={"user": alice})).status_code == 409
    assert (await people.organiser.post(f"{SPRING}/participants", json=team | {"members": []})).status_code == 409
    change = {"disqualified": True, "extra_sec": 60, "groups": ["guests"], "hidden": True, "reason": "late"}
    changed = await ok(await people.organiser.patch(f"{SPRING}/participants/t1", json=change))
    assert (changed["is_disqualified"], changed["extra_sec"], changed["groups"]) == (True, 60, ["guests"])
    assert (await ok(await people.carol.get(f"{SPRING}/participants")))["items"] == []
    undo = {"disqualified": False, "hidden": False, "reason": "appeal", "version": changed["version"]}
    assert not (await ok(await people.organiser.patch(f"{SPRING}/participants/t1", json=undo)))["is_disqualified"]
    stale = await people.organiser.patch(f"{SPRING}/participants/t1", json=undo)
    assert stale.json()["code"] == "VERSION_CONFLICT"
    times = {"delay_sec": 30}
    assert (await ok(await people.organiser.post(f"{SPRING}/groups/guests:times", json=times)))["changed"] == 1
    one = await ok(await people.organiser.get(f"{SPRING}/participants/t1"))
    assert (one["delay_sec"], one["extra_sec"]) == (30, 60)
    assert (await people.alice.patch(f"{SPRING}/participants/t1", json={"hidden": True})).status_code == 403
    filtered = await ok(
        await people.organiser.get(f"{SPRING}/participants", params={"search": "TEAM", "group": "guests"})
    )
    assert [item["code"] for item in filtered["items"]] == ["t1"]
    await ok(await people.organiser.delete(f"{SPRING}/participants/t1"))
    assert (await people.organiser.get(f"{SPRING}/participants/t1")).status_code == 404
