"""Virtual runs: their participants see the contest replayed by their own clock, everybody else the final scoreboard."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.contests import jury, lifecycle, scoreboard
from adjudge.contests.live_board import BoardFilter, LiveBoard
from adjudge.domain.contest import ContestRole, ParticipantKind, ScoreboardVisibility
from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict
from adjudge.services.scoreboard_replay import ReplayCache
from adjudge.services.viewer import VISITOR, Viewer
from adjudge.store import Tx
from adjudge.store.contests import commands, participants
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.models import NewParticipant
from adjudge.store.contests.scoreboard import JURY
from adjudge.store.contests.submissions import JuryDecision
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.contest_fixture import ContestFixture, icpc_settings, make_contest
from tests.support.store_harness import StoreHarness

MINUTE_MS = 60_000
OWN = "Own run"


@pytest.fixture
async def api(store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    """The application on each database in turn."""
    async with make_app(store, tmp_path) as api:
        yield api


class Past:
    """A contest that is over, and a virtual run of a user who did not take part."""

    def __init__(self, api: AsgiApp, contest: ContestFixture, user_id: str, token: str) -> None:
        self.api, self.contest, self.user_id, self.token = api, contest, user_id, token
        self.path = f"/api/v1/contests/{contest.contest_id}"
        self.run_id = ""

    @property
    def viewer(self) -> Viewer:
        return replace(VISITOR, user_id=self.user_id)

    async def start_run(self) -> None:
        self.run_id = new_id()
        new = NewParticipant(
            self.run_id,
            self.contest.contest_id,
            "own-v1",
            OWN,
            kind=ParticipantKind.VIRTUAL,
            user_id=self.user_id,
            run_no=1,
            started_at=self.api.store.clock.now_us,
        )

        async def add(tx: Tx) -> None:
            await participants.insert(tx, [new])
            await scoreboard.reset(tx, self.contest.contest_id)  # open scoreboards need not wait

        await self.contest.transact(add)
        self.contest.users[self.run_id] = self.user_id
        self.contest.participants.append(self.run_id)

    async def submit_own(self, problem: int, verdict: Verdict) -> None:
        submission = await self.contest.submit(len(self.contest.participants) - 1, problem)
        await self.contest.judge(submission, verdict)

    async def get(self, path: str = "/scoreboard", *, token: str | None = None, **query: Any) -> httpx.Response:
        await self.api.services.scoreboards.feed.catch_up()
        async with self.api.client(token) as client:
            return await client.get(f"{self.path}{path}", params=query)

    async def own(self, path: str = "/scoreboard", **query: Any) -> Any:
        response = await self.get(path, token=self.token, **query)
        assert response.status_code == 200, response.text
        return response.json()

    async def stream(self, last: str | None) -> AsyncGenerator[str, None]:
        return await self.api.services.scoreboards.stream(
            self.viewer, self.contest.contest_id, is_jury=False, which=BoardFilter(), last_event_id=last
        )

    async def advance(self, minutes: int) -> None:
        await self.api.store.clock.advance(minutes * MINUTE_MS)


async def make_past(api: AsgiApp, **settings: Any) -> Past:
    """Participant 0 solves A after 10 and B after 50 minutes, 1 A after 30, 2 C after 270: in the freeze."""
    contest = await make_contest(api.store, people=3, settings=icpc_settings(**settings))
    user_id, token = await api.user("contestant")
    past = Past(api, contest, user_id, token)
    for minutes, person, problem in ((10, 0, 0), (20, 1, 0), (20, 0, 1), (220, 2, 2)):
        await past.advance(minutes)
        await contest.judge(await contest.submit(person, problem), Verdict.AC)
    await past.advance(60)
    await contest.transact(lambda tx: lifecycle.thaw(tx, contest.contest_id, actor="x", reason=""))
    return past


def ranks(found: dict[str, Any]) -> list[tuple[str, int | None, int]]:
    return [(row["name"].removeprefix("Participant "), row["rank"], row["solved"]) for row in found["rows"]]


async def test_rows_are_those_of_the_own_time_and_the_own_row_is_ranked(api: AsgiApp) -> None:
    past = await make_past(api)
    before = (await past.get()).content
    await past.start_run()
    at_start = await past.own()
    assert (at_start["replay_sec"], at_start["phase"], at_start["view"]) == (0, "running", "public")
    assert ranks(at_start) == [(OWN, 1, 0), ("0", 1, 0), ("1", 1, 0), ("2", 1, 0)]
    await past.advance(20)
    await past.submit_own(0, Verdict.AC)
    await past.advance(5)
    found = await past.own()
    assert ranks(found) == [("0", 1, 1), (OWN, 2, 1), ("1", 3, 0), ("2", 3, 0)]
    assert (found["own_row"]["rank"], found["own_row"]["name"], found["replay_sec"]) == (2, OWN, 25 * 60)
    assert [row["cells"][0]["is_first"] for row in found["rows"]] == [True, False, False, False]
    await past.advance(250)
    frozen = await past.own()
    assert ranks(frozen) == [("0", 1, 2), (OWN, 2, 1), ("1", 3, 1), ("2", 4, 1)], "no freeze in a replay"
    assert (frozen["frozen_min"], frozen["is_final"]) == (None, False)
    others = json.loads((await past.get()).content)
    assert others["replay_sec"] is None
    assert [row for row in others["rows"] if row["kind"] != "virtual"] == json.loads(before)["rows"]
    assert (OWN, None, 1) in ranks(others), "unranked for everybody else"


async def test_after_the_end_the_final_rows_and_the_rank_that_the_run_would_have_had(api: AsgiApp) -> None:
    past = await make_past(api)
    await past.start_run()
    await past.advance(20)
    await past.submit_own(0, Verdict.AC)
    await past.advance(281)
    found = await past.own()
    assert (found["replay_sec"], found["phase"], found["view"]) == (None, "thawed", JURY)
    assert ranks(found) == [("0", 1, 2), (OWN, None, 1), ("1", 2, 1), ("2", 3, 1)]
    assert (found["own_row"]["name"], found["own_row"]["rank"]) == (OWN, 2)


async def test_exports_cells_and_awards_are_those_of_the_replay(api: AsgiApp) -> None:
    past = await make_past(api)
    await past.start_run()
    await past.advance(20)
    await past.submit_own(1, Verdict.AC)
    document = await past.own("/scoreboard.json")
    solved = {row["team_id"]: row["score"]["num_solved"] for row in document["rows"]}
    people = past.contest.participants
    codes = {row["id"]: row["code"] for row in await api.store.rows("SELECT id, code FROM participants")}
    assert [solved[codes[item]] for item in people] == [1, 0, 0, 1]
    assert (document["state"]["ended"], document["contest_time"]) == (None, "0:20:00.000")
    assert OWN not in (await past.get("/results.tsv", token=past.token)).text
    winners = {item["id"]: item["participant_ids"] for item in (await past.own("/awards"))["items"]}
    assert winners["winner"] == [people[0]]
    assert (await past.own(f"/scoreboard/cells/{people[1]}/A"))["items"] == []
    await past.advance(20)
    assert len((await past.own(f"/scoreboard/cells/{people[1]}/A"))["items"]) == 1
    assert len((await past.get(f"/scoreboard/cells/{people[2]}/C")).json()["items"]) == 1, "all for others"


async def test_replay_is_for_the_participant_of_the_run_and_as_visible_as_the_scoreboard_was(api: AsgiApp) -> None:
    past = await make_past(api)
    await past.start_run()
    await past.advance(20)
    _, other = await api.user("contestant")
    assert (await past.get(token=other)).json()["replay_sec"] is None
    assert (await past.get(token=past.token, view="jury")).status_code == 403
    await past.contest.transact(
        lambda tx: commands.grant_roles(
            tx, past.contest.contest_id, [(past.user_id, ContestRole.JUDGE)], actor=past.user_id
        )
    )
    assert (await past.own())["replay_sec"] == 20 * 60, "also for a judge who takes part virtually"
    jury = await past.own(view="jury")
    assert (jury["replay_sec"], jury["rows"][0]["solved"]) == (None, 2)
    hidden = await make_past(api, scoreboard_visibility=ScoreboardVisibility.HIDDEN)
    await hidden.start_run()
    found = await hidden.own()
    assert (found["is_hidden"], found["rows"], found["own_row"]["name"]) == (True, [], OWN)


async def read(stream: AsyncGenerator[str, None], wanted: str) -> dict[str, Any]:
    """The next event of a kind, with its id."""
    while True:
        text = await asyncio.wait_for(anext(stream), 20)
        if f"event: {wanted}\n" in text:
            fields = dict(line.split(": ", 1) for line in text.strip().split("\n"))
            data: dict[str, Any] = json.loads(fields["data"])
            return data | {"id": fields.get("id")}


async def test_stream_sends_rows_as_the_time_passes_and_the_own_row(api: AsgiApp) -> None:
    past = await make_past(api)
    await past.start_run()
    await past.advance(9)
    start = (await past.own())["event_id"]
    await past.advance(25)
    async with aclosing(await past.stream(start)) as stream:
        own = await read(stream, "row")
        assert (own["row"]["name"], own["previous_keys"], own["id"]) == (OWN, None, None)
        first, second = await read(stream, "row"), await read(stream, "row")
        assert [(item["row"]["name"], item["row"]["rank"], item["position"]) for item in (first, second)] == [
            ("Participant 0", 1, 0),
            ("Participant 1", 2, 1),
        ]
        assert second["previous_keys"] == [0, 0, 0]
        await past.submit_own(0, Verdict.AC)
        own = await read(stream, "row")
        while not own["row"]["solved"]:
            own = await read(stream, "row")
        assert (own["row"]["name"], own["row"]["rank"], own["position"]) == (OWN, 3, 2)
    async with aclosing(await past.stream(second["id"])) as stream:
        assert (await read(stream, "row"))["row"]["name"] == OWN
        assert (await asyncio.wait_for(anext(stream), 20)).startswith(":"), "nothing is repeated"
    for unknown in ("1-1", "0-0", (await past.get()).json()["event_id"]):
        async with aclosing(await past.stream(unknown)) as stream:
            assert await asyncio.wait_for(anext(stream), 20) == "event: reset\ndata: {}\n\n"


async def test_stream_waits_for_the_next_event_and_ends_with_the_run(api: AsgiApp) -> None:
    past = await make_past(api)
    await past.start_run()
    await api.store.clock.advance(10 * MINUTE_MS - 300)
    async with aclosing(await past.stream(None)) as stream:
        event = await read(stream, "row")
        assert (event["row"]["name"], event["row"]["solved"]) == ("Participant 0", 1)
    await api.store.clock.advance(290 * MINUTE_MS)
    async with aclosing(await past.stream(None)) as stream:
        await read(stream, "reset")


async def test_changed_result_is_replayed_and_resets_streams(api: AsgiApp) -> None:
    past = await make_past(api)
    await past.start_run()
    await past.advance(45)
    assert ranks(await past.own()) == [("0", 1, 1), ("1", 2, 1), (OWN, 3, 0), ("2", 3, 0)]
    start = (await past.own())["event_id"]

    async def ignore(tx: Tx) -> None:
        row = await contest_submissions.find(tx, next(iter(past.contest.jobs)))
        await jury.decide(tx, row.submission_id, JuryDecision(is_ignored=True), version=1, actor="x", reason="")

    async with aclosing(await past.stream(start)) as stream:
        assert (await read(stream, "row"))["row"]["name"] == OWN
        await past.contest.transact(ignore)
        assert ranks(await past.own()) == [("1", 1, 1), (OWN, 2, 0), ("0", 2, 0), ("2", 2, 0)]
        await past.submit_own(2, Verdict.WA)
        await read(stream, "reset")


async def test_too_many_streams_tell_their_readers_to_read_again(api: AsgiApp, monkeypatch: pytest.MonkeyPatch) -> None:
    past = await make_past(api)
    await past.start_run()
    monkeypatch.setattr("adjudge.services.scoreboard_replay._MAX_STREAM_ROWS", 4)
    monkeypatch.setattr("adjudge.services.scoreboard_replay._REREAD_SEC", 0)
    async with aclosing(await past.stream(None)) as one, aclosing(await past.stream(None)) as other:
        assert (await anext(one)).startswith(":")
        assert (await anext(other)).startswith(":")
        assert await anext(other) == "event: reset\ndata: {}\n\n"
    async with aclosing(await past.stream(None)) as again:
        assert (await anext(again)).startswith(":")
        await past.advance(10)
        assert (await read(again, "row"))["row"]["name"] == "Participant 0"


async def test_histories_of_other_contests_are_dropped(api: AsgiApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjudge.services.scoreboard_replay._MAX_EVENTS", 1)
    loads = list[str]()
    known = ReplayCache._read

    async def counted(self: ReplayCache, contest_id: str, final: LiveBoard) -> Any:
        loads.append(contest_id)
        return await known(self, contest_id, final)

    monkeypatch.setattr(ReplayCache, "_read", counted)
    one = await make_past(api)
    other = await make_past(api, starts_at=api.store.clock.now_us)
    await one.start_run()
    await other.start_run()
    for past in (one, one, other, one):
        await past.own()
    assert loads == [item.contest.contest_id for item in (one, other, one)]
