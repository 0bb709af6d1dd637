"""Unread verdicts of own submissions: counted by what the participant may see, marked as read by a request only."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge.contests import lifecycle
from adjudge.domain.contest import ContestFeedback
from adjudge.domain.verdict import Verdict
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.submissions import JuryDecision
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness
from tests.unit.services.test_contest_visibility import HOUR_MS, SETTINGS, SLUG, VisibilityFixture, make_fixture

ROOT = f"/api/v1/contests/{SLUG}/verdicts"
PAGE = f"/contests/{SLUG}/submissions"


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


@pytest.fixture
async def published(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        add_pages(api.app, api.services)
        yield await publish_problem(api)


async def unread(fixture: VisibilityFixture, who: str) -> dict[str, Any]:
    answer = await fixture.clients[who].get(f"{ROOT}/unread")
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def counts(fixture: VisibilityFixture, *names: str) -> list[int]:
    return [(await unread(fixture, who))["count"] for who in names]


async def judge(fixture: VisibilityFixture, who: str, verdict: Verdict = Verdict.AC) -> str:
    submission_id, job_id = await fixture.submit(who)
    await fixture.published.finish(job_id, verdict)
    return submission_id


async def test_verdicts_of_the_team_are_unread_until_they_are_marked(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    fixture = await make_fixture(published, stack, SETTINGS)
    await fixture.store.clock.advance(HOUR_MS)
    await fixture.submit("author")
    assert await unread(fixture, "author") == {"count": 0, "until_us": None}, "there is no verdict yet"
    await judge(fixture, "author")
    assert await counts(fixture, "author", "teammate", "other", "jury", "stranger") == [1, 1, 0, 0, 0]
    until = (await unread(fixture, "author"))["until_us"]
    await fixture.store.clock.advance(1)
    await judge(fixture, "teammate", Verdict.WA)
    assert (await fixture.clients["author"].post(f"{ROOT}:mark-read", json={"until_us": until})).status_code == 204
    assert await counts(fixture, "author", "teammate") == [1, 2], "a mark is up to a time, and of one user"
    await fixture.clients["author"].post(f"{ROOT}:mark-read", json={"until_us": 2**53})
    assert await counts(fixture, "author") == [0]
    await fixture.store.clock.advance(1)
    await judge(fixture, "author")
    assert await counts(fixture, "author") == [1], "verdicts of the future cannot be marked"


async def test_page_shows_the_count_and_only_the_form_marks(published: PublishedProblem, stack: AsyncExitStack) -> None:
    fixture = await make_fixture(published, stack, SETTINGS)
    await fixture.store.clock.advance(HOUR_MS)
    await judge(fixture, "author")
    client = fixture.clients["author"]
    assert "1 new verdict" in (await client.get(f"/contests/{SLUG}")).text
    page = (await client.get(PAGE)).text
    assert "1 new verdict" in (await client.get(PAGE)).text, "reading a page changes nothing"
    state = (await client.get(f"/contests/{SLUG}/state")).text
    assert re.search(r'data-notice="verdict-1-\d+"[^>]*>Submission 1, problem A: Accepted<', state)
    assert "new verdict" not in (await fixture.clients["other"].get(f"/contests/{SLUG}/state")).text
    until = re.search(r'name="until" value="(\d+)"', page)
    assert until
    assert (await client.post(f"{PAGE}/read", data={"until": "x"})).status_code == 400
    marked = await client.post(f"{PAGE}/read", data={"until": until[1]})
    assert marked.headers["Location"] == PAGE
    after = (await client.get(PAGE)).text
    assert "new verdict" not in after
    assert "data-notice" not in after
    assert f"{PAGE}/read" not in after


async def test_notices_tell_an_own_answer_from_a_message(published: PublishedProblem, stack: AsyncExitStack) -> None:
    fixture = await make_fixture(published, stack, SETTINGS)
    await fixture.store.clock.advance(HOUR_MS)
    root, clients = f"/api/v1/contests/{SLUG}", fixture.clients
    asked = (await clients["author"].post(f"{root}/clarifications", json={"body": "Is n > 0?"})).json()
    answer = {"body": "<Yes>", "audience": "all"}
    await clients["jury"].post(f"{root}/clarifications/{asked['id']}:answer", json=answer)
    state = f"/contests/{SLUG}/state"
    assert ">Answer to your question: &lt;Yes&gt;<" in (await clients["teammate"].get(state)).text
    assert ">Message from the jury: &lt;Yes&gt;<" in (await clients["other"].get(state)).text
    for who in ("visitor", "jury"):
        assert "Yes" not in (await clients[who].get(state)).text


async def test_hidden_verdicts_are_not_counted_until_they_are_shown(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    fixture = await make_fixture(published, stack, replace(SETTINGS, feedback=ContestFeedback.NONE))
    await fixture.store.clock.advance(HOUR_MS)
    paths = [f"{ROOT}/unread", f"/contests/{SLUG}/state", f"{PAGE}/state"]
    _, job_id = await fixture.submit("author")
    before = await fixture.look(paths)
    await published.finish(job_id)
    after = await fixture.look(paths)
    assert {key: value for key, value in after.items() if key[0] != "jury"} == {
        key: value for key, value in before.items() if key[0] != "jury"
    }, "nothing tells of the verdict"
    await fixture.store.clock.advance(5 * HOUR_MS)
    await fixture.store.transact(
        lambda tx: lifecycle.thaw(tx, fixture.contest_id, actor=fixture.users["jury"], reason="")
    )
    assert await counts(fixture, "author", "teammate", "other") == [1, 1, 0]


async def test_verdicts_count_when_verified_and_again_when_overridden(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    fixture = await make_fixture(published, stack, replace(SETTINGS, verify_required=True))
    await fixture.store.clock.advance(HOUR_MS)
    submission_id = await judge(fixture, "author")
    assert await counts(fixture, "author") == [0]
    jury = fixture.users["jury"]
    overridden = JuryDecision(
        verified_by=jury, override_verdict=Verdict.WA, overridden_by=jury, override_reason="by hand"
    )
    for decision, is_new in (
        (JuryDecision(verified_by=jury), True),
        (overridden, True),
        (replace(overridden, official=True), False),
        (replace(overridden, override_score_micro=5), True),
        (replace(overridden, override_score_micro=5, is_ignored=True), False),
    ):
        await fixture.store.clock.advance(1)
        row = await fixture.store.database.read(lambda tx: contest_submissions.find(tx, submission_id))
        await fixture.store.transact(
            lambda tx, row=row, decision=decision: contest_submissions.decide(  # type: ignore[misc]  # defaults bind the loop variables
                tx, submission_id, row.version, decision
            )
        )
        found = await unread(fixture, "author")
        assert found["count"] == is_new, decision
        if is_new:
            await fixture.clients["author"].post(f"{ROOT}:mark-read", json={"until_us": found["until_us"]})
        assert await counts(fixture, "author") == [0]
