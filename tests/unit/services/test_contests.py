"""Contests over the API: settings, problems, roles, lifecycle, and who sees them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.api.pagination import decode_cursor
from adjudge.domain.timestamps import format_timestamp
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, add_revision, publish_problem
from tests.support.store_harness import NOON_US, StoreHarness

ROOT = "/api/v1/contests"
HOUR_US = 3_600_000_000
HOUR_MS = 3_600_000
NEW = {"slug": "spring", "title": "Spring", "duration_sec": 18_000, "freeze_after_sec": 14_400}


@pytest.fixture
async def published(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A server with the problem "sum", on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


async def ok(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


async def new_contest(organiser: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    """A draft with one problem that starts in an hour."""
    starts_at = format_timestamp(NOON_US + HOUR_US)
    made: dict[str, Any] = await ok(await organiser.post(ROOT, json=NEW | {"starts_at": starts_at} | fields))
    await ok(await organiser.put(f"{ROOT}/{made['slug']}/problems", json={"problems": [{"problem": "sum"}]}))
    return made


async def test_draft_is_hidden_like_a_missing_contest_and_visible_after_publishing(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser, published.user_client("contestant") as other:
        await new_contest(organiser)
        hidden, missing = await other.get(f"{ROOT}/spring"), await other.get(f"{ROOT}/nothing")
        assert hidden.status_code == missing.status_code == 404
        assert hidden.json()["detail"] == missing.json()["detail"].replace("nothing", "spring")
        assert (await ok(await other.get(ROOT)))["items"] == []
        await ok(await organiser.post(f"{ROOT}/spring:publish"))
        assert (await ok(await other.get(f"{ROOT}/spring")))["phase"] == "before"
        assert [item["slug"] for item in (await ok(await other.get(ROOT)))["items"]] == ["spring"]
        assert (await ok(await other.get(f"{ROOT}/spring/problems")))["items"] == []
        assert (await other.post(f"{ROOT}/spring:cancel", json={})).status_code == 403


async def test_contest_runs_freezes_thaws_and_is_finalized(published: PublishedProblem, store: StoreHarness) -> None:
    async with published.user_client("setter") as organiser:
        await new_contest(organiser, starts_at=format_timestamp(NOON_US))
        await ok(await organiser.post(f"{ROOT}/spring:publish"))
        assert (await ok(await organiser.get(f"{ROOT}/spring")))["phase"] == "running"
        refused = await organiser.post(f"{ROOT}/spring:finalize")
        assert refused.status_code == 409
        assert "has not ended" in refused.json()["detail"]
        assert (await ok(await organiser.post(f"{ROOT}/spring:freeze")))["phase"] == "frozen"
        assert (await organiser.post(f"{ROOT}/spring:thaw")).status_code == 409
        await store.clock.advance(5 * HOUR_MS)
        assert (await ok(await organiser.get(f"{ROOT}/spring")))["phase"] == "ended"
        assert (await ok(await organiser.post(f"{ROOT}/spring:finalize")))["state"] == "finalized"
        assert (await organiser.post(f"{ROOT}/spring:close-updates")).status_code == 409
        assert (await ok(await organiser.post(f"{ROOT}/spring:thaw")))["phase"] == "thawed"
        assert (await ok(await organiser.post(f"{ROOT}/spring:close-updates")))["end_of_updates_at"] is not None
        late = await organiser.patch(f"{ROOT}/spring", json={"title": "Too late"})
        assert (late.status_code, late.json()["code"]) == (400, "INVALID_TRANSITION")
        log = await ok(await organiser.get(f"{ROOT}/spring/log"))
        assert [change["to_state"] for change in log["items"]] == ["published", "finalized"]


async def test_results_of_a_finalized_contest_change_only_after_reopening(
    published: PublishedProblem, store: StoreHarness
) -> None:
    async with published.user_client("setter") as organiser, published.user_client("contestant") as other:
        await new_contest(organiser, starts_at=format_timestamp(NOON_US))
        await ok(await organiser.post(f"{ROOT}/spring:publish"))
        me = (await ok(await other.get("/api/v1/me")))["name"]
        await ok(await organiser.post(f"{ROOT}/spring/participants", json={"user": me, "code": "t1"}))
        group = {"groups": [{"code": "north", "name": "North"}]}
        await ok(await organiser.put(f"{ROOT}/spring/groups", json=group))
        await store.clock.advance(HOUR_MS)
        await ok(await organiser.post(f"{ROOT}/spring:pause", json={}))
        await store.clock.advance(HOUR_MS)
        await ok(await organiser.post(f"{ROOT}/spring:resume"))
        (interval,) = (await ok(await organiser.get(f"{ROOT}/spring/intervals")))["items"]
        await store.clock.advance(6 * HOUR_MS)
        await ok(await organiser.post(f"{ROOT}/spring:finalize"))
        start, hour = format_timestamp(NOON_US), format_timestamp(NOON_US + HOUR_US)
        for method, path, body in (
            ("PATCH", "", {"duration_sec": 20_000}),
            ("PATCH", "", {"format": "ioi", "format_cfg": {}}),
            ("PUT", "/problems", {"problems": [{"problem": "sum", "points": 7}]}),
            ("POST", ":freeze", None),
            ("POST", ":pause", {}),
            ("POST", ":resume", None),
            ("POST", "/intervals", {"from_at": start, "to_at": hour}),
            ("POST", f"/intervals/{interval['id']}:undo", {"reason": "x"}),
            ("PATCH", "/participants/t1", {"disqualified": True, "reason": "x"}),
            ("PATCH", "/participants/t1", {"groups": ["north"]}),
            ("DELETE", "/participants/t1", None),
            ("POST", "/participants", {"name": "Late", "code": "t2"}),
            ("PUT", "/groups", {"groups": []}),
            ("POST", "/groups/north:times", {"extra_sec": 60}),
        ):
            refused = await organiser.request(method, f"{ROOT}/spring{path}", json=body)
            assert refused.status_code == 409, (path, refused.text)
            assert "reopen it first" in refused.json()["detail"], path
        await ok(await organiser.patch(f"{ROOT}/spring", json={"title": "Spring finals"}))
        await ok(await organiser.patch(f"{ROOT}/spring/participants/t1", json={"name": "Renamed"}))
        async with published.user_client("admin") as admin:
            await ok(await admin.post(f"{ROOT}/spring:reopen", json={"reason": "appeal"}))
        await ok(await organiser.patch(f"{ROOT}/spring/participants/t1", json={"disqualified": True, "reason": "x"}))


async def test_contest_is_ended_before_its_freeze(published: PublishedProblem, store: StoreHarness) -> None:
    async with published.user_client("setter") as organiser:
        await new_contest(organiser)
        await ok(await organiser.post(f"{ROOT}/spring:publish"))
        early = await organiser.post(f"{ROOT}/spring:end", json={})
        assert (early.status_code, "is not running" in early.json()["detail"]) == (409, True)
        await store.clock.advance(2 * HOUR_MS)
        ended = await ok(await organiser.post(f"{ROOT}/spring:end", json={"reason": "fire alarm"}))
        settings = ended["settings"]
        assert (ended["phase"], settings["duration_sec"], settings["freeze_after_sec"]) == ("ended", 3_600, 3_600)
        assert (await organiser.post(f"{ROOT}/spring:end", json={})).status_code == 409


async def test_contest_is_frozen_only_while_it_runs(published: PublishedProblem, store: StoreHarness) -> None:
    async with published.user_client("setter") as organiser:
        await new_contest(organiser, freeze_after_sec=None)
        await ok(await organiser.post(f"{ROOT}/spring:publish"))
        assert "only while" in (await organiser.post(f"{ROOT}/spring:freeze")).json()["detail"]
        await store.clock.advance(7 * HOUR_MS)
        assert "only while" in (await organiser.post(f"{ROOT}/spring:freeze")).json()["detail"]
        assert (await ok(await organiser.get(f"{ROOT}/spring")))["phase"] == "thawed"


async def test_unpublished_revision_of_somebody_else_cannot_be_pinned(published: PublishedProblem) -> None:
    await add_revision(published)
    async with (
        published.user_client("setter") as organiser,
        published.api.client(published.setter_token) as owner,
    ):
        await new_contest(organiser)
        await new_contest(owner, slug="own")
        for number in (1, 9):
            body = {"problems": [{"problem": "sum", "revision": number}]}
            refused = await organiser.put(f"{ROOT}/spring/problems", json=body)
            assert (refused.status_code, refused.json()["fields"]["field"]) == (400, "problems[0].revision")
        await ok(await organiser.put(f"{ROOT}/spring/problems", json={"problems": [{"problem": "sum", "revision": 2}]}))
        former = {"problems": [{"problem": "sum", "revision": 1}]}
        await ok(await owner.put(f"{ROOT}/own/problems", json=former))


async def test_pause_moves_the_end_and_undoing_it_moves_it_back(
    published: PublishedProblem, store: StoreHarness
) -> None:
    async with published.user_client("setter") as organiser:
        await new_contest(organiser, starts_at=format_timestamp(NOON_US))
        planned = (await ok(await organiser.post(f"{ROOT}/spring:publish")))["ends_at"]
        await store.clock.advance(HOUR_MS)
        paused = await ok(await organiser.post(f"{ROOT}/spring:pause", json={"reason": "power cut"}))
        assert (paused["is_paused"], paused["ends_at"]) == (True, None)
        await store.clock.advance(HOUR_MS)
        resumed = await ok(await organiser.post(f"{ROOT}/spring:resume"))
        assert resumed["contest_time_sec"] == 3_600
        assert resumed["ends_at"] == format_timestamp(NOON_US + 6 * HOUR_US) > planned
        (interval,) = (await ok(await organiser.get(f"{ROOT}/spring/intervals")))["items"]
        overlap = await organiser.post(
            f"{ROOT}/spring/intervals", json={"from_at": interval["from_at"], "to_at": interval["to_at"]}
        )
        assert overlap.status_code == 400
        assert "overlaps" in overlap.json()["detail"]
        undone = await ok(await organiser.post(f"{ROOT}/spring/intervals/{interval['id']}:undo", json={"reason": "x"}))
        assert (undone["contest_time_sec"], undone["ends_at"]) == (7_200, planned)


async def test_countdown_can_be_paused_and_continues_with_the_time_left(
    published: PublishedProblem, store: StoreHarness
) -> None:
    async with published.user_client("setter") as organiser:
        await new_contest(organiser)
        await ok(await organiser.post(f"{ROOT}/spring:publish"))
        paused = await ok(await organiser.post(f"{ROOT}/spring:pause-countdown"))
        assert (paused["starts_at"], paused["countdown_pause_sec"]) == (None, 3_600)
        await store.clock.advance(2 * HOUR_MS)
        resumed = await ok(await organiser.post(f"{ROOT}/spring:resume-countdown"))
        assert resumed["starts_at"] == format_timestamp(NOON_US + 3 * HOUR_US)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"freeze_after_sec": 20_000}, "freeze_after_sec"),
        ({"duration_sec": 14_000}, "freeze_after_sec"),
        ({"freeze_after_sec": None, "window_sec": 20_000}, "window_sec"),
        ({"window_sec": 600}, "freeze_after_sec"),
        ({"format": "homework", "format_cfg": {"deadline_sec": 18_001}}, "format_cfg.deadline_sec"),
        ({"format_cfg": {"penalty_minutes": -1}}, "format_cfg"),
        ({"allowed_languages": ["klingon"]}, "allowed_languages"),
        ({"address_ranges": ["10.0.0.0/99"]}, "address_ranges[0]"),
        ({"slug": "New Slug"}, "slug"),
        ({"title": "  "}, "title"),
        ({"registration": "code"}, "registration_code"),
        ({"allows_teams": False, "allows_individuals": False}, "allows_teams"),
    ],
)
async def test_invalid_setting_is_refused_with_its_field(
    published: PublishedProblem, change: dict[str, Any], field: str
) -> None:
    async with published.user_client("setter") as organiser:
        made = await new_contest(organiser)
        answer = await organiser.patch(f"{ROOT}/spring", json=change)
        assert answer.status_code == 400, answer.text
        assert answer.json()["detail"].startswith(field)
        assert (await ok(await organiser.get(f"{ROOT}/spring")))["title"] == made["title"]


async def test_outdated_version_is_refused(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser:
        await new_contest(organiser)
        before = await ok(await organiser.get(f"{ROOT}/spring"))
        changed = await ok(await organiser.patch(f"{ROOT}/spring", json={"title": "A", "version": before["version"]}))
        assert changed["title"] == "A"
        late = await organiser.patch(f"{ROOT}/spring", json={"title": "B", "version": before["version"]})
        assert (late.status_code, late.json()["code"]) == (409, "VERSION_CONFLICT")


async def test_contest_without_problems_or_start_cannot_be_published(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser:
        await ok(await organiser.post(ROOT, json=NEW))
        for field in ("starts_at", "problems"):
            refused = await organiser.post(f"{ROOT}/spring:publish")
            assert refused.status_code == 400
            assert refused.json()["detail"].startswith(field)
            await ok(await organiser.patch(f"{ROOT}/spring", json={"starts_at": format_timestamp(NOON_US + HOUR_US)}))


async def test_problems_get_letters_and_duplicates_are_refused(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser:
        await new_contest(organiser)
        (problem,) = (await ok(await organiser.get(f"{ROOT}/spring/problems")))["items"]
        assert (problem["label"], problem["slug"], problem["points"]) == ("A", "sum", 100)
        twice = {"problems": [{"problem": "sum"}, {"problem": "sum", "label": "X"}]}
        refused = await organiser.put(f"{ROOT}/spring/problems", json=twice)
        assert refused.status_code == 400
        assert refused.json()["detail"].startswith("problems[1].problem")
        unknown = await organiser.put(f"{ROOT}/spring/problems", json={"problems": [{"problem": "nothing"}]})
        assert unknown.json()["detail"].startswith("problems[0].problem")
        renamed = {"problems": [{"problem": "sum", "label": "B", "alias": "Sums", "rgb": "#ff0000", "points": 1.5}]}
        saved = await ok(await organiser.put(f"{ROOT}/spring/problems", json=renamed))
        assert [(item["label"], item["title"], item["points"]) for item in saved["items"]] == [("B", "Sums", 1.5)]
        assert "published" in saved["warnings"][0]


async def test_roles_are_granted_and_the_last_organiser_stays(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser, published.user_client("contestant") as helper:
        await new_contest(organiser)
        name = (await ok(await helper.get("/api/v1/me")))["name"]
        await ok(await organiser.post(f"{ROOT}/spring/roles", json={"user": name, "role": "judge"}))
        assert (await ok(await helper.get(f"{ROOT}/spring")))["roles"] == ["judge"]
        assert (await helper.post(f"{ROOT}/spring:publish")).status_code == 403
        own = (await ok(await organiser.get("/api/v1/me")))["name"]
        refused = await organiser.delete(f"{ROOT}/spring/roles/{own}/organiser")
        assert refused.status_code == 400
        await ok(await organiser.delete(f"{ROOT}/spring/roles/{name}/judge"))
        assert (await helper.get(f"{ROOT}/spring")).status_code == 404


async def test_clone_copies_settings_and_problems_without_times(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser:
        await new_contest(organiser)
        copied = await ok(await organiser.post(f"{ROOT}/spring:clone", json={"slug": "autumn", "title": "Autumn"}))
        assert (copied["state"], copied["starts_at"], copied["title"]) == ("draft", None, "Autumn")
        assert copied["settings"]["freeze_after_sec"] == 14_400
        assert [item["slug"] for item in (await ok(await organiser.get(f"{ROOT}/autumn/problems")))["items"]] == ["sum"]
        taken = await organiser.post(f"{ROOT}/spring:clone", json={"slug": "autumn", "title": "Again"})
        assert taken.status_code == 409


async def test_pages_are_full_and_do_not_show_hidden_contests_by_their_cursor(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser, published.user_client("contestant") as other:
        slugs = ("draft-1", "open-1", "draft-2", "draft-3", "open-2", "draft-4", "open-3", "draft-5", "draft-6")
        for slug in slugs:
            await new_contest(organiser, slug=slug)
            if slug.startswith("open"):
                await ok(await organiser.post(f"{ROOT}/{slug}:publish"))
        first = await ok(await other.get(ROOT, params={"limit": 2}))
        assert [item["slug"] for item in first["items"]] == ["open-3", "open-2"]
        assert decode_cursor(first["next"], [str]) == [first["items"][-1]["id"]]
        second = await ok(await other.get(ROOT, params={"limit": 2, "cursor": first["next"]}))
        assert ([item["slug"] for item in second["items"]], second["next"]) == (["open-1"], None)
        exactly = await ok(await other.get(ROOT, params={"limit": 3}))
        assert (len(exactly["items"]), exactly["next"]) == (3, None), "drafts that follow are not a further page"
