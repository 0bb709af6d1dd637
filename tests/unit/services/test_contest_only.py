"""Contest-only mode: what each class of viewers reaches over the API and the pages, and who turns it on and off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.domain.timestamps import format_timestamp
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, SOURCE, PublishedProblem, publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import NOON_US, StoreHarness
from tests.unit.services.test_contests import HOUR_MS, HOUR_US, ROOT, new_contest, ok

SPRING = f"{ROOT}/spring"


@pytest.fixture
async def published(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A server with pages and the problem "sum", on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        add_pages(api.app, api.services)
        yield await publish_problem(api)


class Viewers:
    """A running contest with the mode, a second contest, and one client of each class of viewers."""

    def __init__(self, published: PublishedProblem, clients: dict[str, httpx.AsyncClient]) -> None:
        self.published, self.clients = published, clients
        self.other_submission = self.own_submission = ""

    def __getitem__(self, name: str) -> httpx.AsyncClient:
        return self.clients[name]

    async def turn(self, **fields: Any) -> None:
        await ok(await self["admin"].patch(SPRING, json=fields))

    async def statuses(self, name: str, paths: list[str]) -> dict[str, int]:
        return {path: (await self[name].get(path)).status_code for path in paths}


@pytest.fixture
async def viewers(published: PublishedProblem, store: StoreHarness) -> AsyncIterator[Viewers]:
    async with AsyncExitStack() as stack:
        roles = {"admin": "admin", "organiser": "setter", "judge": "judge", "setter": "setter"}
        roles |= {"participant": "contestant", "other": "contestant", "balloon": "contestant", "service": "service"}
        clients = {name: await stack.enter_async_context(published.user_client(role)) for name, role in roles.items()}
        clients["visitor"] = await stack.enter_async_context(published.api.client())
        found = Viewers(published, clients)
        await new_contest(clients["organiser"])
        await new_contest(clients["organiser"], slug="autumn")
        for slug in ("spring", "autumn"):
            await ok(await clients["organiser"].post(f"{ROOT}/{slug}:publish"))
            await ok(await clients["participant"].post(f"{ROOT}/{slug}:register", json={}))
        name = (await ok(await clients["balloon"].get("/api/v1/me")))["name"]
        await ok(await clients["organiser"].post(f"{SPRING}/roles", json={"user": name, "role": "balloon"}))
        found.other_submission = (await published.submit(clients["participant"]))["submission_id"]
        await store.clock.advance(HOUR_MS)
        body = {"problem": "A", "contest": "spring", "language": "cpp", "source": SOURCE}
        accepted = await ok(await clients["participant"].post("/api/v1/submissions", json=body))
        found.own_submission = accepted["submission_id"]
        yield found


async def test_limited_viewers_reach_only_the_contest_and_staff_everything(viewers: Viewers) -> None:
    closed = [
        "/problems",
        "/problems/sum",
        "/contests/autumn",
        "/ratings",
        "/api/v1/problems",
        "/api/v1/problems/sum",
        f"{ROOT}/autumn",
        f"{ROOT}/autumn/scoreboard",
    ]
    open_ = ["/contests/spring", SPRING, f"{SPRING}/scoreboard", "/api/v1/languages"]
    for name in viewers.clients:
        assert set((await viewers.statuses(name, [*closed, *open_])).values()) == {200}, name
    await viewers.turn(contest_only=True)
    for name in ("participant", "other", "visitor"):
        assert set((await viewers.statuses(name, closed)).values()) == {404}, name
        assert set((await viewers.statuses(name, open_)).values()) == {200}, name
        assert [item["slug"] for item in (await ok(await viewers[name].get(ROOT)))["items"]] == ["spring"]
        assert (await viewers[name].get("/")).headers["Location"] == "/contests"
        assert (await viewers[name].get("/contests")).headers["Location"] == "/contests/spring"
        page = (await viewers[name].get("/contests/spring")).text
        assert 'href="/problems"' not in page
        assert 'id="contest-only"' not in page
    for name in ("admin", "organiser", "judge", "setter", "balloon", "service"):
        assert set((await viewers.statuses(name, [*closed, *open_])).values()) == {200}, name
    assert 'id="contest-only"' in (await viewers["admin"].get("/problems")).text
    await viewers.turn(contest_only=False)
    for name in viewers.clients:
        assert set((await viewers.statuses(name, [*closed, *open_])).values()) == {200}, name
    assert 'id="contest-only"' not in (await viewers["admin"].get("/problems")).text


async def test_hidden_objects_answer_as_missing_ones(viewers: Viewers) -> None:
    await viewers.turn(contest_only=True)
    user = viewers["participant"]
    for hidden, missing in (
        ("/api/v1/problems/sum", "/api/v1/problems/abc"),
        (f"{ROOT}/autumn", f"{ROOT}/nobody"),
        (f"/api/v1/submissions/{viewers.other_submission}", f"/api/v1/submissions/{'0' * 8}-0000-7000-8000-{'0' * 12}"),
    ):
        first, second = await user.get(hidden), await user.get(missing)
        assert first.status_code == second.status_code == 404
        name, other = hidden.rpartition("/")[2], missing.rpartition("/")[2]
        assert first.json()["detail"].replace(name, other) == second.json()["detail"]
        assert first.json()["code"] == second.json()["code"]


async def test_submissions_of_the_contest_remain_and_others_are_refused(viewers: Viewers) -> None:
    await viewers.turn(contest_only=True)
    user = viewers["participant"]
    listed = (await ok(await user.get("/api/v1/submissions")))["items"]
    assert [item["id"] for item in listed] == [viewers.own_submission]
    assert (await user.get(f"/submissions/{viewers.own_submission}")).status_code == 200
    assert (await user.get(f"/submissions/{viewers.other_submission}")).status_code == 404
    assert (await user.get("/api/v1/me")).status_code == 200
    assert (await user.get("/api/v1/webhooks")).status_code == 404
    assert (await user.get("/api/v1/me/events")).status_code == 404
    body = {"problem": "sum", "language": "cpp", "source": SOURCE}
    assert (await user.post("/api/v1/submissions", json=body)).status_code == 404
    assert (await user.post("/api/v1/submissions", json=body | {"contest": "autumn"})).status_code == 404
    await ok(await user.post("/api/v1/submissions", json=body | {"contest": "spring"}))


async def test_mode_holds_between_its_times_and_only_for_a_published_contest(
    viewers: Viewers, store: StoreHarness
) -> None:
    now_us, mode = NOON_US + HOUR_US, viewers.published.api.services.contest_only
    times = {
        "contest_only_from": format_timestamp(now_us + HOUR_US),
        "contest_only_until": format_timestamp(now_us + 2 * HOUR_US),
    }
    await viewers.turn(contest_only=True, **times)
    found = []
    for _ in range(3):
        mode.forget()  # as after the time of the cache
        found.append((await viewers["other"].get("/api/v1/problems/sum")).status_code)
        await store.clock.advance(HOUR_MS)
    assert found == [200, 404, 200]
    await viewers.turn(contest_only_from=None, contest_only_until=None)
    assert (await viewers["other"].get("/api/v1/problems/sum")).status_code == 404
    await ok(await viewers["organiser"].post(f"{SPRING}:cancel", json={"reason": "no rooms"}))
    mode.forget()
    assert (await viewers["other"].get("/api/v1/problems/sum")).status_code == 200


async def test_only_admins_turn_it_on_for_one_contest_and_it_is_in_the_audit_log(
    viewers: Viewers, store: StoreHarness
) -> None:
    refused = await viewers["organiser"].patch(SPRING, json={"contest_only": True})
    assert (refused.status_code, refused.json()["fields"]["field"]) == (400, "contest_only")
    await viewers.turn(contest_only=True)
    await ok(await viewers["organiser"].patch(SPRING, json={"title": "Still"}))  # other settings remain theirs
    second = await viewers["admin"].patch(f"{ROOT}/autumn", json={"contest_only": True})
    assert (second.status_code, "Another contest" in second.json()["detail"]) == (409, True)
    wrong = {"contest_only_from": format_timestamp(NOON_US), "contest_only_until": format_timestamp(NOON_US)}
    assert (await viewers["admin"].patch(SPRING, json=wrong)).json()["fields"]["field"] == "contest_only_until"
    await viewers.turn(contest_only=False)
    rows = await store.rows("SELECT details FROM audit_log WHERE action = 'contest.update' ORDER BY id")
    texts = [str(row["details"]) for row in rows]
    assert sum("contest_only" in text for text in texts) == 2
    clone = await ok(await viewers["admin"].post(f"{SPRING}:clone", json={"slug": "copy", "title": "Copy"}))
    assert clone["settings"]["contest_only"] is False


async def test_visitors_of_a_private_contest_are_led_to_the_login(viewers: Viewers) -> None:
    await viewers.turn(contest_only=True, visibility="private")
    assert (await viewers["visitor"].get("/contests")).headers["Location"] == "/login"
    assert (await viewers["visitor"].get("/login")).status_code == 200
    assert (await viewers["visitor"].get("/contests/spring")).status_code == 404
    assert (await viewers["participant"].get("/contests/spring")).status_code == 200
