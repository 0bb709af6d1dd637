"""The contest editor: forms keep what was sent, errors stand beside their fields, conflicts are reported."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.domain.timestamps import format_timestamp
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, add_revision, publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import NOON_US, StoreHarness

API = "/api/v1/contests/spring"
ROOT = "/contests/spring/settings"
HOUR_MS = 3_600_000


@pytest.fixture
async def published(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """The application with its pages and the problem "sum"."""
    async with make_app(sqlite_store, tmp_path, OPEN_GATE) as api:
        add_pages(api.app, api.services)
        yield await publish_problem(api)


class _FormReader(HTMLParser):
    """What a browser would send of the form with an action."""

    def __init__(self, action: str) -> None:
        super().__init__()
        self.action, self.values, self._is_inside, self._select, self._area = action, dict[str, Any](), False, "", ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self._is_inside = given.get("action") == self.action
        if not self._is_inside:
            return
        name = given.get("name") or ""
        if tag == "input" and (given.get("type") not in ("checkbox", "radio") or "checked" in given):
            self.values[name] = given.get("value") or ""
        elif tag == "textarea":
            self._area = name
        elif tag == "select":
            self._select = name
        elif tag == "option" and ("selected" in given or self._select not in self.values):
            self.values[self._select] = given.get("value", "") if "value" in given else None

    def handle_data(self, data: str) -> None:
        if self._area:
            self.values[self._area] = data.removeprefix("\n")
            self._area = ""
        if self._select in self.values and self.values[self._select] is None:
            self.values[self._select] = data


def form_values(page: str, action: str) -> dict[str, Any]:
    reader = _FormReader(action)
    reader.feed(page)
    return reader.values


async def shown(client: httpx.AsyncClient, path: str) -> str:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


async def create(client: httpx.AsyncClient, **fields: str) -> None:
    values = form_values(await shown(client, "/contests/new"), "/contests/new")
    answer = await client.post("/contests/new", data=values | {"slug": "spring", "title": "Spring"} | fields)
    assert answer.status_code == 303, answer.text
    assert answer.headers["Location"] == f"{ROOT}/problems?done=contest_created"


async def add_problem(client: httpx.AsyncClient, slug: str) -> httpx.Response:
    action = f"{ROOT}/problems"
    return await client.post(action, data=form_values(await shown(client, action), action) | {"add": slug})


def error_of(page: str, name: str) -> str:
    (said,) = re.findall(rf'role="alert" id="{re.escape(name)}-error">([^<]*)<', page)
    return unescape(said)


async def test_contest_is_created_with_the_settings_of_the_form(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser:
        await create(
            organiser,
            zone="Europe/Berlin",
            starts_at="2030-07-01T14:00",
            duration_us="3:00:00",
            freeze_ct_us="2:00:00",
            format="homework",
            **{"homework.deadline_sec": "2:30:00", "homework.counts": "last", "awards.gold": "1"},
            registration="code",
            registration_code="tulip",
            address_ranges="10.0.0.0/24\r\n10.0.1.0/24\r\n",
            allowed_languages="c",
            rated="yes",
        )
        found = (await organiser.get(API)).json()
        settings = found["settings"]
        assert found["starts_at"] == "2030-07-01T12:00:00.000Z", "two o'clock in Berlin is noon in UTC"
        assert (settings["duration_sec"], settings["freeze_after_sec"]) == (10_800, 7_200)
        assert settings["format_cfg"] == {
            "deadline_sec": 9_000,
            "late_penalty_percent_per_day": 10,
            "late_penalty_cap_percent": 100,
            "counts": "last",
        }
        assert settings["awards_cfg"]["gold"] == 1
        assert (settings["registration"], settings["rated"]) == ("code", True)
        assert settings["address_ranges"] == ["10.0.0.0/24", "10.0.1.0/24"]
        assert settings["allowed_languages"] == ["c"]


async def test_saving_an_unchanged_form_changes_no_setting(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser:
        await create(organiser, registration="code", registration_code="tulip", description="One\nTwo")
        start = format_timestamp(NOON_US + 1_234_567)
        assert (await organiser.patch(API, json={"starts_at": start, "duration_sec": 100.25})).is_success
        before = (await organiser.get(API)).json()
        values = form_values(await shown(organiser, ROOT), ROOT)
        assert (await organiser.post(ROOT, data=values)).status_code == 303
        after = (await organiser.get(API)).json()
        assert (after["settings"], after["starts_at"]) == (before["settings"], before["starts_at"])


@pytest.mark.parametrize(
    ("fields", "wrong", "word"),
    [
        ({"duration_us": "soon"}, "duration_us", "Expected hours"),
        ({"title": " "}, "title", "Must not be empty"),
        ({"freeze_ct_us": "9:00:00"}, "freeze_ct_us", "The contest would end before its freeze"),
        ({"freeze_ct_us": "", "window_us": "9:00:00"}, "window_us", "not longer than the contest"),
        ({"format": "homework", "homework.deadline_sec": "9:00:00"}, "homework.deadline_sec", "after the end"),
        ({"icpc.penalty_minutes": "20000"}, "icpc.penalty_minutes", "integer from 0 to 10000"),
        ({"awards.gold": "999999"}, "awards.gold", "integer from 0"),
        ({"max_team_members": "many"}, "max_team_members", "whole number"),
        ({"address_ranges": "nowhere"}, "address_ranges", "is not a network"),
        ({"registration": "code"}, "registration_code", "Required"),
        ({"slug": "No!"}, "slug", "Must match"),
        ({"starts_at": "tomorrow"}, "starts_at", "Expected a date"),
    ],
)
async def test_error_stands_beside_its_field_and_values_are_kept(
    published: PublishedProblem, fields: dict[str, str], wrong: str, word: str
) -> None:
    async with published.user_client("setter") as organiser:
        await create(organiser)
        values = form_values(await shown(organiser, ROOT), ROOT) | {"description": "Kept <b>", "zone": "Asia/Tokyo"}
        refused = await organiser.post(ROOT, data=values | fields)
        assert refused.status_code == 400
        assert word in error_of(refused.text, wrong)
        kept = form_values(refused.text, ROOT)
        assert {name: kept.get(name) for name in values | fields} == values | fields
        assert (await organiser.get(API)).json()["settings"]["description"] == ""


async def test_conflict_is_reported_and_saving_again_overwrites(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser:
        await create(organiser)
        values = form_values(await shown(organiser, ROOT), ROOT) | {"title": "Mine"}
        assert (await organiser.patch(API, json={"title": "Theirs"})).is_success
        refused = await organiser.post(ROOT, data=values)
        assert (refused.status_code, "Somebody else changed this contest" in refused.text) == (409, True)
        again = form_values(refused.text, ROOT)
        assert again["title"] == "Mine"
        assert (await organiser.post(ROOT, data=again)).status_code == 303
        assert (await organiser.get(API)).json()["title"] == "Mine"


async def test_taken_slug_is_refused(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser:
        await create(organiser)
        values = form_values(await shown(organiser, "/contests/new"), "/contests/new")
        refused = await organiser.post("/contests/new", data=values | {"slug": "spring", "title": "Again"})
        assert refused.status_code == 409
        assert 'role="alert"' in refused.text


async def test_problems_are_searched_added_changed_and_removed(published: PublishedProblem) -> None:
    action = f"{ROOT}/problems"
    async with published.user_client("setter") as organiser:
        await create(organiser)
        assert 'value="sum"' in await shown(organiser, f"{action}?q=sum")
        assert (await add_problem(organiser, "sum")).status_code == 303
        values = form_values(await shown(organiser, action), action)
        assert (values["label-0"], values["points-0"], values["accepts-0"]) == ("A", "100", "yes")
        assert "This problem is published" in await shown(organiser, action)
        changed = values | {"label-0": "S", "alias-0": "Adding", "rgb-0": "#e11d48", "closes-0": "1:00:00"}
        del changed["accepts-0"]
        refused = await organiser.post(action, data=changed | {"opens-0": "2:00:00", "points-0": "7.5"})
        assert (refused.status_code, "Must be after" in error_of(refused.text, "closes-0")) == (400, True)
        assert form_values(refused.text, action)["points-0"] == "7.5"
        missing = await organiser.post(action, data=changed | {"revision-0": "99"})
        assert (missing.status_code, "has no revision 99" in error_of(missing.text, "revision-0")) == (400, True)
        unknown = await organiser.post(action, data=changed | {"add": "none"})
        assert (unknown.status_code, "there is no problem" in unknown.text.lower()) == (400, True)
        assert (await organiser.post(action, data=changed | {"points-0": "7.5"})).status_code == 303
        (problem,) = (await organiser.get(f"{API}/problems")).json()["items"]
        assert (problem["label"], problem["title"], problem["points"], problem["accepts"]) == (
            "S",
            "Adding",
            7.5,
            False,
        )
        assert (problem["rgb"], problem["closes_after_sec"]) == ("#e11d48", 3_600)
        late = await organiser.post(action, data=changed | {"remove-0": "yes"})
        assert (late.status_code, "Somebody else changed this contest" in late.text) == (409, True)
        assert len((await organiser.get(f"{API}/problems")).json()["items"]) == 1
        again = form_values(late.text, action) | {"remove-0": "yes"}
        assert (await organiser.post(action, data=again)).status_code == 303
        assert "This contest has no problems." in await shown(organiser, action)


async def test_problem_keeps_its_pinned_revision_until_another_is_given(published: PublishedProblem) -> None:
    action = f"{ROOT}/problems"

    async def pinned() -> str:
        (row,) = await published.api.store.rows("SELECT revision_id FROM contest_problems")
        return str(row["revision_id"])

    async with published.user_client("setter") as organiser:
        await create(organiser)
        await add_problem(organiser, "sum")
        first, newer = await pinned(), await add_revision(published)
        values = form_values(await shown(organiser, action), action)
        assert (await organiser.post(action, data=values)).status_code == 303
        assert await pinned() == first
        values = form_values(await shown(organiser, action), action)
        assert (await organiser.post(action, data=values | {"revision-0": "2"})).status_code == 303
        assert await pinned() == newer


async def test_roles_are_granted_and_revoked(published: PublishedProblem) -> None:
    action = f"{ROOT}/roles"
    async with published.user_client("setter") as organiser, published.user_client() as other:
        await create(organiser)
        me = (await organiser.get("/api/v1/me")).json()
        name = (await other.get("/api/v1/me")).json()["name"]
        assert (await other.get(ROOT)).status_code == 404
        assert (await organiser.post(action, data={"user": name, "role": "judge"})).status_code == 303
        assert (await other.get(ROOT)).status_code == 403, "judges do not change settings"
        unknown = await organiser.post(action, data={"user": "nobody", "role": "judge"})
        assert (unknown.status_code, "nobody" in form_values(unknown.text, action)["user"]) == (400, True)
        data = {"user": me["id"], "role": "organiser"}
        assert (await organiser.post(f"{action}/revoke", data=data)).status_code == 400
        assert (await organiser.post(f"{action}/revoke", data={"user": name, "role": "judge"})).status_code == 303
        assert (await other.get(ROOT)).status_code == 404


async def test_lifecycle_from_publication_to_final_results(
    published: PublishedProblem, sqlite_store: StoreHarness
) -> None:
    root = f"{ROOT}/lifecycle"

    async with published.user_client("setter") as organiser:

        async def act(action: str, status: int = 303, **values: str) -> str:
            offered = await shown(organiser, root)
            assert f'action="{root}/{action}"' in offered, "only what is possible is offered"
            answer = await organiser.post(f"{root}/{action}", data=values)
            assert answer.status_code == status, answer.text
            return answer.text

        await create(organiser, zone="UTC", starts_at="2100-01-01T00:00", duration_us="1:00:00")
        assert "needs at least one" in await act("publish", 400)
        await add_problem(organiser, "sum")
        await act("publish")
        await act("pause-countdown")
        await act("resume-countdown")
        await act("unpublish", reason="too early")
        await act("publish")
        await act("start-now")
        await sqlite_store.clock.advance(HOUR_MS // 4)
        await act("pause", reason="no power")
        await sqlite_store.clock.advance(HOUR_MS // 4)
        await act("resume")
        assert "no power" in await shown(organiser, root)
        interval = re.search(r'name="interval" value="([^"]+)"', await shown(organiser, root))
        assert interval
        await act("undo-interval", interval=interval[1])
        wrong = await act("remove-interval", 400, zone="UTC", from_at="2000-01-01T00:00", to_at="2000-01-01T00:10")
        assert form_values(wrong, f"{root}/remove-interval")["from_at"] == "2000-01-01T00:00"
        await act("freeze")
        await act("extend", extra="0:10:00", reason="late start")
        assert (await organiser.get(API)).json()["settings"]["duration_sec"] == 4_200
        assert f'action="{root}/finalize"' not in await shown(organiser, root)
        await act("extend", extra="0:10:00", direction="shorter")
        await act("end", reason="all have left")
        assert "Nothing prevents finalization." in await shown(organiser, root)
        await act("finalize")
        await act("thaw")
        assert "cannot be undone" in await act("close-updates", 400)
        await act("close-updates", sure="yes")
        assert "Nothing can be changed any more." in await shown(organiser, root)
        assert (await organiser.post(f"{root}/unknown")).status_code == 404
        assert (await organiser.post(f"{root}/reopen", data={"reason": "x"})).status_code == 403

        copied = await organiser.post(f"{ROOT}/clone", data={"slug": "autumn", "title": "Autumn"})
        assert copied.headers["Location"] == "/contests/autumn/settings?done=contest_created"
        taken = await organiser.post(f"{ROOT}/clone", data={"slug": "autumn", "title": "Autumn"})
        assert taken.status_code == 409


async def test_only_those_with_the_permission_create(published: PublishedProblem) -> None:
    async with published.user_client() as contestant, published.api.client() as visitor:
        assert (await contestant.get("/contests/new")).status_code == 403
        assert "/contests/new" not in await shown(contestant, "/contests")
        assert (await visitor.get("/contests/new")).headers["Location"].startswith("/login")
        assert (await visitor.get(ROOT)).headers["Location"].startswith("/login")
