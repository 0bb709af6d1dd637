"""Clarifications: two teams and a jury ask, claim, answer to one, to groups and to all, with unread marks."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.domain.ids import new_id
from adjudge.services.clarifications import QUESTIONS_PER_MINUTE
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness
from tests.unit.services.test_contest_visibility import HOUR_MS, SETTINGS, SLUG, VisibilityFixture, make_fixture

ROOT = f"/api/v1/contests/{SLUG}"
LIST = f"{ROOT}/clarifications"


@pytest.fixture
async def fixture(store: StoreHarness, tmp_path: Path) -> AsyncIterator[VisibilityFixture]:
    """A contest that runs, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api, AsyncExitStack() as stack:
        add_pages(api.app, api.services)
        published: PublishedProblem = await publish_problem(api)
        made = await make_fixture(published, stack, replace(SETTINGS, clarification_categories=("technical",)))
        await store.clock.advance(HOUR_MS)
        yield made


async def ok(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


async def bodies(fixture: VisibilityFixture, who: str) -> list[str]:
    return [item["body"] for item in (await ok(await fixture.clients[who].get(LIST)))["items"]]


async def unread(fixture: VisibilityFixture, who: str) -> int:
    return int((await ok(await fixture.clients[who].get(f"{LIST}/unread")))["count"])


async def test_question_is_claimed_and_answered_and_only_its_team_sees_it(fixture: VisibilityFixture) -> None:
    clients = fixture.clients
    asked = await ok(await clients["author"].post(LIST, json={"body": "Is n > 0?", "problem": "A"}))
    assert (asked["audience"], asked["problem"], asked["from_participant"]) == ("jury", "A", "one")
    assert await bodies(fixture, "teammate") == await bodies(fixture, "jury") == ["Is n > 0?"]
    for who in ("other", "visitor", "stranger", "balloon"):
        assert await bodies(fixture, who) == []
    assert await unread(fixture, "jury") == 1
    one = f"{LIST}/{asked['id']}"
    claimed = await ok(await clients["jury"].post(f"{one}:claim"))
    assert claimed["claimed_by"]
    assert (await ok(await clients["author"].get(LIST)))["items"][0]["claimed_by"] is None
    await ok(await clients["jury"].post(f"{one}:answer", json={"body": "Yes."}))
    assert await bodies(fixture, "teammate") == ["Yes.", "Is n > 0?"]
    assert await bodies(fixture, "other") == []
    assert (await unread(fixture, "jury"), await unread(fixture, "author"), await unread(fixture, "other")) == (0, 1, 0)
    assert (await clients["jury"].post(f"{one}:claim")).status_code == 409
    assert (await clients["author"].post(f"{one}:answer", json={"body": "No."})).status_code == 403
    newest = (await ok(await clients["author"].get(LIST)))["items"][0]
    assert newest["is_unread"]
    await ok(await clients["author"].post(f"{LIST}:mark-read", json={"number": newest["number"]}))
    assert (await unread(fixture, "author"), await unread(fixture, "teammate")) == (0, 1)


async def test_answer_to_all_and_announcements_reach_their_recipients(fixture: VisibilityFixture) -> None:
    clients = fixture.clients
    asked = await ok(await clients["author"].post(LIST, json={"body": "Help", "category": "technical"}))
    await ok(await clients["jury"].post(f"{LIST}/{asked['id']}:answer", json={"body": "Read it", "audience": "all"}))
    private = {"body": "Only you", "audience": "participant", "participant": "two"}
    await ok(await clients["jury"].post(f"{ROOT}/announcements", json=private))
    assert await bodies(fixture, "visitor") == await bodies(fixture, "balloon") == ["Read it"]
    assert await bodies(fixture, "other") == ["Only you", "Read it"]
    assert await bodies(fixture, "author") == ["Read it", "Help"]
    assert await unread(fixture, "other") == 2


async def test_before_the_start_only_announcements_about_no_problem_are_visible(
    fixture: VisibilityFixture, store: StoreHarness
) -> None:
    await store.clock.advance(-HOUR_MS)
    clients = fixture.clients
    for body in ({"body": "Welcome"}, {"body": "A is easy", "problem": "A"}):
        await ok(await clients["jury"].post(f"{ROOT}/announcements", json=body))
    for who in ("visitor", "author", "balloon"):
        assert await bodies(fixture, who) == ["Welcome"]
    assert await unread(fixture, "author") == 1
    assert (await clients["author"].post(LIST, json={"body": "When?"})).status_code == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"body": "  "}, "body"),
        ({"body": "x", "problem": "Z"}, "problem"),
        ({"body": "x", "category": "food"}, "category"),
    ],
)
async def test_wrong_question_names_its_field(fixture: VisibilityFixture, body: dict[str, str], field: str) -> None:
    refused = await fixture.clients["author"].post(LIST, json=body)
    assert refused.status_code == 400
    assert field in refused.json()["detail"]
    assert (await fixture.clients["stranger"].post(LIST, json={"body": "x"})).status_code == 403
    assert await bodies(fixture, "jury") == []


async def test_canned_answers_belong_to_the_jury(fixture: VisibilityFixture) -> None:
    jury, path = fixture.clients["jury"], f"{ROOT}/canned-answers"
    made = await ok(await jury.post(path, json={"title": "No comment", "body": "Read the statement."}))
    assert (await jury.post(path, json={"title": "No comment", "body": "Again"})).status_code == 409
    assert [item["title"] for item in (await ok(await jury.get(path)))["items"]] == ["No comment"]
    assert (await fixture.clients["author"].get(path)).status_code == 403
    await ok(await jury.delete(f"{path}/{made['id']}"))
    assert (await ok(await jury.get(path)))["items"] == []


async def test_pages_show_questions_answers_and_unread_marks(fixture: VisibilityFixture) -> None:
    clients, path = fixture.clients, f"/contests/{SLUG}/clarifications"
    asked = await ok(await clients["author"].post(LIST, json={"body": "Is <n> even?", "problem": "A"}))
    assert "1 unread" in (await clients["jury"].get(f"/contests/{SLUG}")).text
    assert "Is &lt;n&gt; even?" in (await clients["jury"].get(f"{path}/{asked['id']}")).text
    for who in ("author", "other", "stranger", "balloon"):
        hidden, missing = await clients[who].get(f"{path}/{asked['id']}"), await clients[who].get(f"{path}/{new_id()}")
        assert (hidden.status_code, missing.status_code) == (404, 404), "a question is missing for all but the jury"
    await ok(await clients["jury"].post(f"{LIST}/{asked['id']}:answer", json={"body": "No", "audience": "all"}))
    assert "1 unread" in (await clients["other"].get(f"/contests/{SLUG}")).text
    page = (await clients["other"].get(path)).text
    assert "Ask the jury" in page
    assert ">new<" in page
    assert "1 unread" in (await clients["other"].get(path)).text, "reading a page changes nothing"
    number = re.search(r'name="number" value="(\d+)"', page)
    assert number
    wrong = await clients["other"].post(f"{path}/read", data={"number": "x"})
    assert wrong.status_code == 400
    marked = await clients["other"].post(f"{path}/read", data={"number": number[1]})
    assert marked.headers["Location"] == path
    after = (await clients["other"].get(path)).text
    assert "unread" not in after
    assert f"{path}/read" not in after
    assert "Ask the jury" not in (await clients["visitor"].get(path)).text


async def test_questions_per_minute_are_limited_per_participant_and_the_error_names_the_wait(
    fixture: VisibilityFixture, store: StoreHarness
) -> None:
    clients = fixture.clients
    for number in range(QUESTIONS_PER_MINUTE):
        await ok(await clients["author" if number % 2 else "teammate"].post(LIST, json={"body": f"Question {number}"}))
    refused = await clients["author"].post(LIST, json={"body": "One more"})
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    assert "ask again in 60 seconds" in refused.json()["detail"]
    assert len(await bodies(fixture, "jury")) == QUESTIONS_PER_MINUTE, "nothing is half saved"
    page = await clients["author"].post(f"/contests/{SLUG}/clarifications", data={"body": "One more"})
    assert (page.status_code, "ask again in 60 seconds" in page.text) == (429, True)
    await ok(await clients["other"].post(LIST, json={"body": "Ours"}))
    await store.clock.advance(60_000)
    await ok(await clients["author"].post(LIST, json={"body": "One more"}))


async def test_jury_operations_answer_participants_alike_for_questions_of_others_and_missing_ones(
    fixture: VisibilityFixture,
) -> None:
    clients = fixture.clients
    asked = await ok(await clients["author"].post(LIST, json={"body": "Ours"}))
    for who in ("other", "stranger", "balloon"):
        for operation in ("answer", "claim", "release", "close"):
            answers = [
                await clients[who].post(f"{LIST}/{name}:{operation}", json={"body": "x"})
                for name in (asked["id"], new_id())
            ]
            assert [item.status_code for item in answers] == [403, 403]
            assert answers[0].json()["detail"] == answers[1].json()["detail"]
