"""The pages of a contest's jury: dashboard, submissions, decisions, penalties."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from adjudge.domain.verdict import Verdict
from tests.support.asgi_app import make_app
from tests.support.contest_app import API, ContestApp, open_contest, succeeded
from tests.support.published_problem import OPEN_GATE, SOURCE, publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness
from tests.unit.services.test_login import PASSWORD, add_user, log_in

JURY = "/contests/spring/jury"
LIST = f"{JURY}/submissions"


@pytest.fixture
async def contest(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[ContestApp]:
    """A contest that starts in an hour, with its pages."""
    async with make_app(sqlite_store, tmp_path, OPEN_GATE) as api:
        add_pages(api.app, api.services)
        async with open_contest(await publish_problem(api)) as found:
            yield found


@asynccontextmanager
async def judge_session(contest: ContestApp) -> AsyncIterator[httpx.AsyncClient]:
    """A browser of a judge of the contest, logged in now."""
    api = contest.published.api
    user_id = await add_user(api, "ada")
    await succeeded(await contest.organiser.post(f"{API}/spring/roles", json={"user": user_id, "role": "judge"}))
    async with api.client() as browser:
        browser.headers["X-CSRF-Token"] = (await log_in(browser))["csrf_token"]
        yield browser


async def shown(client: httpx.AsyncClient, path: str) -> str:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page))


async def judged(contest: ContestApp, client: httpx.AsyncClient, verdict: Verdict, source: str = SOURCE) -> None:
    made = await succeeded(await contest.submit(client, source=source))
    await contest.published.finish(made["job_id"], verdict)


async def test_pages_are_for_the_jury(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as team, contest.published.api.client() as visitor:
        await judged(contest, team, Verdict.WA)
        for path in (JURY, f"{JURY}/state", LIST, f"{LIST}/state", f"{LIST}/1", f"{LIST}/1/state", f"{JURY}/penalties"):
            assert (await team.get(path)).status_code == 403, path
            assert (await visitor.get(path)).status_code == 303, path
            assert (await contest.organiser.get(path)).status_code == 200, path
        assert f'href="{JURY}"' not in await shown(team, "/contests/spring")
    assert f'href="{JURY}"' in await shown(contest.organiser, "/contests/spring")


async def test_list_shows_filters_and_pages(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as team:
        await judged(contest, team, Verdict.WA)
        await succeeded(await contest.submit(team))
    page = await shown(contest.organiser, LIST)
    assert page.index(f'href="{LIST}/2"') < page.index(f'href="{LIST}/1"')
    only = await shown(contest.organiser, f"{LIST}?waiting=1")
    assert f'href="{LIST}/2"' in only
    assert f'href="{LIST}/1"' not in only
    assert f'data-live="{LIST}/state?waiting=1' in only
    assert "No matching submissions" in text(await shown(contest.organiser, f"{LIST}?verdict=AC"))


async def test_detail_shows_source_runs_tests_diff_and_decisions(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as team:
        await judged(contest, team, Verdict.WA)
        await judged(contest, team, Verdict.AC, source=f"// second\n{SOURCE}")
    page = await shown(contest.organiser, f"{LIST}/2")
    assert "<ins>+// second</ins>" in page
    assert "the secret answer is 42" in page, "messages of tests are for the jury"
    async with judge_session(contest) as judge:
        answer = await judge.post(f"{LIST}/2/ignore", data={"reason": "wrong <machine>"})
        assert answer.status_code == 303, answer.text
        page = await shown(judge, f"{LIST}/2/state")
        assert "wrong &lt;machine&gt;" in page
        assert "Ignored" in text(page)
        refused = await judge.post(f"{LIST}/2/ignore", data={"undo": "1", "reason": " "})
        assert refused.status_code == 400
        assert "reason: required" in refused.text
        assert (await judge.post(f"{LIST}/9/ignore", data={"reason": "x"})).status_code == 404
        assert (await judge.post(f"{LIST}/2/erase", data={})).status_code == 404


async def test_override_asks_for_the_password_after_a_while(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as team:
        await judged(contest, team, Verdict.WA)
    form = {"verdict": "AC", "score": "", "reason": "format accepted", "password": ""}
    async with judge_session(contest) as judge:
        assert "you logged in a few minutes ago" in await shown(judge, f"{LIST}/1")
        await contest.advance_hours(0.25)
        page = await shown(judge, f"{LIST}/1")
        assert "Your password, to confirm" in page
        refused = await judge.post(f"{LIST}/1/override", data=form)
        assert refused.status_code == 403
        assert "format accepted" in refused.text, "what was entered is kept"
        done = await judge.post(f"{LIST}/1/override", data=form | {"password": PASSWORD})
        assert done.status_code == 303, done.text
        assert PASSWORD not in refused.text
        assert "Overridden by ada: format accepted" in text(await shown(judge, f"{LIST}/1"))


async def test_dashboard_counts_and_names_what_is_open(contest: ContestApp) -> None:
    await contest.change(verify_required=True)
    await contest.advance_hours(1)
    async with contest.participant() as team, contest.participant(hidden=False):
        await judged(contest, team, Verdict.WA)
        await succeeded(await contest.submit(team))
        asked = {"body": "Is n <b>positive</b>?"}
        await succeeded(await team.post(f"{API}/spring/clarifications", json=asked))
    page = await shown(contest.organiser, JURY)
    assert "Is n &lt;b&gt;positive&lt;/b&gt;?" in page
    words = text(page)
    assert "Wrong answer 1" in words
    assert "without a verdict that counts: 1, 2" in words
    assert "Unclaimed" in words
    assert words.count("No submission ") == 1
    assert "Freeze" in words, "actions of the lifecycle"
    answer = await contest.organiser.post("/contests/spring/settings/lifecycle/freeze", data={"from": "jury"})
    assert answer.headers["Location"].startswith(JURY)
    assert "changed times" in text(await shown(contest.organiser, f"{JURY}/state"))


async def test_penalty_page_adds_and_lists(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as team, judge_session(contest) as judge:
        await judged(contest, team, Verdict.AC)
        row = await contest.published.api.store.row("SELECT code FROM participants")
        form = {"participant": row["code"], "minutes": "-20", "reason": "a broken keyboard", "password": ""}
        wrong = await judge.post(f"{JURY}/penalties", data=form | {"minutes": "many"})
        assert wrong.status_code == 400
        unknown = await judge.post(f"{JURY}/penalties", data=form | {"participant": "nobody"})
        assert unknown.status_code == 404
        assert (await judge.post(f"{JURY}/penalties", data=form)).status_code == 303
        assert "-20" in text(await shown(judge, f"{JURY}/penalties"))
