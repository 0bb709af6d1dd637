"""Prints: sent by participants within their time, printed once, seen by their team and the staff alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.contests import jury, lifecycle
from adjudge.domain.contest import ParticipantKind
from adjudge.settings.printing_section import PrintingSettings
from adjudge.store import Tx
from adjudge.store.contests import participants
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.contest_fixture import ContestFixture, icpc_settings, make_contest
from tests.support.contest_staff import open_clients
from tests.support.published_problem import OPEN_GATE, publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness
from tests.unit.services.test_contest_visibility import PHASES_MS, SETTINGS, SLUG, VIEWERS, make_fixture

MINUTE_MS = 60_000
STAFF = ("print", "organiser", "judge")
LIMITS = PrintingSettings(job_bytes=4_096, job_pages=7, jobs=11, period_sec=600)


@pytest.fixture
async def api(store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    """The application on each database in turn."""
    limits = {f"printing.{name}": value for name, value in asdict(LIMITS).items()}
    async with make_app(store, tmp_path, OPEN_GATE | limits) as api:
        add_pages(api.app, api.services)
        yield api


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as entered:
        yield entered


class PrintScene:
    """A contest and clients of its participants and staff."""

    def __init__(self, api: AsgiApp, contest: ContestFixture, clients: dict[str, httpx.AsyncClient]) -> None:
        self.api, self.contest, self.clients = api, contest, clients
        self.path = f"/api/v1/contests/{contest.contest_id}/prints"
        self.page = f"/contests/{contest.contest_id}/prints"

    async def send(self, who: str = "participant", content: str = "int main() {}", **fields: Any) -> httpx.Response:
        return await self.clients[who].post(self.path, json={"content": content, "file_name": "a.cpp"} | fields)

    async def numbers(self, who: str, state: str = "all") -> list[int]:
        answer = await self.clients[who].get(self.path, params={"state": state})
        assert answer.status_code == 200, answer.text
        return [item["number"] for item in answer.json()["items"]]

    async def act(self, action: str, number: int = 1, who: str = "print") -> httpx.Response:
        return await self.clients[who].post(f"{self.path}/{number}:{action}")

    async def set_participant(self, **fields: Any) -> None:
        async def operation(tx: Tx) -> None:
            row = await participants.find(tx, self.contest.participants[0])
            await jury.update_participant(tx, replace(row, **fields), actor="", reason="")

        await self.contest.transact(operation)


async def make_scene(api: AsgiApp, stack: AsyncExitStack, **settings: Any) -> PrintScene:
    contest = await make_contest(api.store, settings=icpc_settings(**{"printing_enabled": True} | settings))
    clients = await open_clients(api, contest, stack)
    await api.store.clock.advance(MINUTE_MS)
    return PrintScene(api, contest, clients)


async def test_job_is_claimed_once_printed_and_put_back(api: AsgiApp, stack: AsyncExitStack) -> None:
    scene = await make_scene(api, stack)
    await scene.set_participant(location="Room 7")
    sent = (await scene.send(file_name="C:\\src\\a.cpp")).json()
    assert (sent["number"], sent["file_name"], sent["pages"], sent["state"]) == (1, "a.cpp", 1, "pending")
    (item,) = (await scene.clients["print"].get(scene.path)).json()["items"]
    assert (item["name"], item["location"], item["participant"]) == ("Participant 0", "Room 7", "p0")
    claimed = await scene.act("claim")
    assert (claimed.status_code, claimed.json()["state"]) == (200, "printing")
    assert claimed.json()["claimed_by"] is not None
    assert [(await scene.act("claim", who=who)).status_code for who in STAFF] == [409] * 3
    pages = await scene.clients["print"].get(f"{scene.path}/1/pages")
    assert pages.text == "#1  Participant 0, Room 7  a.cpp  1/1\n\nint main() {}\n\f"
    assert pages.headers["X-Content-Type-Options"] == "nosniff"
    assert pages.headers["Content-Disposition"].startswith("attachment")
    for _ in range(2):
        assert (await scene.act("finish")).json()["state"] == "done"
    assert (await scene.numbers("print", "open"), await scene.numbers("print", "done")) == ([], [1])
    own = (await scene.clients["participant"].get(scene.path)).json()["items"]
    assert [(item["state"], item["claimed_by"]) for item in own] == [("done", None)]
    for _ in range(2):
        assert (await scene.act("requeue", who="judge")).json()["state"] == "pending"
    assert (await scene.act("finish")).json()["state"] == "done"
    logged = await api.store.rows("SELECT action FROM audit_log WHERE object_kind = 'print' ORDER BY id")
    assert [row["action"] for row in logged] == ["print.claim", "print.finish", "print.requeue", "print.finish"]


async def test_jobs_are_seen_by_their_participant_and_the_staff_alone(api: AsgiApp, stack: AsyncExitStack) -> None:
    scene = await make_scene(api, stack)
    await scene.send()
    await scene.send("other")
    assert (await scene.numbers("participant"), await scene.numbers("other")) == ([1], [2])
    for who in (*STAFF, "api_reader"):
        assert await scene.numbers(who) == [1, 2]
    for who, status in {"visitor": 401, "nobody": 403, "balloon": 403}.items():
        assert (await scene.clients[who].get(scene.path)).status_code == status, who
    readers = {*STAFF, "participant"}
    for who, client in scene.clients.items():
        for name in ("text", "pages"):
            answer, missing = await client.get(f"{scene.path}/1/{name}"), await client.get(f"{scene.path}/9/{name}")
            expected = 200 if who in readers else 401 if who == "visitor" else 404
            assert answer.status_code == expected, (who, name)
            if expected == 404:
                assert answer.json()["detail"] == missing.json()["detail"].replace("9", "1")
        page = await client.get(f"{scene.page}/1")
        assert page.status_code == (200 if who in readers else 303 if who == "visitor" else 404), who
        if who not in STAFF:
            for action in ("claim", "finish", "requeue"):
                assert (await scene.act(action, who=who)).status_code in (401, 403), who
    assert (await scene.act("claim", 9)).status_code == 404


async def test_printing_is_refused_with_its_reason(api: AsgiApp, stack: AsyncExitStack) -> None:
    scene = await make_scene(api, stack)

    async def refused(who: str = "participant", **fields: Any) -> tuple[int, str]:
        answer = await scene.send(who, **fields)
        return answer.status_code, answer.json()["detail"]

    assert await refused(content=" \n") == (400, "content: empty; there is nothing to print.")
    assert (await refused(content="a\0b"))[1].startswith("content: only text")
    assert (await refused(content="é" * LIMITS.job_bytes))[1].startswith(f"content: {2 * LIMITS.job_bytes} bytes")
    assert (await refused(content="\f" * LIMITS.job_pages + "x"))[1].startswith(
        f"content: {LIMITS.job_pages + 1} pages"
    )
    assert (await refused(file_name="a\nb"))[1].startswith("file_name:")
    assert await refused("nobody") == (403, "Only participants can print; register for the contest first.")
    await api.store.clock.advance(-2 * MINUTE_MS)
    assert await refused() == (409, "Printing opens when the contest starts.")
    await scene.set_participant(kind=ParticipantKind.TEST)
    assert (await scene.send()).status_code == 201
    await scene.set_participant(kind=ParticipantKind.OFFICIAL)
    await api.store.clock.advance(400 * MINUTE_MS)
    assert await refused() == (409, "Printing is closed: the contest has ended.")
    assert (await scene.send("print")).status_code == 201
    contest = await scene.contest.contest()
    off = replace(contest.settings, printing_enabled=False)
    await scene.contest.transact(
        lambda tx: lifecycle.update(
            tx, contest.id, off, version=contest.version, slug=contest.slug, actor="", reason=""
        )
    )
    for who in ("participant", "print"):
        assert await refused(who) == (409, "Printing is off in this contest (setting printing_enabled).")
    assert await scene.numbers("print") == [1, 2]


async def test_participants_print_a_limited_number_of_times(api: AsgiApp, stack: AsyncExitStack) -> None:
    scene = await make_scene(api, stack)
    for _ in range(LIMITS.jobs):
        assert (await scene.send()).status_code == 201
    limited = await scene.send()
    assert (limited.status_code, limited.headers["Retry-After"]) == (429, "600")
    assert (await scene.send("other")).status_code == 201
    await api.store.clock.advance(11 * MINUTE_MS)
    assert (await scene.send()).status_code == 201
    assert len(await scene.numbers("participant")) == LIMITS.jobs + 1


async def test_lists_are_read_in_pages(api: AsgiApp, stack: AsyncExitStack) -> None:
    scene = await make_scene(api, stack)
    for _ in range(3):
        await scene.send()
    for who, order in {"print": [1, 2, 3], "participant": [3, 2, 1]}.items():
        first = (await scene.clients[who].get(scene.path, params={"limit": 2})).json()
        second = (await scene.clients[who].get(scene.path, params={"limit": 2, "cursor": first["next"]})).json()
        assert [item["number"] for item in first["items"] + second["items"]] == order
        assert second["next"] is None


async def test_pages_print_without_a_script(api: AsgiApp, stack: AsyncExitStack) -> None:
    scene = await make_scene(api, stack)
    participant, staff = scene.clients["participant"], scene.clients["print"]
    file = {"file": ("deep/<b>.cpp", b"\xef\xbb\xbfint x; // <script>\n" * 70)}
    sent = await participant.post(scene.page, data={"content": ""}, files=file)
    assert (sent.status_code, sent.headers["Location"]) == (303, f"{scene.page}?done=print_sent")
    wrong = await participant.post(scene.page, data={"content": ""}, files={"file": ("a", b"\xff")})
    assert wrong.status_code == 400
    assert "invalid UTF-8" in wrong.text
    text = (await staff.get(scene.page)).text
    assert "&lt;b&gt;.cpp" in text
    assert "Participant 0" in text
    claimed = await staff.post(f"{scene.page}/1", data={"action": "claim"})
    assert claimed.headers["Location"] == f"{scene.page}/1"
    shown = (await staff.get(f"{scene.page}/1")).text
    assert "<script>\n" not in shown
    assert ("1/2</span>" in shown, "2/2</span>" in shown) == (True, True)
    taken = await staff.post(f"{scene.page}/1", data={"action": "claim"})
    assert taken.status_code == 409
    done = await staff.post(f"{scene.page}/1", data={"action": "finish"})
    assert done.headers["Location"] == f"{scene.page}?state=open"
    assert "Participant 0" not in (await staff.get(f"{scene.page}/state")).text
    assert "printed" in (await participant.get(scene.page, params={"state": "all"})).text


@pytest.mark.parametrize("phase", ["before", "running", "frozen", "ended"])
async def test_job_changes_only_what_its_team_and_the_staff_see(
    api: AsgiApp, stack: AsyncExitStack, phase: str
) -> None:
    published = await publish_problem(api)
    fixture = await make_fixture(published, stack, replace(SETTINGS, printing_enabled=True))
    paths = [
        f"/api/v1/contests/{SLUG}/prints",
        f"/contests/{SLUG}/prints/state",
        f"/api/v1/contests/{SLUG}/prints/1/text",
    ]
    await fixture.store.clock.advance(PHASES_MS[phase])
    before = await fixture.look(paths)
    seen = dict.fromkeys(VIEWERS, 403) | {"visitor": 401, "jury": 200, "author": 200, "teammate": 200, "other": 200}
    assert {who: before[who, paths[0]][0] for who in VIEWERS} == seen
    sent = await fixture.clients["author"].post(paths[0], json={"content": "x"})
    assert sent.status_code == (201 if phase in ("running", "frozen") else 409)
    after = await fixture.look(paths)
    changed = {who for who, path in before if before[who, path] != after[who, path]}
    assert changed == ({"jury", "author", "teammate"} if sent.status_code == 201 else set())
