"""Wrong settings, problems and times of contests: errors name the field and the fix, and nothing is half saved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.domain.timestamps import format_timestamp
from tests.support.asgi_app import make_app
from tests.support.contest_app import API, HOUR_US, NEW, succeeded
from tests.support.published_problem import OPEN_GATE, PublishedProblem, add_problem, publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import NOON_US, StoreHarness

ONE = f"{API}/spring"
PAGES = "/contests/spring/settings"
HOUR_MS = 3_600_000
_OWN = {"id", "created_at", "participants", "url"}
"""Fields of copied objects that differ."""


@pytest.fixture
async def published(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A server with the problems "sum" and "product", on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        add_pages(api.app, api.services)
        made = await publish_problem(api)
        await add_problem(made, "product")
        yield made


@pytest.fixture
async def organiser(published: PublishedProblem) -> AsyncIterator[httpx.AsyncClient]:
    """The organiser of a draft that starts in an hour."""
    async with published.api.client(published.setter_token) as client:
        await succeeded(await client.post(API, json=NEW | {"starts_at": format_timestamp(NOON_US + HOUR_US)}))
        await succeeded(await client.put(f"{ONE}/problems", json={"problems": [{"problem": "sum"}]}))
        yield client


async def set_problems(client: httpx.AsyncClient, *problems: dict[str, Any], **fields: Any) -> httpx.Response:
    return await client.put(f"{ONE}/problems", json={"problems": list(problems), **fields})


async def listed(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await succeeded(await client.get(f"{ONE}/problems")))["items"]
    return found


@pytest.mark.parametrize(
    ("second", "field", "fix"),
    [
        ({"label": "A"}, "label", "own label"),
        ({"label": "a b"}, "label", "must match"),
        ({"rgb": "#FF0000"}, "rgb", "choose another"),
        ({"rgb": "red"}, "rgb", "#rrggbb"),
        ({"color": "Red"}, "color", "choose another"),
        ({"problem": "sum"}, "problem", "remove one"),
        ({"problem": "nothing"}, "problem", "no problem"),
        ({"revision": 7}, "revision", "no revision 7"),
        ({"allowed_languages": ["klingon"]}, "allowed_languages", "not a language of this judge"),
        ({"opens_after_sec": 60, "closes_after_sec": 60}, "closes_after_sec", "after the opening"),
    ],
)
async def test_wrong_problem_is_named_and_none_is_saved(
    organiser: httpx.AsyncClient, second: dict[str, Any], field: str, fix: str
) -> None:
    first = {"problem": "sum", "label": "A", "rgb": "#ff0000", "color": "red"}
    refused = await set_problems(organiser, first, {"problem": "product"} | second)
    assert refused.status_code == 400
    answer = refused.json()
    assert answer["fields"]["field"] == f"problems[1].{field}"
    assert answer["detail"].startswith(f"problems[1].{field}: ")
    assert fix in answer["detail"]
    assert [(item["slug"], item["rgb"]) for item in await listed(organiser)] == [("sum", None)]


async def test_duplicate_letters_and_colours_stand_beside_their_field_on_the_page(
    organiser: httpx.AsyncClient,
) -> None:
    await succeeded(await set_problems(organiser, {"problem": "sum"}, {"problem": "product"}))
    version = (await succeeded(await organiser.get(ONE)))["version"]
    row = {"points": "100", "accepts": "yes"}
    values = {"problem-0": "sum", "label-0": "A", "rgb-0": "#00ff00", "problem-1": "product", "label-1": "B"}
    values |= {f"{name}-{index}": value for index in range(2) for name, value in row.items()} | {"version": version}
    wrong = {
        "label-1": ("A", "own label"),
        "rgb-1": ("#00FF00", "choose another"),
        "languages-1": ("klingon", "not a language"),
    }
    for name, (value, fix) in wrong.items():
        refused = await organiser.post(f"{PAGES}/problems", data=values | {name: value})
        assert refused.status_code == 400, name
        assert f'id="{name}-error"' in refused.text
        assert fix in refused.text
    assert [item["rgb"] for item in await listed(organiser)] == [None, None]
    saved = await organiser.post(f"{PAGES}/problems", data=values)
    assert saved.status_code == 303


async def test_problem_whose_lower_score_is_better_is_refused(
    organiser: httpx.AsyncClient, published: PublishedProblem
) -> None:
    await add_problem(published, "golf", is_minimised=True)
    refused = await set_problems(organiser, {"problem": "sum"}, {"problem": "golf"})
    assert (refused.status_code, refused.json()["fields"]["field"]) == (400, "problems[1].problem")
    assert "lower score is better" in refused.json()["detail"]
    assert len(await listed(organiser)) == 1


async def test_problems_have_alias_and_revision_and_a_lost_update_is_refused(organiser: httpx.AsyncClient) -> None:
    before = (await succeeded(await organiser.get(ONE)))["version"]
    await succeeded(await set_problems(organiser, {"problem": "sum", "alias": "Adding"}, version=before))
    (problem,) = await listed(organiser)
    assert (problem["title"], problem["alias"], problem["revision"]) == ("Adding", "Adding", 1)
    late = await set_problems(organiser, {"problem": "product"}, version=before)
    assert (late.status_code, late.json()["code"]) == (409, "VERSION_CONFLICT")
    assert [item["slug"] for item in await listed(organiser)] == ["sum"]
    stale = await organiser.patch(ONE, json={"title": "Late", "version": before})
    assert stale.status_code == 409, "a change of the problems is a change of the contest"
    await succeeded(await set_problems(organiser, {"problem": "product"}, version=before + 1))
    assert [(item["alias"], item["title"]) for item in await listed(organiser)] == [(None, "Product")]


async def test_published_contest_keeps_a_problem(organiser: httpx.AsyncClient) -> None:
    await succeeded(await set_problems(organiser))
    refused = await organiser.post(f"{ONE}:publish")
    assert (refused.status_code, refused.json()["fields"]["field"]) == (400, "problems")
    page = await organiser.post(f"{PAGES}/lifecycle/publish", data={})
    assert (page.status_code, "needs at least one; add one first" in page.text) == (400, True)
    await succeeded(await set_problems(organiser, {"problem": "sum"}))
    await succeeded(await organiser.post(f"{ONE}:publish"))
    empty = await set_problems(organiser)
    assert (empty.status_code, empty.json()["fields"]["field"]) == (400, "problems")
    assert len(await listed(organiser)) == 1


async def test_contest_is_shortened_below_its_freeze_in_one_change(
    organiser: httpx.AsyncClient, store: StoreHarness
) -> None:
    await succeeded(await organiser.post(f"{ONE}:publish"))
    await store.clock.advance(2 * HOUR_MS)
    shorter = await organiser.post(f"{ONE}:extend", json={"extra_sec": -7_200})
    assert (shorter.status_code, shorter.json()["fields"]["field"]) == (400, "extra_sec")
    assert "change the duration and the freeze together" in shorter.json()["detail"]
    page = await organiser.post(f"{PAGES}/lifecycle/extend", data={"extra": "2:00:00", "direction": "shorter"})
    assert (page.status_code, "The contest would end before its freeze" in page.text) == (400, True)
    alone = await organiser.patch(ONE, json={"duration_sec": 10_800})
    assert (alone.status_code, alone.json()["fields"]["field"]) == (400, "freeze_after_sec")
    assert "in the same change" in alone.json()["detail"]
    assert (await succeeded(await organiser.get(ONE)))["settings"]["duration_sec"] == 18_000
    both = await succeeded(await organiser.patch(ONE, json={"duration_sec": 10_800, "freeze_after_sec": 9_000}))
    assert (both["settings"]["duration_sec"], both["settings"]["freeze_after_sec"]) == (10_800, 9_000)
    without = await succeeded(await organiser.patch(ONE, json={"duration_sec": 8_000, "freeze_after_sec": None}))
    assert without["freezes_at"] is None


async def test_overlapping_intervals_name_the_field_and_the_other_interval(
    organiser: httpx.AsyncClient, store: StoreHarness
) -> None:
    await succeeded(await organiser.post(f"{ONE}:publish"))
    await store.clock.advance(4 * HOUR_MS)
    start = NOON_US + HOUR_US

    def interval(begin_min: int, end_min: int) -> dict[str, str]:
        begin, end = (format_timestamp(start + minute * 60_000_000) for minute in (begin_min, end_min))
        return {"from_at": begin, "to_at": end}

    await succeeded(await organiser.post(f"{ONE}/intervals", json=interval(10, 20)))
    for begin, end, field in ((15, 30, "from_at"), (5, 15, "from_at"), (12, 14, "from_at"), (30, 30, "to_at")):
        refused = await organiser.post(f"{ONE}/intervals", json=interval(begin, end))
        assert (refused.status_code, refused.json()["fields"]["field"]) == (400, field)
        assert refused.json()["detail"].startswith(f"{field}: ")
    overlap = await organiser.post(f"{ONE}/intervals", json=interval(15, 30))
    assert interval(10, 20)["from_at"] in overlap.json()["detail"]
    times = {name: value.removesuffix("Z") for name, value in interval(15, 30).items()}
    page = await organiser.post(f"{PAGES}/lifecycle/remove-interval", data={"zone": "UTC"} | times)
    assert (page.status_code, "Overlaps the removed interval" in page.text) == (400, True)
    assert len((await succeeded(await organiser.get(f"{ONE}/intervals")))["items"]) == 1
    await succeeded(await organiser.post(f"{ONE}/intervals", json=interval(20, 30)))


async def test_reopening_is_for_administrators_with_a_reason_in_the_log(
    organiser: httpx.AsyncClient, published: PublishedProblem, store: StoreHarness
) -> None:
    await succeeded(await organiser.post(f"{ONE}:publish"))
    await store.clock.advance(7 * HOUR_MS)
    await succeeded(await organiser.post(f"{ONE}:finalize"))
    assert (await organiser.post(f"{ONE}:reopen", json={"reason": "appeal"})).status_code == 403
    page = (await organiser.get(f"{PAGES}/lifecycle")).text
    assert "lifecycle/reopen" not in page
    assert "An administrator can take back the finalization" in page
    async with published.user_client("admin") as admin:
        silent = await admin.post(f"{ONE}:reopen", json={"reason": " "})
        assert (silent.status_code, silent.json()["fields"]["field"]) == (400, "reason")
        await succeeded(await admin.post(f"{ONE}:reopen", json={"reason": "appeal"}))
    log = (await succeeded(await organiser.get(f"{ONE}/log")))["items"]
    assert (log[-1]["to_state"], log[-1]["reason"]) == ("published", "appeal")


async def test_clone_copies_definitions_and_nothing_of_the_contest_itself(
    organiser: httpx.AsyncClient, published: PublishedProblem, store: StoreHarness
) -> None:
    problem = {
        "problem": "sum",
        "label": "S",
        "alias": "Adding",
        "rgb": "#ff0000",
        "color": "red",
        "points": 7.5,
        "opens_after_sec": 60,
        "closes_after_sec": 600,
        "accepts": False,
        "allowed_languages": ["c"],
    }
    await succeeded(await set_problems(organiser, problem))
    settings = {
        "description": "About",
        "submissions_per_minute": 3,
        "clarification_categories": ["food"],
        "awards_cfg": {"gold": 1},
        "registration_opens_at": format_timestamp(NOON_US),
    }
    await succeeded(await organiser.patch(ONE, json=settings))
    await succeeded(await organiser.post(f"{ONE}/canned-answers", json={"title": "No", "body": "No comment."}))
    for name, visible in (("rules.txt", "always"), ("editorial.txt", "thaw")):
        path = f"{ONE}/materials/{name}"
        await succeeded(await organiser.put(path, content=name.encode(), params={"visible": visible, "title": "File"}))
    groups = {"groups": [{"code": "north", "name": "North", "ranked": False}, {"code": "south", "name": "South"}]}
    await succeeded(await organiser.put(f"{ONE}/groups", json=groups))
    await succeeded(await organiser.post(f"{ONE}:publish"))
    async with published.user_client() as judge, published.user_client() as contestant:
        judge_name = (await succeeded(await judge.get("/api/v1/me")))["name"]
        await succeeded(await organiser.post(f"{ONE}/roles", json={"user": judge_name, "role": "judge"}))
        name = (await succeeded(await contestant.get("/api/v1/me")))["name"]
        entry = {"user": name, "code": "t1", "groups": ["north"]}
        await succeeded(await organiser.post(f"{ONE}/participants", json=entry))
        await store.clock.advance(HOUR_MS)
        await succeeded(await contestant.post(f"{ONE}/clarifications", json={"body": "Why?"}))
        await succeeded(await organiser.post(f"{ONE}:freeze"))
        await succeeded(await organiser.post(f"{ONE}:pause", json={}))
        copy = f"{API}/autumn"
        made = await succeeded(await organiser.post(f"{ONE}:clone", json={"slug": "autumn", "title": "Autumn"}))
        before = (await succeeded(await organiser.get(ONE)))["settings"]
        assert made["settings"] == before | {"registration_opens_at": None}
        assert (made["state"], made["starts_at"], made["freezes_at"]) == ("draft", None, None)
        for path in ("/problems", "/groups", "/canned-answers", "/materials", "/roles"):
            old, new = [
                [{key: row[key] for key in row if key not in _OWN} for row in (await succeeded(answer))["items"]]
                for answer in (await organiser.get(ONE + path), await organiser.get(copy + path))
            ]
            assert old == new != [], path
        for path in ("/participants", "/clarifications", "/intervals", "/log", "/jury/submissions", "/invitations"):
            assert (await succeeded(await organiser.get(copy + path)))["items"] == [], path
        await succeeded(await organiser.delete(f"{ONE}/materials/rules.txt"))
        assert (await organiser.get(f"{copy}/materials/rules.txt")).content == b"rules.txt", "it is a row of the copy"
        assert (await contestant.get(copy)).status_code == 404, "participants do not know of the copy"
        assert (await succeeded(await judge.get(copy)))["roles"] == ["judge"]
