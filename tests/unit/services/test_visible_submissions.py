"""Submissions of all participants: who sees what of them, in every phase, on each database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.domain.contest import ParticipantKind
from adjudge.domain.verdict import Verdict
from tests.support.asgi_app import make_app
from tests.support.contest_app import API, ContestApp, open_contest, succeeded
from tests.support.published_problem import OPEN_GATE, publish_problem
from tests.support.store_harness import StoreHarness

LIST = f"{API}/spring/submissions"


@pytest.fixture
async def contest(store: StoreHarness, tmp_path: Path) -> AsyncIterator[ContestApp]:
    """A contest that starts in an hour, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api, open_contest(await publish_problem(api)) as found:
        yield found


async def judged(contest: ContestApp, client: httpx.AsyncClient, verdict: Verdict) -> None:
    made = await succeeded(await contest.submit(client))
    await contest.published.finish(made["job_id"], verdict)


async def listed(client: httpx.AsyncClient, **asked: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await succeeded(await client.get(LIST, params=asked)))["items"]
    return found


def results(items: list[dict[str, Any]]) -> list[tuple[int, Any, Any]]:
    return [(item["number"], item["verdict"], item["is_accepted"]) for item in items]


async def test_others_see_accepted_or_not_until_the_freeze_and_verdicts_after_the_thaw(contest: ContestApp) -> None:
    async with (
        contest.participant() as team,
        contest.participant() as other,
        contest.published.api.client() as visitor,
    ):
        assert await listed(visitor) == []
        await contest.advance_hours(1)
        await judged(contest, team, Verdict.TLE)
        await succeeded(await contest.submit(team))
        for client in (visitor, other):
            assert results(await listed(client)) == [(2, None, None), (1, None, False)]
        assert results(await listed(team)) == [(2, None, None), (1, "TLE", False)], "the own ones by feedback"
        assert results(await listed(contest.organiser)) == [(2, None, None), (1, "TLE", False)]
        assert {item["problem"] for item in await listed(other)} == {"A"}
        assert {item["problem"] for item in await listed(visitor)} == {None}, "problems are hidden from visitors"
        await contest.advance_hours(4.1)
        before = [await listed(client) for client in (visitor, other)]
        await judged(contest, team, Verdict.AC)
        frozen = [await listed(client) for client in (visitor, other)]
        assert [results(items)[0] for items in frozen] == [(3, None, None)] * 2
        assert [items[1:] for items in frozen] == before
        await contest.advance_hours(1)
        await succeeded(await contest.organiser.post(f"{API}/spring:thaw"))
        assert results(await listed(visitor))[0] == (3, "AC", True)
        assert not (await listed(visitor))[0]["may_open"]


async def test_filters_and_pages(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as first, contest.participant() as second:
        for client in (first, second, first):
            await judged(contest, client, Verdict.WA)
        code = (await listed(first))[0]["participant"]
        assert [item["number"] for item in await listed(second, participant=code)] == [3, 1]
        assert len(await listed(second, problem="A")) == 3
        page = await succeeded(await second.get(LIST, params={"limit": 2}))
        rest = await succeeded(await second.get(LIST, params={"limit": 2, "cursor": page["next"]}))
        assert ([item["number"] for item in rest["items"]], rest["next"]) == ([1], None)


async def test_hidden_participants_and_ignored_submissions_answer_like_missing_ones(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    api = contest.published.api
    async with (
        contest.participant(hidden=True) as hidden,
        contest.participant(ParticipantKind.TEST) as tester,
        contest.participant() as team,
        api.client() as visitor,
    ):
        for client in (hidden, tester, team):
            await judged(contest, client, Verdict.WA)
        assert [item["number"] for item in await listed(visitor)] == [3]
        row = await api.store.row("SELECT code FROM participants WHERE hidden")
        for client in (visitor, team):
            one = await client.get(LIST, params={"participant": row["code"]})
            missing = await client.get(LIST, params={"participant": "nobody"})
            assert one.status_code == missing.status_code == 404
            assert one.json()["detail"] == missing.json()["detail"].replace("nobody", row["code"])
        ignored = f"{API}/spring/jury/submissions/3:ignore"
        await succeeded(await contest.organiser.post(ignored, json={"reason": "wrong machine"}))
        assert await listed(visitor) == []
        assert (await visitor.get(LIST, params={"problem": "A"})).status_code == 404, "hidden as a missing problem is"


async def test_draft_answers_like_a_missing_contest(contest: ContestApp) -> None:
    await succeeded(await contest.organiser.post(f"{API}/spring:unpublish", json={"reason": "later"}))
    async with contest.published.api.client() as visitor:
        answers = [await visitor.get(f"{API}/{name}/submissions") for name in ("spring", "nothing")]
    assert [answer.status_code for answer in answers] == [404, 404]
