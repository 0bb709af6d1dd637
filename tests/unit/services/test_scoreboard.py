"""Scoreboards in memory: equal to the stored ones after every change, and silent about verdicts since the freeze."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.contests import jury, lifecycle
from adjudge.contests.board import BoardRow
from adjudge.contests.live_board import BoardFilter
from adjudge.contests.load_board import load_board
from adjudge.domain.contest import ContestRole, ScoreboardVisibility
from adjudge.domain.verdict import Verdict
from adjudge.services.scoreboard_feed import BoardKey
from adjudge.services.viewer import VISITOR, Viewer
from adjudge.store import Tx
from adjudge.store.accounts import api_tokens
from adjudge.store.contests import commands, participants, queries
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.models import ContestGroupRow
from adjudge.store.contests.scoreboard import JURY, PUBLIC
from adjudge.store.contests.submissions import JuryDecision
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.contest_fixture import ContestFixture, icpc_settings, make_contest
from tests.support.store_harness import StoreHarness

MINUTE_MS = 60_000


@pytest.fixture
async def api(store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    """The application on each database in turn."""
    async with make_app(store, tmp_path) as api:
        yield api


class Scene:
    """A contest and clients of it."""

    def __init__(self, api: AsgiApp, contest: ContestFixture) -> None:
        self.api, self.contest = api, contest
        self.path = f"/api/v1/contests/{contest.contest_id}"

    async def token_of(self, user_id: str) -> str:
        secret = api_tokens.new_secret()
        token = api_tokens.NewApiToken(f"t-{secret[-20:]}", user_id, "test", secret, ("*",))
        await self.api.store.transact(lambda tx: api_tokens.insert(tx, token))
        return secret

    async def judge_token(self) -> str:
        user_id, secret = await self.api.user("contestant")
        await self.api.store.transact(
            lambda tx: commands.grant_roles(tx, self.contest.contest_id, [(user_id, ContestRole.JUDGE)], actor=user_id)
        )
        return secret

    async def get(self, path: str = "/scoreboard", token: str | None = None, **query: Any) -> httpx.Response:
        await self.api.services.scoreboards.feed.catch_up()
        async with self.api.client(token) as client:
            return await client.get(f"{self.path}{path}", params=query)

    async def advance(self, minutes: int) -> None:
        await self.api.store.clock.advance(minutes * MINUTE_MS)


async def make_scene(api: AsgiApp, **settings: Any) -> Scene:
    contest = await make_contest(api.store, people=4, settings=icpc_settings(**settings))
    return Scene(api, contest)


async def test_rows_are_ranked_and_have_an_etag_that_changes_with_them(api: AsgiApp) -> None:
    scene = await make_scene(api)
    await scene.advance(10)
    first = await scene.get()
    assert [row["rank"] for row in first.json()["rows"]] == [1, 1, 1, 1]
    assert [item["label"] for item in first.json()["problems"]] == ["A", "B", "C"]
    await scene.contest.judge(await scene.contest.submit(2, 0), Verdict.AC)
    second = await scene.get()
    rows = second.json()["rows"]
    assert (rows[0]["name"], rows[0]["rank"], rows[0]["solved"], rows[0]["penalty_sec"]) == ("Participant 2", 1, 1, 600)
    cell = {"attempts": 1, "pending": 0, "is_solved": True, "is_first": True, "time_sec": 600, "score": None}
    assert rows[0]["cells"][0] == cell
    assert [row["rank"] for row in rows] == [1, 2, 2, 2]
    assert second.headers["etag"] != first.headers["etag"]
    async with api.client(headers={"If-None-Match": second.headers["etag"]}) as client:
        assert (await client.get(f"{scene.path}/scoreboard")).status_code == 304
    window = (await scene.get(offset=1, limit=2)).json()
    assert [row["rank"] for row in window["rows"]] == [2, 2]
    assert window["total"] == 4


async def test_verdict_in_the_freeze_changes_no_public_byte(api: AsgiApp) -> None:
    scene = await make_scene(api)
    feed = api.services.scoreboards.feed
    jury_token = await scene.judge_token()
    own_token = await scene.token_of(scene.contest.users[scene.contest.participants[0]])
    await scene.advance(250)
    submission = await scene.contest.submit(0, 0)
    before = {path: await scene.get(path) for path in ("/scoreboard", "/awards", "/scoreboard.csv", "/results.tsv")}
    assert before["/scoreboard"].json()["rows"][0]["cells"][0]["pending"] == 1
    assert before["/scoreboard"].json()["frozen_min"] == 60
    stream = await api.services.scoreboards.stream(
        VISITOR, scene.contest.contest_id, is_jury=False, which=BoardFilter(), last_event_id=None
    )
    async with aclosing(stream):
        assert await anext(stream) == ": alive\n\n"
        waiting = asyncio.ensure_future(anext(stream))
        await scene.contest.judge(submission, Verdict.AC)
        await feed.catch_up()
        after = {path: await scene.get(path) for path in before}
        for path, response in before.items():
            assert after[path].content == response.content, path
            assert after[path].headers.get("etag") == response.headers.get("etag"), path
        assert not waiting.done(), "no event"
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    seen = (await scene.get(token=jury_token, view="jury")).json()
    assert seen["rows"][0]["solved"] == 1
    assert (await scene.get(view="jury")).status_code == 403
    own = (await scene.get(token=own_token)).json()["own_row"]
    assert own["cells"][0]["is_solved"]
    assert (own["rank"], own["cells"][0]["is_first"]) == (None, False)
    assert (await scene.get("/resolver")).status_code == 404
    assert (await scene.get("/statistics")).status_code == 404
    steps = (await scene.get("/resolver", token=jury_token)).json()["steps"]
    assert [step["kind"] for step in steps] == ["reveal", "award"]
    await scene.advance(60)
    await scene.contest.transact(lambda tx: lifecycle.thaw(tx, scene.contest.contest_id, actor="x", reason=""))
    thawed = (await scene.get()).json()
    assert (thawed["rows"][0]["solved"], thawed["frozen_min"]) == (1, None)
    assert (await scene.get("/statistics")).json()["problems"][0]["solved"] == 1
    assert (await scene.get("/resolver")).status_code == 200


async def test_nothing_is_shown_before_the_start_or_if_hidden(api: AsgiApp, store: StoreHarness) -> None:
    hidden = await make_scene(api, scoreboard_visibility=ScoreboardVisibility.HIDDEN)
    own_token = await hidden.token_of(hidden.contest.users[hidden.contest.participants[1]])
    await hidden.advance(5)
    await hidden.contest.judge(await hidden.contest.submit(1, 0), Verdict.AC)
    assert (await hidden.get()).status_code == 404
    assert (await hidden.get("/awards.json")).status_code == 404
    found = (await hidden.get(token=own_token)).json()
    assert (found["is_hidden"], found["rows"], found["own_row"]["solved"]) == (True, [], 1)
    later = await make_scene(api, starts_at=store.clock.now_us + 3_600_000_000)
    found = (await later.get()).json()
    assert (found["rows"], found["problems"], found["total"]) == ([], [], 0)


async def test_stream_sends_one_row_and_resumes(api: AsgiApp) -> None:
    scene = await make_scene(api)
    await scene.advance(10)
    start = (await scene.get()).json()["event_id"]
    service = api.services.scoreboards

    async def read(last: str | None, count: int) -> list[str]:
        stream = await service.stream(
            VISITOR, scene.contest.contest_id, is_jury=False, which=BoardFilter(), last_event_id=last
        )
        async with aclosing(stream):
            return [text for _ in range(count) if (text := await asyncio.wait_for(anext(stream), 20))]

    submission = await scene.contest.submit(3, 1)
    await service.feed.catch_up()
    (replayed, beat) = await read(start, 2)
    assert beat.startswith(":")
    event_id = replayed.split("\n")[0].removeprefix("id: ")
    stream = await service.stream(
        VISITOR, scene.contest.contest_id, is_jury=False, which=BoardFilter(), last_event_id=event_id
    )
    async with aclosing(stream):
        assert (await anext(stream)).startswith(":")
        await scene.contest.judge(submission, Verdict.AC)
        live = await asyncio.wait_for(anext(stream), 20)
    assert "event: row\n" in live
    event = json.loads(live.split("data: ")[1])
    assert (event["position"], event["row"]["rank"], event["previous_keys"]) == (0, 1, [0, 0, 0])
    assert event["row"] == (await scene.get()).json()["rows"][0]
    assert await read("999-999", 1) == ["event: reset\ndata: {}\n\n"], "an entry that does not exist"


async def toggle_ignored(contest: ContestFixture, submission_id: str) -> None:
    async def change(tx: Tx) -> None:
        row = await contest_submissions.find(tx, submission_id)
        decision = JuryDecision(is_ignored=row.ignored_at is None)
        await jury.decide(tx, submission_id, decision, version=row.version, actor="x", reason="")

    await contest.transact(change)


async def set_extra(contest: ContestFixture, participant_id: str, extra_us: int) -> None:
    rows = [(participant_id, None, extra_us)]
    await contest.transact(lambda tx: jury.set_clocks(tx, contest.contest_id, rows, actor="x", reason=""))


async def stored_rows(contest: ContestFixture, view: str) -> tuple[BoardRow, ...]:
    row = await contest.contest()
    loaded = await contest.store.database.read(lambda tx: load_board(tx, row, view))
    return loaded.board.rows


async def test_board_in_memory_always_equals_the_stored_one(api: AsgiApp) -> None:
    scene = await make_scene(api)
    contest, feed = scene.contest, api.services.scoreboards.feed
    keys = [BoardKey(contest.contest_id, view, is_complete=True) for view in (JURY, PUBLIC)]
    for key in keys:
        await feed.board(key)
    chance, open_submissions = random.Random(7), list[str]()
    await scene.advance(200)
    for step in range(60):
        action = chance.choice(["submit", "submit", "judge", "judge", "ignore", "extra", "advance"])
        if action == "submit":
            open_submissions.append(await contest.submit(chance.randrange(4), chance.randrange(3)))
        elif action == "judge" and open_submissions:
            submission = open_submissions.pop(chance.randrange(len(open_submissions)))
            await contest.judge(submission, chance.choice([Verdict.AC, Verdict.WA, Verdict.CE]))
        elif action == "ignore" and contest.jobs:
            await toggle_ignored(contest, chance.choice(sorted(contest.jobs)))
        elif action == "extra":
            await set_extra(contest, chance.choice(contest.participants), chance.randrange(10) * 60_000_000)
        elif action == "advance":
            await scene.advance(chance.randrange(5))
        if step == 40:
            await contest.transact(lambda tx: lifecycle.freeze_now(tx, contest.contest_id, actor="x", reason=""))
        await feed.catch_up()
        for key in keys:
            held = await feed.board(key)
            assert {item.participant.id: (item.keys, item.cells) for item in held.rows()} == {
                item.participant.id: (item.keys, item.cells) for item in await stored_rows(contest, key.view)
            }, (step, action, key.view)


async def test_edited_awards_are_kept_and_checked(api: AsgiApp) -> None:
    scene = await make_scene(api)
    await scene.advance(10)
    await scene.contest.judge(await scene.contest.submit(0, 0), Verdict.AC)
    token = await scene.judge_token()
    winner, other = scene.contest.participants[0], scene.contest.participants[1]
    await api.services.scoreboards.feed.catch_up()
    async with api.client(token) as client:
        award = {"id": "best-newcomer", "citation": "Best newcomer", "participant_ids": [other]}
        saved = await client.put(f"{scene.path}/awards", json={"items": [award]})
        assert saved.status_code == 200, saved.text
        found = {item["id"]: item for item in saved.json()["items"]}
        assert found["best-newcomer"]["is_managed"] is False
        assert found["winner"]["participant_ids"] == [winner]
        wrong = await client.put(f"{scene.path}/awards", json={"items": [award | {"participant_ids": ["nobody"]}]})
        assert (wrong.status_code, "items[0].participant_ids" in wrong.json()["detail"]) == (400, True)
    public = {item["id"] for item in (await scene.get("/awards")).json()["items"]}
    assert "best-newcomer" not in public, "edited awards are for the final results"
    async with api.client() as client:
        assert (await client.put(f"{scene.path}/awards", json={"items": []})).status_code == 401


async def test_exports_and_cells_show_what_the_viewer_may_see(api: AsgiApp) -> None:
    scene = await make_scene(api)
    await scene.advance(10)
    await scene.contest.judge(await scene.contest.submit(0, 0), Verdict.AC)
    token, person = await scene.judge_token(), scene.contest.participants[0]
    document = json.loads((await scene.get("/scoreboard.json")).text)
    assert document["rows"][0]["score"] == {"num_solved": 1, "total_time": 10, "time": 10}
    assert "Participant 0" in (await scene.get("/scoreboard.csv")).text
    page = await scene.get("/scoreboard.html")
    assert "★1 (10)" in page.text
    assert "attachment" in page.headers["content-disposition"]
    assert (await scene.get("/results.tsv")).text.startswith("results\t1\n")
    (seen,) = (await scene.get(f"/scoreboard/cells/{person}/A")).json()["items"]
    assert (seen["verdict"], seen["is_accepted"], seen["may_open"]) == (None, True, False)
    (full,) = (await scene.get(f"/scoreboard/cells/{person}/A", token=token)).json()["items"]
    assert (full["verdict"], full["may_open"]) == ("AC", True)
    assert (await scene.get(f"/scoreboard/cells/{person}/Z")).status_code == 404


async def open_later(contest: ContestFixture, label: str, opens_ct_us: int) -> None:
    async def change(tx: Tx) -> None:
        rows = [row.problem for row in await queries.problems(tx, contest.contest_id)]
        listed = [replace(item, opens_ct_us=opens_ct_us) if item.label == label else item for item in rows]
        await lifecycle.set_problems(tx, contest.contest_id, listed, actor="x", reason="")

    await contest.transact(change)


async def test_names_of_problems_are_for_viewers_of_the_problems(api: AsgiApp) -> None:
    scene = await make_scene(api)
    await open_later(scene.contest, "C", 100 * 60_000_000)
    jury_token = await scene.judge_token()
    own_token = await scene.token_of(scene.contest.users[scene.contest.participants[0]])

    async def titles(token: str | None) -> list[str | None]:
        found = [item["title"] for item in (await scene.get(token=token)).json()["problems"]]
        page = (await scene.get("/scoreboard.html", token=token)).text
        assert page.count('title="A problem"') == len([item for item in found if item])
        return found

    await scene.advance(10)
    assert await titles(None) == [None, None, None]
    assert await titles(own_token) == ["A problem", "A problem", None], "C opens later"
    assert await titles(jury_token) == ["A problem"] * 3
    await scene.advance(100)
    assert await titles(own_token) == ["A problem"] * 3
    await scene.advance(300)
    await scene.contest.transact(lambda tx: lifecycle.thaw(tx, scene.contest.contest_id, actor="x", reason=""))
    assert await titles(None) == [None, None, None], "not published after the contest either"
    for token, name in ((None, ""), (own_token, "A problem"), (jury_token, "A problem")):
        problems = (await scene.get("/resolver", token=token)).json()["problems"]
        assert [item["name"] for item in problems] == [name] * 3


async def test_hidden_group_is_in_no_row_and_no_filter_of_the_public(api: AsgiApp) -> None:
    scene = await make_scene(api)
    contest_id, person = scene.contest.contest_id, scene.contest.participants[0]
    groups = [
        ContestGroupRow("g-all", contest_id, "all", "All"),
        ContestGroupRow("g-staff", contest_id, "staff", "Staff", hidden=True),
    ]

    async def change(tx: Tx) -> None:
        await participants.upsert_groups(tx, groups)
        await participants.set_groups(tx, [person], [("g-all", person), ("g-staff", person)])

    await scene.contest.transact(change)
    jury_token = await scene.judge_token()
    own_token = await scene.token_of(scene.contest.users[person])
    await scene.advance(250)  # in the freeze the own row is read from the complete board
    for token in (None, own_token, jury_token):
        found = await scene.get(token=token)
        assert "g-all" in found.text
        assert "g-staff" not in found.text
    assert "g-staff" in (await scene.get(token=jury_token, view="jury")).text
    assert (await scene.get(group="g-staff")).status_code == 400
    assert (await scene.get("/scoreboard/events", group="g-staff")).status_code == 400


async def test_resuming_ignores_entries_of_the_other_view_and_repeats_the_own_row(
    api: AsgiApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = await make_scene(api)
    contest_id, person = scene.contest.contest_id, scene.contest.participants[0]
    service = api.services.scoreboards
    own = replace(VISITOR, user_id=scene.contest.users[person])
    await scene.advance(250)
    submissions = [await scene.contest.submit(0, index) for index in range(3)]
    start = (await scene.get()).json()["event_id"]
    for submission in submissions:
        await scene.contest.judge(submission, Verdict.AC)
    await service.feed.catch_up()
    jury = await service.feed.board(BoardKey(contest_id, JURY, is_complete=True))

    async def read(viewer: Viewer, last: str) -> str:
        stream = await service.stream(viewer, contest_id, is_jury=False, which=BoardFilter(), last_event_id=last)
        async with aclosing(stream):
            return await asyncio.wait_for(anext(stream), 20)

    monkeypatch.setattr("adjudge.services.scoreboard._REPLAY_LIMIT", 2)
    assert await read(VISITOR, start) == ": alive\n\n", "verdicts since the freeze are not counted"
    assert await read(VISITOR, str(jury.last)) == await read(VISITOR, "999-999"), "an id does not tell of a verdict"
    event = await read(own, start)
    assert event.startswith("event: own\n")
    assert json.loads(event.split("data: ")[1])["solved"] == 3
