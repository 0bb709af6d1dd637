"""Balloons: added and withdrawn with the scoreboard, delivered by the staff, held back in the freeze by rule."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.contests import jury, lifecycle
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.verdict import Verdict
from adjudge.store import Tx
from adjudge.store.contests import participants, queries
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.submissions import JuryDecision
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.contest_fixture import ContestFixture, icpc_settings, make_contest
from tests.support.contest_staff import open_clients
from tests.support.published_problem import OPEN_GATE, publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness
from tests.unit.services.test_contest_visibility import PHASES_MS, SETTINGS, SLUG, VIEWERS, make_fixture

MINUTE_MS = 60_000


@pytest.fixture
async def api(store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    """The application on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        add_pages(api.app, api.services)
        yield api


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as entered:
        yield entered


class BalloonScene:
    """A contest with three participants, three problems and clients of its staff."""

    def __init__(self, api: AsgiApp, contest: ContestFixture, clients: dict[str, httpx.AsyncClient]) -> None:
        self.api, self.contest, self.clients = api, contest, clients
        self.path = f"/api/v1/contests/{contest.contest_id}/balloons"

    async def solve(self, participant: int, problem: int) -> str:
        submission = await self.contest.submit(participant, problem)
        await self.contest.judge(submission, Verdict.AC)
        await self.api.services.balloons.feed.catch_up()
        return submission

    async def items(self, who: str = "balloon", state: str = "all") -> list[dict[str, Any]]:
        answer = await self.clients[who].get(self.path, params={"state": state})
        assert answer.status_code == 200, answer.text
        return list(answer.json()["items"])

    async def keys(self, who: str = "balloon", state: str = "all") -> list[str]:
        return [item["participant"] + item["problem"] for item in await self.items(who, state)]

    async def act(self, action: str, who: str = "balloon", cell: str = "p0/A") -> httpx.Response:
        return await self.clients[who].post(f"{self.path}/{cell}:{action}")

    async def override(self, submission_id: str, verdict: Verdict | None) -> None:
        async def operation(tx: Tx) -> None:
            row = await contest_submissions.find(tx, submission_id)
            decision = JuryDecision(
                override_verdict=verdict,
                overridden_by=None if verdict is None else self.contest.users[self.contest.participants[0]],
                override_reason=None if verdict is None else "no",
            )
            await jury.decide(tx, submission_id, decision, version=row.version, actor="", reason="no")

        await self.contest.transact(operation)

    async def change(self, **fields: Any) -> None:
        async def operation(tx: Tx) -> None:
            contest = await queries.find_contest(tx, self.contest.contest_id)
            settings = replace(contest.settings, **fields)
            await lifecycle.update(
                tx, contest.id, settings, version=contest.version, slug=contest.slug, actor="", reason=""
            )

        await self.contest.transact(operation)


async def make_scene(api: AsgiApp, stack: AsyncExitStack, **settings: Any) -> BalloonScene:
    contest = await make_contest(api.store, settings=icpc_settings(**{"balloons_enabled": True} | settings))
    clients = await open_clients(api, contest, stack)
    await api.store.clock.advance(MINUTE_MS)
    return BalloonScene(api, contest, clients)


async def test_balloons_are_listed_delivered_and_put_back(api: AsgiApp, stack: AsyncExitStack) -> None:
    scene = await make_scene(api, stack)
    await scene.solve(0, 0)
    await scene.solve(0, 0)
    await scene.solve(1, 0)
    await scene.solve(0, 1)
    items = await scene.items()
    assert [(item["participant"], item["problem"], item["total"], item["state"]) for item in items] == [
        ("p0", "A", 2, "waiting"),
        ("p1", "A", 1, "waiting"),
        ("p0", "B", 2, "waiting"),
    ]
    assert [(item["is_first_of_contest"], item["is_first_of_problem"]) for item in items] == [
        (True, True),
        (False, False),
        (False, True),
    ]
    assert set(items[0]) & {"title", "source", "verdict", "language"} == set()
    first = await scene.act("deliver")
    again = await scene.act("deliver", "judge")
    assert first.json()["state"] == again.json()["state"] == "delivered"
    assert first.json()["delivered_by"] is not None
    assert first.json() == again.json()
    assert await scene.keys(state="waiting") == ["p1A", "p0B"]
    assert await scene.keys(state="delivered") == ["p0A"]
    assert (await scene.act("undo")).json()["state"] == "waiting"
    assert (await scene.act("undo")).json()["delivered_at"] is None
    assert (await scene.act("collect")).status_code == 409
    logged = await scene.contest.store.rows("SELECT action FROM audit_log WHERE action LIKE 'balloon.%' ORDER BY id")
    assert [row["action"] for row in logged] == ["balloon.deliver", "balloon.undo"]


async def test_first_marks_wait_for_earlier_pending_submissions(api: AsgiApp, stack: AsyncExitStack) -> None:
    scene = await make_scene(api, stack)
    pending = await scene.contest.submit(1, 0)
    await scene.solve(0, 0)
    assert not (await scene.items())[0]["is_first_of_problem"]
    await scene.contest.judge(pending, Verdict.WA)
    await api.services.balloons.feed.catch_up()
    (item,) = await scene.items()
    assert item["is_first_of_problem"]
    assert item["is_first_of_contest"]


async def test_changed_verdict_withdraws_a_waiting_balloon_and_marks_a_delivered_one(
    api: AsgiApp, stack: AsyncExitStack
) -> None:
    scene = await make_scene(api, stack)
    waiting, delivered = await scene.solve(1, 0), await scene.solve(0, 0)
    await scene.act("deliver")
    for submission in (waiting, delivered):
        await scene.override(submission, Verdict.WA)
    (item,) = await scene.items()
    assert (item["participant"], item["state"], item["total"]) == ("p0", "collect", 0)
    assert (await scene.act("undo")).status_code == 409
    await scene.override(delivered, None)
    assert [item["state"] for item in await scene.items(state="delivered")] == ["delivered"]
    await scene.override(delivered, Verdict.WA)
    assert (await scene.act("collect")).status_code == 204
    assert (await scene.act("collect")).status_code == 404
    assert await scene.items() == []
    await scene.override(delivered, None)
    assert [item["state"] for item in await scene.items()] == ["waiting"]


async def test_balloons_follow_the_settings_and_the_participants(api: AsgiApp, stack: AsyncExitStack) -> None:
    scene = await make_scene(api, stack, balloons_enabled=False)
    await scene.solve(0, 0)
    await scene.solve(1, 0)
    assert await scene.items("judge") == []
    await scene.change(balloons_enabled=True)
    assert await scene.keys() == ["p0A", "p1A"]

    async def set_participant(**fields: Any) -> None:
        async def operation(tx: Tx) -> None:
            row = await participants.find(tx, scene.contest.participants[0])
            await jury.update_participant(tx, replace(row, **fields), actor="", reason="")

        await scene.contest.transact(operation)

    await set_participant(hidden=True)
    assert await scene.keys() == ["p1A"]
    assert (await scene.act("deliver")).status_code == 404
    await set_participant(hidden=False, kind=ParticipantKind.TEST)
    assert await scene.keys() == ["p1A"]
    await set_participant(kind=ParticipantKind.UNOFFICIAL)
    assert await scene.keys() == ["p0A", "p1A"]
    await scene.change(balloons_enabled=False)
    assert await scene.items() == []


@pytest.mark.parametrize(
    ("minimum", "shown"),
    [(None, ["p0A", "p0B", "p1A", "p0C"]), (0, ["p0A"]), (1, ["p0A", "p1A"]), (2, ["p0A", "p0B", "p1A"])],
)
async def test_balloons_of_the_freeze_follow_the_minimum_until_the_thaw(
    api: AsgiApp, stack: AsyncExitStack, minimum: int | None, shown: list[str]
) -> None:
    scene = await make_scene(api, stack, freeze_balloon_minimum=minimum)
    await scene.solve(0, 0)
    await api.store.clock.advance(250 * MINUTE_MS)
    for participant, problem in ((0, 1), (1, 0), (0, 2)):
        await scene.solve(participant, problem)
    items = await scene.items()
    everything = ["p0A", "p0B", "p1A", "p0C"]
    assert [item["participant"] + item["problem"] for item in items] == shown == await scene.keys(state="waiting")
    own = [item for item in items if item["participant"] == "p0"]
    assert {item["total"] for item in own} == {len(own)}
    marks = [item["participant"] + item["problem"] for item in items if item["is_first_of_problem"]]
    assert marks == (["p0A", "p0B", "p0C"] if minimum is None else ["p0A"])
    assert await scene.keys("judge") == everything
    for cell in set(everything) - set(shown):
        path = f"{cell[:2]}/{cell[2]}"
        hidden, missing = await scene.act("deliver", cell=path), await scene.act("deliver", cell="p2/A")
        assert (hidden.status_code, missing.status_code) == (404, 404)
        assert hidden.json()["detail"] == missing.json()["detail"].replace("p2/A", path)
        assert (await scene.act("deliver", "judge", cell=path)).status_code == 409
    await api.store.clock.advance(100 * MINUTE_MS)
    assert await scene.keys() == shown
    await scene.contest.transact(lambda tx: lifecycle.thaw(tx, scene.contest.contest_id, actor="", reason=""))
    assert await scene.keys() == everything


async def test_only_balloon_staff_and_the_jury_have_the_queue(api: AsgiApp, stack: AsyncExitStack) -> None:
    scene = await make_scene(api, stack)
    await scene.solve(0, 0)
    page = f"/contests/{scene.contest.contest_id}/balloons"
    expected = {"visitor": 401, "nobody": 403, "participant": 403, "print": 403}
    for who, status in expected.items():
        assert (await scene.clients[who].get(scene.path)).status_code == status, who
        assert (await scene.act("deliver", who)).status_code == status, who
        assert (await scene.clients[who].get(page)).status_code == (303 if who == "visitor" else 403), who
    assert await scene.keys("api_reader") == ["p0A"]
    assert (await scene.act("deliver", "api_reader")).status_code == 403
    for who in ("balloon", "judge"):
        assert (await scene.clients[who].get(page)).status_code == 200


async def test_page_delivers_without_a_script(api: AsgiApp, stack: AsyncExitStack) -> None:
    scene = await make_scene(api, stack, freeze_balloon_minimum=3)
    await scene.solve(0, 0)
    staff, page = scene.clients["balloon"], f"/contests/{scene.contest.contest_id}/balloons"
    text = (await staff.get(page)).text
    assert "Participant 0" in text
    assert "First in contest" in text
    assert f'data-live="/contests/{scene.contest.contest_id}/balloons/state?state=waiting"' in text
    form = {"participant": "p0", "label": "A"}
    done = await staff.post(page, data=form | {"action": "deliver"})
    assert (done.status_code, done.headers["Location"]) == (303, f"{page}?state=waiting")
    assert "Participant 0" not in (await staff.get(f"{page}/state")).text
    assert "delivered" in (await staff.get(page, params={"state": "all"})).text
    refused = await staff.post(page, data=form | {"action": "collect"}, params={"state": "all"})
    assert refused.status_code == 409
    assert "nothing to collect" in refused.text
    assert (await staff.post(page, data=form | {"action": "eat"})).status_code == 400


@pytest.mark.parametrize("phase", ["before", "running", "frozen", "ended"])
async def test_balloon_of_a_verdict_changes_only_what_its_viewers_may_see(
    api: AsgiApp, stack: AsyncExitStack, phase: str
) -> None:
    """With a minimum of none, the staff learns nothing of the freeze; nobody else learns anything, ever."""
    published = await publish_problem(api)
    settings = replace(SETTINGS, balloons_enabled=True, freeze_balloon_minimum=0)
    fixture = await make_fixture(published, stack, settings)
    paths = [f"/api/v1/contests/{SLUG}/balloons", f"/contests/{SLUG}/balloons/state?state=all"]
    await fixture.store.clock.advance(PHASES_MS[phase])
    before = await fixture.look(paths)
    assert {who: before[who, paths[0]][0] for who in VIEWERS} == dict.fromkeys(VIEWERS, 403) | {
        "visitor": 401,
        "balloon": 200,
        "jury": 200,
    }
    if phase == "before":
        return
    _, job_id = await fixture.submit("author")
    await published.finish(job_id)
    after = await fixture.look(paths)
    changed = {who for who, path in before if before[who, path] != after[who, path]}
    expected = {"jury", "balloon"} if phase == "running" else {"jury"} if phase == "frozen" else set()
    assert changed == expected
