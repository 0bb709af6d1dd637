"""Decisions of the jury about submissions, seen on the scoreboard, on each database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.domain.verdict import Verdict
from tests.support.asgi_app import make_app
from tests.support.contest_app import API, ContestApp, open_contest, succeeded
from tests.support.published_problem import OPEN_GATE, publish_problem
from tests.support.store_harness import StoreHarness

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
    changed = await decide(contest, "override", verdict="AC", reason="format accepted")
    assert (changed["override_verdict"], changed["verdict"], changed["problem"]) == ("AC", "WA", "A")
    await wait_solved(contest, 1)
    await decide(contest, "ignore", reason="wrong machine")
    await wait_solved(contest, 0)
    await decide(contest, "ignore", is_ignored=False, reason="right machine after all")
    await wait_solved(contest, 1)
    await decide(contest, "override", verdict=None, reason="taken back")
    await wait_solved(contest, 0)


async def test_verdict_counts_after_verification_where_it_is_required(contest: ContestApp) -> None:
    await contest.change(verify_required=True)
    await contest.advance_hours(1)
    async with contest.participant() as team:
        waiting = await succeeded(await contest.submit(team))
        refused = await contest.organiser.post(f"{JURY}/1:verify", json={})
        assert refused.status_code == 400
        await contest.published.finish(waiting["job_id"], Verdict.AC)
    await wait_solved(contest, 0)
    listed = await succeeded(await contest.organiser.get(JURY, params={"unverified": True}))
    assert [item["number"] for item in listed["items"]] == [1]
    await decide(contest, "verify")
    await wait_solved(contest, 1)
    assert (await succeeded(await contest.organiser.get(JURY, params={"unverified": True})))["items"] == []
    await decide(contest, "verify", is_verified=False)
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
    assert (await contest.organiser.post(f"{JURY}/99:verify", json={})).status_code == 404
    pages = await succeeded(await contest.organiser.get(JURY, params={"problem": "A", "verdict": "WA"}))
    assert [item["number"] for item in pages["items"]] == [1]
    assert (await contest.organiser.get(JURY, params={"problem": "Z"})).status_code == 404
