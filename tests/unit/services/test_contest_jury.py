"""Decisions of the jury about submissions, seen on the scoreboard, on each database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.domain.verdict import Verdict
from adjudge.store.contests import queries
from adjudge.store.ops import audit_log
from tests.support.asgi_app import make_app
from tests.support.contest_app import API, ContestApp, open_contest, succeeded
from tests.support.published_problem import OPEN_GATE, publish_problem
from tests.support.store_harness import StoreHarness
from tests.unit.services.test_login import PASSWORD, add_user, log_in

JURY = f"{API}/spring/jury/submissions"


@pytest.fixture
async def contest(store: StoreHarness, tmp_path: Path) -> AsyncIterator[ContestApp]:
    """A contest that starts in an hour, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api, open_contest(await publish_problem(api)) as found:
        yield found


async def judged(contest: ContestApp, client: httpx.AsyncClient, verdict: Verdict) -> None:
    made = await succeeded(await contest.submit(client))
    await contest.published.finish(made["job_id"], verdict)


async def wait_solved(contest: ContestApp, count: int) -> None:
    """Wait until the only participant has solved so many problems on the jury's scoreboard, which follows the log."""
    async with asyncio.timeout(30):
        while True:
            answer = await contest.organiser.get(f"{API}/spring/scoreboard", params={"view": "jury"})
            board = await succeeded(answer)
            if board["rows"][0]["solved"] == count:
                return
            await asyncio.sleep(0.02)


async def decide(contest: ContestApp, action: str, number: int = 1, **body: Any) -> dict[str, Any]:
    made: dict[str, Any] = await succeeded(await contest.organiser.post(f"{JURY}/{number}:{action}", json=body))
    return made


async def test_override_ignore_and_their_reversal_change_the_scoreboard(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as team:
        await judged(contest, team, Verdict.WA)
    await wait_solved(contest, 0)
    changed = await decide(contest, "override", verdict="AC", reason="format accepted", confirmed=True)
    assert (changed["override_verdict"], changed["verdict"], changed["problem"]) == ("AC", "WA", "A")
    await wait_solved(contest, 1)
    await decide(contest, "ignore", reason="wrong machine")
    await wait_solved(contest, 0)
    await decide(contest, "ignore", is_ignored=False, reason="right machine after all")
    await wait_solved(contest, 1)
    await decide(contest, "override", verdict=None, reason="taken back", confirmed=True)
    await wait_solved(contest, 0)


async def test_verdict_counts_after_verification_where_it_is_required(contest: ContestApp) -> None:
    await contest.change(verify_required=True)
    await contest.advance_hours(1)
    async with contest.participant() as team:
        waiting = await succeeded(await contest.submit(team))
        refused = await contest.organiser.post(f"{JURY}/1:verify", json={"verdict": "AC"})
        assert refused.status_code == 400
        await contest.published.finish(waiting["job_id"], Verdict.AC)
    await wait_solved(contest, 0)
    listed = await succeeded(await contest.organiser.get(JURY, params={"unverified": True}))
    assert [item["number"] for item in listed["items"]] == [1]
    assert (await contest.organiser.post(f"{JURY}/1:verify", json={})).status_code == 400
    changed = await contest.organiser.post(f"{JURY}/1:verify", json={"verdict": "WA"})
    assert (changed.status_code, "it is AC now, not WA" in changed.json()["detail"]) == (409, True)
    await wait_solved(contest, 0)
    await decide(contest, "verify", verdict="AC")
    await wait_solved(contest, 1)
    assert (await succeeded(await contest.organiser.get(JURY, params={"unverified": True})))["items"] == []
    await decide(contest, "verify", verdict=None)
    await wait_solved(contest, 0)


async def test_late_submission_counts_when_it_is_made_official(contest: ContestApp) -> None:
    await contest.change(late_policy="unofficial")
    async with contest.participant() as team:
        await contest.advance_hours(6.5)
        await judged(contest, team, Verdict.AC)
    await wait_solved(contest, 0)
    await decide(contest, "make-official", reason="network outage")
    await wait_solved(contest, 1)


async def test_decisions_are_for_the_jury_and_need_a_reason(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as team:
        await judged(contest, team, Verdict.WA)
        assert (await team.get(JURY)).status_code == 403
        forbidden = await team.post(f"{JURY}/1:override", json={"verdict": "AC", "reason": "please"})
        assert forbidden.status_code == 403
    without = await contest.organiser.post(f"{JURY}/1:ignore", json={"reason": " "})
    assert without.status_code == 400
    assert without.json()["detail"].startswith("reason")
    assert (await contest.organiser.post(f"{JURY}/99:verify", json={"verdict": "AC"})).status_code == 404
    pages = await succeeded(await contest.organiser.get(JURY, params={"problem": "A", "verdict": "WA"}))
    assert [item["number"] for item in pages["items"]] == [1]
    assert (await contest.organiser.get(JURY, params={"problem": "Z"})).status_code == 404


async def numbers(contest: ContestApp, **wanted: Any) -> list[int]:
    found = await succeeded(await contest.organiser.get(JURY, params=wanted))
    return [item["number"] for item in found["items"]]


async def test_list_is_filtered_by_everything_a_jury_asks_for(contest: ContestApp) -> None:
    await contest.change(late_policy="unofficial")
    await contest.advance_hours(1)
    async with contest.participant() as first, contest.participant() as second:
        await judged(contest, first, Verdict.WA)
        await judged(contest, second, Verdict.AC)
        await succeeded(await contest.submit(first, language="python"))
        await contest.advance_hours(5.5)
        await succeeded(await contest.submit(second))
    assert await numbers(contest) == [4, 3, 2, 1]
    await decide(contest, "ignore", reason="wrong machine")
    assert await numbers(contest, late=True) == [4]
    assert await numbers(contest, waiting=True) == [4, 3]
    assert await numbers(contest, ignored=True) == [1]
    assert await numbers(contest, unverified=True) == [2]
    assert await numbers(contest, verdict="AC") == [2]
    assert await numbers(contest, language="python") == [3]
    listed = await succeeded(await contest.organiser.get(JURY, params={"limit": 2}))
    assert [item["is_late"] for item in listed["items"]] == [True, False]
    assert listed["items"][1]["time_sec"] == 0
    code = listed["items"][0]["participant"]
    assert await numbers(contest, participant=code) == [4, 2]
    rest = await succeeded(await contest.organiser.get(JURY, params={"limit": 2, "cursor": listed["next"]}))
    assert ([item["number"] for item in rest["items"]], rest["next"]) == ([2, 1], None)
    for wrong in ({"participant": "nobody"}, {"problem": "Z"}):
        assert (await contest.organiser.get(JURY, params=wrong)).status_code == 404
    assert (await contest.organiser.get(JURY, params={"language": "nothing"})).status_code == 400


async def test_detail_shows_the_decisions_with_actor_and_reason(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as team:
        await judged(contest, team, Verdict.WA)
        await judged(contest, team, Verdict.WA)
        assert (await team.get(f"{JURY}/2")).status_code == 403
    await decide(contest, "override", 2, verdict="AC", reason="format accepted", confirmed=True)
    found = await succeeded(await contest.organiser.get(f"{JURY}/2"))
    assert (found["submission"]["number"], found["previous"]) == (2, 1)
    (entry,) = found["log"]
    assert (entry["action"], entry["reason"]) == ("contest_submission.decide", "format accepted")
    assert entry["actor_id"] == contest.published.setter_id
    assert entry["details"]["override_verdict"] == "AC"
    assert (await contest.organiser.get(f"{JURY}/3")).status_code == 404


async def test_override_needs_a_confirmation(contest: ContestApp) -> None:
    api = contest.published.api
    await contest.advance_hours(1)
    async with contest.participant() as team:
        await judged(contest, team, Verdict.WA)
    body = {"verdict": "AC", "reason": "format accepted"}
    path = f"{JURY}/1:override"
    refused = await contest.organiser.post(path, json=body)
    assert (refused.status_code, refused.json()["code"]) == (403, "REAUTHENTICATION_REQUIRED")
    user_id = await add_user(api, "ada")
    grant = {"user": user_id, "role": "judge"}
    await succeeded(await contest.organiser.post(f"{API}/spring/roles", json=grant))
    async with api.client() as browser:
        browser.headers["X-CSRF-Token"] = (await log_in(browser))["csrf_token"]
        await succeeded(await browser.post(path, json=body))
        await api.store.clock.advance(11 * 60_000)
        late = await browser.post(path, json=body)
        assert late.json()["code"] == "REAUTHENTICATION_REQUIRED", "the login was too long ago"
        stated = await browser.post(path, json=body | {"confirmed": True})
        assert stated.json()["code"] == "REAUTHENTICATION_REQUIRED", "a session needs more than a statement"
        wrong = await browser.post(path, json=body | {"password": "not the password"})
        assert wrong.json()["code"] == "LOGIN_FAILED"
        await succeeded(await browser.post(path, json=body | {"password": PASSWORD}))
        token = await succeeded(await browser.post("/api/v1/me/tokens", json={"name": "a", "scopes": ["contest:join"]}))
    async with api.client(token["secret"]) as narrow:
        answer = await narrow.post(path, json=body | {"confirmed": True})
        assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN")


async def test_added_penalty_changes_the_ranking_and_is_logged(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as first, contest.participant() as second:
        await judged(contest, first, Verdict.AC)
        await judged(contest, second, Verdict.AC)
        items = (await succeeded(await contest.organiser.get(JURY)))["items"]
        codes = [item["participant"] for item in reversed(items)]
        path = f"{API}/spring/jury/participants/{codes[0]}:adjust-penalty"
        forbidden = await first.post(path, json={"penalty_sec": -60, "reason": "please", "confirmed": True})
        assert forbidden.status_code == 403
    body = {"penalty_sec": 1200, "reason": "late to the start"}
    assert (await contest.organiser.post(path, json=body)).json()["code"] == "REAUTHENTICATION_REQUIRED"
    made = await succeeded(await contest.organiser.post(path, json=body | {"confirmed": True}))
    assert made["penalty_sec"] == 1200
    async with asyncio.timeout(30):
        while True:
            board = await succeeded(await contest.organiser.get(f"{API}/spring/scoreboard", params={"view": "jury"}))
            if [row["rank"] for row in board["rows"]] == [1, 2]:
                break
            await asyncio.sleep(0.02)
    assert board["rows"][1]["participant_id"] == items[1]["participant_id"]
    row = await contest.published.api.store.row("SELECT reason FROM audit_log WHERE action = 'participant.update'")
    assert row["reason"] == "late to the start"


async def test_rejudge_of_one_submission_by_a_judge_of_the_contest(contest: ContestApp) -> None:
    api = contest.published.api
    await contest.advance_hours(1)
    async with contest.participant() as team:
        await judged(contest, team, Verdict.WA)
        await judged(contest, team, Verdict.WA)
    user_id, secret = await api.user("contestant")
    await succeeded(await contest.organiser.post(f"{API}/spring/roles", json={"user": user_id, "role": "judge"}))
    async with api.client(secret) as judge:
        batch = await succeeded(await judge.post(f"{JURY}/1:rejudge", json={"reason": "the worker was slow"}))
        row = await api.store.row("SELECT id FROM jobs WHERE finished_at IS NULL")
        await contest.published.finish(row["id"], Verdict.AC)
        other = await judge.post(f"{JURY}/2/rejudges/{batch['id']}:apply")
        assert other.status_code == 404, "the batch is about another submission"
        await wait_solved(contest, 0)
        applied = await succeeded(await judge.post(f"{JURY}/1/rejudges/{batch['id']}:apply"))
        assert applied["state"] == "applied"
        await wait_solved(contest, 1)


async def public_row(contest: ContestApp) -> dict[str, Any]:
    """The only row of the public scoreboard."""
    async with contest.published.api.client() as visitor:
        board = await succeeded(await visitor.get(f"{API}/spring/scoreboard"))
    row: dict[str, Any] = board["rows"][0]
    return row


async def test_unverified_verdict_is_pending_for_everybody_but_the_jury(contest: ContestApp) -> None:
    await contest.change(verify_required=True)
    await contest.advance_hours(1)
    async with contest.participant() as team:
        made = await succeeded(await contest.submit(team))
        await contest.published.finish(made["job_id"], Verdict.AC)
        path = f"/api/v1/submissions/{made['submission_id']}"
        assert (await succeeded(await team.get(path)))["verdict"] is None
        assert (await succeeded(await contest.organiser.get(path)))["verdict"] == "AC"
        await wait_solved(contest, 0)
        cell = (await public_row(contest))["cells"][0]
        assert (cell["pending"], cell["is_solved"]) == (1, False)
        blockers = (await succeeded(await contest.organiser.get(f"{API}/spring/blockers")))["blockers"]
        assert any("without a verdict that counts: 1" in item for item in blockers)
        await decide(contest, "verify", verdict="AC")
        assert (await succeeded(await team.get(path)))["verdict"] == "AC"
    await wait_solved(contest, 1)
    assert (await public_row(contest))["solved"] == 1


async def test_verification_ends_when_a_rejudge_changes_the_verdict(contest: ContestApp) -> None:
    await contest.change(verify_required=True)
    await contest.advance_hours(1)
    async with contest.participant() as team:
        await judged(contest, team, Verdict.AC)
    await decide(contest, "verify", verdict="AC")
    for verdict, is_verified in ((Verdict.AC, True), (Verdict.WA, False)):
        batch = await succeeded(await contest.organiser.post(f"{JURY}/1:rejudge", json={"reason": "new tests"}))
        row = await contest.published.api.store.row("SELECT id FROM jobs WHERE finished_at IS NULL")
        await contest.published.finish(row["id"], verdict)
        await succeeded(await contest.organiser.post(f"{JURY}/1/rejudges/{batch['id']}:apply"))
        found = (await succeeded(await contest.organiser.get(f"{JURY}/1")))["submission"]
        assert (found["verdict"], found["verified_at"] is not None) == (verdict, is_verified)


async def test_dashboard_lists_old_actions_of_a_contest_among_many_others(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as team:
        await judged(contest, team, Verdict.WA)
    await decide(contest, "ignore", reason="wrong machine")
    store = contest.published.api.store
    others = [f"problem-{index}" for index in range(3_000)]
    await store.transact(
        lambda tx: audit_log.record(tx, actor="x", action="y", object_kind="problem", objects=others, reason="")
    )
    found = await store.database.read(lambda tx: queries.find_contest(tx, "spring"))
    log = await store.database.read(lambda tx: audit_log.page_by_contest(tx, found.id, limit=100))
    assert (log[0].action, log[0].reason) == ("contest_submission.decide", "wrong machine")
    assert {"contest", "participant", "submission"} == {item.object_kind for item in log}
