"""The problem set, a problem with its submit form and the own submissions of a contest."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from adjudge.domain.contest import ParticipantKind
from adjudge.domain.verdict import Verdict
from tests.support.asgi_app import make_app
from tests.support.contest_app import ContestApp, open_contest
from tests.support.published_problem import OPEN_GATE, SOURCE, publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness
from tests.unit.web.test_query_counts import cost

PROBLEMS = "/contests/spring/problems"
OWN = "/contests/spring/submissions"
FORM = {"language": "cpp20", "source": SOURCE}


@pytest.fixture
async def contest(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[ContestApp]:
    """A contest that starts in an hour, with its pages."""
    async with make_app(sqlite_store, tmp_path, OPEN_GATE) as api:
        add_pages(api.app, api.services)
        async with open_contest(await publish_problem(api)) as found:
            yield found


async def shown(client: httpx.AsyncClient, path: str) -> str:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


async def judge(contest: ContestApp, store: StoreHarness, verdict: Verdict) -> None:
    """Judge the submission that waits."""
    row = await store.row("SELECT id FROM jobs WHERE kind = 'judge' AND finished_at IS NULL")
    await contest.published.finish(row["id"], verdict)


def result(page: str) -> str:
    """The own result on the problem set."""
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page[page.index("<tbody>") : page.index("</tbody>")])).strip()


async def test_problems_are_hidden_before_the_start_and_shown_with_the_own_result_after_it(
    contest: ContestApp, sqlite_store: StoreHarness
) -> None:
    await contest.set_problem(alias="Addition & more", rgb="#e11d48", color="red")
    async with contest.participant() as client, contest.published.api.client() as visitor:
        page = await shown(client, PROBLEMS)
        assert "The problems are shown when the contest starts." in page
        assert f'href="{PROBLEMS}"' not in page, "no tab"
        hidden, missing = await client.get(f"{PROBLEMS}/A"), await client.get(f"{PROBLEMS}/Z")
        assert hidden.status_code == missing.status_code == 404
        await contest.advance_hours(1)
        page = await shown(client, PROBLEMS)
        assert "Addition &amp; more" in page
        assert 'fill="#e11d48"' in page
        assert result(page) == "A Addition &amp; more"
        await contest.submit(client)
        assert result(await shown(client, PROBLEMS)).endswith("1 pending")
        await judge(contest, sqlite_store, Verdict.WA)
        assert result(await shown(client, PROBLEMS)).endswith("1 attempt")
        await contest.submit(client)
        await judge(contest, sqlite_store, Verdict.AC)
        assert "✓" in result(await shown(client, PROBLEMS))
        assert "Addition" not in await shown(visitor, PROBLEMS)
        await contest.change(problems_public=True)
        assert "Addition" in await shown(visitor, PROBLEMS)


async def test_participant_submits_with_the_form_and_sees_the_verdict(
    contest: ContestApp, sqlite_store: StoreHarness
) -> None:
    await contest.advance_hours(2)
    async with contest.participant() as client:
        page = await shown(client, f"{PROBLEMS}/A")
        assert f'action="{PROBLEMS}/A/submit"' in page
        assert "A: Sum" in page
        answer = await client.post(f"{PROBLEMS}/A/submit", data=FORM)
        assert (answer.status_code, answer.headers["Location"]) == (303, f"{OWN}?done=submitted"), answer.text
        page = await shown(client, OWN)
        assert "Pending" in page
        assert "1:00:00" in page
        assert 'data-poll-ms="2000"' in page
        await judge(contest, sqlite_store, Verdict.AC)
        state = await shown(client, f"{OWN}/state?cursor=")
        assert "Accepted" in state
        assert 'data-poll-ms="15000"' in state
        assert "#1" in await shown(client, f"{PROBLEMS}/A")
    async with contest.participant() as other:
        assert "You have not submitted" in await shown(other, OWN)
    assert (await contest.organiser.get(OWN)).status_code == 404, "the organiser does not take part"


async def test_refused_submission_comes_back_with_its_source_and_the_reason(contest: ContestApp) -> None:
    await contest.change(submissions_per_problem=1, allowed_languages=["cpp20"])
    await contest.advance_hours(1)
    async with contest.participant() as client:
        page = await shown(client, f"{PROBLEMS}/A")
        assert re.findall(r'<option value="(\w+)"', page) == ["cpp20"]
        assert (await client.post(f"{PROBLEMS}/A/submit", data=FORM)).status_code == 303
        answer = await client.post(f"{PROBLEMS}/A/submit", data=FORM)
        assert answer.status_code == 409
        assert "Problem A: at most 1 submissions are allowed." in answer.text
        assert SOURCE.strip() in answer.text
        wrong = await client.post(f"{PROBLEMS}/A/submit", data=FORM | {"language": "python3"})
        assert (wrong.status_code, "not allowed in this contest" in wrong.text) == (400, True)


async def test_page_says_why_one_cannot_submit(contest: ContestApp) -> None:
    await contest.change(problems_public=True)
    await contest.advance_hours(1)
    async with contest.published.user_client() as other, contest.participant() as client:
        assert "You do not take part in this contest" in await shown(other, f"{PROBLEMS}/A")
        await contest.advance_hours(5)
        assert "The contest has ended." in await shown(client, f"{PROBLEMS}/A")


async def test_verdicts_are_hidden_without_feedback_until_the_end(
    contest: ContestApp, sqlite_store: StoreHarness
) -> None:
    await contest.change(feedback="none", freeze_after_sec=None)
    await contest.advance_hours(1)
    async with contest.participant() as client:
        await contest.submit(client)
        await judge(contest, sqlite_store, Verdict.AC)
        page = await shown(client, OWN)
        assert "Received" in page
        assert "Accepted" not in page
        assert result(await shown(client, PROBLEMS)).endswith("1 pending")
        await contest.advance_hours(5)
        assert "Accepted" in await shown(client, OWN)


async def test_verdict_counts_for_participants_when_it_is_verified(
    contest: ContestApp, sqlite_store: StoreHarness
) -> None:
    await contest.change(verify_required=True)
    await contest.advance_hours(1)
    async with contest.participant() as client:
        await contest.submit(client)
        await judge(contest, sqlite_store, Verdict.WA)
        assert "Pending" in await shown(client, OWN)
        await sqlite_store.write("UPDATE contest_submissions SET verified_at = 1, verified_by = NULL")
        assert "Wrong answer" in await shown(client, OWN)


async def test_practice_submissions_are_listed_too(contest: ContestApp) -> None:
    async with contest.participant(ParticipantKind.PRACTICE) as client:
        await contest.advance_hours(7)
        assert (await client.post(f"{PROBLEMS}/A/submit", data=FORM)).status_code == 303
        assert "Pending" in await shown(client, OWN)


async def test_statements_of_lists_do_not_depend_on_their_length(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as client:
        costs = []
        for round_number in range(2):
            for _ in range(3):
                await contest.submit(client)
            clone = {"slug": f"copy-{round_number}", "title": "Copy"}
            assert (await contest.organiser.post("/api/v1/contests/spring:clone", json=clone)).is_success
            costs.append([await cost(client, path) for path in (OWN, PROBLEMS)])
            costs[-1].append(await cost(contest.organiser, "/contests"))
        assert costs[0] == costs[1]
