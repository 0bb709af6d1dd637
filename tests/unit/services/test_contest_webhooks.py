"""Webhook events of contests reach those participants who may see what happened, in the transaction of the event."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge.contests import lifecycle
from adjudge.domain.contest import ContestFeedback
from adjudge.domain.ids import new_id
from adjudge.relay.contest_announcer import ContestAnnouncer
from adjudge.store import Tx
from adjudge.store.contests import participants
from adjudge.store.contests.models import ContestGroupRow, ContestSettings
from adjudge.store.webhooks.commands import EVENTS
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.store_harness import StoreHarness
from tests.unit.services.test_contest_visibility import HOUR_MS, SETTINGS, SLUG, VisibilityFixture, make_fixture

ROOT = f"/api/v1/contests/{SLUG}"
SUBSCRIBERS = ("author", "teammate", "other", "balloon", "stranger")


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


@pytest.fixture
async def published(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


@pytest.fixture
async def fixture(published: PublishedProblem, stack: AsyncExitStack) -> VisibilityFixture:
    """A contest an hour before its start; everybody but the jury has a webhook for all events."""
    made = await make_fixture(published, stack, SETTINGS)
    await subscribe(made)
    return made


async def subscribe(fixture: VisibilityFixture) -> None:
    for who in SUBSCRIBERS:
        body = {"url": f"https://example.org/{who}", "events": list(EVENTS)}
        answer = await fixture.clients[who].post("/api/v1/webhooks", json=body)
        assert answer.status_code == 201, answer.text


async def delivered(fixture: VisibilityFixture) -> list[tuple[str, str, dict[str, Any]]]:
    """Owner, event and data of all deliveries so far."""
    rows = await fixture.store.rows(
        "SELECT url, event, body FROM webhook_deliveries JOIN webhooks ON webhooks.id = webhook_id"
        " ORDER BY webhook_deliveries.id"
    )
    return [(row["url"].rsplit("/", 1)[1], row["event"], json.loads(row["body"])["data"]) for row in rows]


async def send(fixture: VisibilityFixture, who: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await fixture.clients[who].post(f"{ROOT}{path}", json=body)
    assert answer.is_success, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_answer_reaches_the_team_that_asked(fixture: VisibilityFixture) -> None:
    await fixture.store.clock.advance(HOUR_MS)
    asked = await send(fixture, "author", "/clarifications", {"body": "Is n > 0?", "problem": "A"})
    assert await delivered(fixture) == [], "a question is no event"
    await send(fixture, "jury", f"/clarifications/{asked['id']}:answer", {"body": "Yes."})
    found = await delivered(fixture)
    assert sorted((who, event) for who, event, _ in found) == [
        ("author", "clarification.answered"),
        ("teammate", "clarification.answered"),
    ]
    data = found[0][2]
    assert (data["contest"], data["body"], data["problem"], data["reply_to"]) == (SLUG, "Yes.", "A", asked["number"])


async def test_answer_to_all_is_an_announcement_for_others_and_does_not_name_the_question(
    fixture: VisibilityFixture,
) -> None:
    await fixture.store.clock.advance(HOUR_MS)
    asked = await send(fixture, "author", "/clarifications", {"body": "Is n > 0?"})
    await send(fixture, "jury", f"/clarifications/{asked['id']}:answer", {"body": "Yes.", "audience": "all"})
    found = await delivered(fixture)
    assert sorted((who, event, data["reply_to"]) for who, event, data in found) == [
        ("author", "clarification.answered", asked["number"]),
        ("other", "contest.announcement", None),
        ("teammate", "clarification.answered", asked["number"]),
    ]


async def test_announcements_reach_their_recipients_only(fixture: VisibilityFixture) -> None:
    group_id = new_id()

    async def add_group(tx: Tx) -> None:
        await participants.upsert_groups(tx, [ContestGroupRow(group_id, fixture.contest_id, "north", "North")])
        await participants.set_groups(tx, [fixture.teams["other"]], [(group_id, fixture.teams["other"])])

    await fixture.store.transact(add_group)
    await fixture.store.clock.advance(HOUR_MS)
    for body in (
        {"body": "to one", "audience": "participant", "participant": "one"},
        {"body": "to the north", "audience": "groups", "groups": ["north"]},
        {"body": "to all", "problem": "A"},
    ):
        await send(fixture, "jury", "/announcements", body)
    found = {(who, data["body"]) for who, event, data in await delivered(fixture) if event == "contest.announcement"}
    assert found == {
        ("author", "to one"),
        ("teammate", "to one"),
        ("other", "to the north"),
        *((who, "to all") for who in ("author", "teammate", "other")),
    }


async def test_before_the_start_nothing_tells_of_problems_or_goes_to_single_participants(
    fixture: VisibilityFixture,
) -> None:
    for body in (
        {"body": "Welcome"},
        {"body": "A is easy", "problem": "A"},
        {"body": "to one", "audience": "participant", "participant": "one"},
    ):
        await send(fixture, "jury", "/announcements", body)
    assert {data["body"] for _, _, data in await delivered(fixture)} == {"Welcome"}


async def test_transitions_reach_those_who_take_part_once(fixture: VisibilityFixture) -> None:
    announcer = ContestAnnouncer(fixture.store.database)
    await announcer.run_once()
    assert await delivered(fixture) == []
    await fixture.store.clock.advance(6 * HOUR_MS)
    await announcer.run_once()
    await fixture.store.transact(
        lambda tx: lifecycle.thaw(tx, fixture.contest_id, actor=fixture.users["jury"], reason="")
    )
    for _ in range(2):
        await announcer.run_once()
    found = await delivered(fixture)
    assert sorted((who, event) for who, event, _ in found) == [
        (who, f"contest.{event}")
        for who in ("author", "other", "teammate")
        for event in ("ended", "frozen", "started", "thawed")
    ]
    assert all(data["contest"] == SLUG and data["at"].endswith("Z") for _, _, data in found)


async def test_webhook_gets_only_the_events_that_it_subscribes_to(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    fixture = await make_fixture(published, stack, SETTINGS)
    body = {"url": "https://example.org/author", "events": ["contest.started"]}
    await fixture.clients["author"].post("/api/v1/webhooks", json=body)
    await send(fixture, "jury", "/announcements", {"body": "Welcome"})
    await fixture.store.clock.advance(6 * HOUR_MS)
    await ContestAnnouncer(fixture.store.database).run_once()
    assert [event for _, event, _ in await delivered(fixture)] == ["contest.started"]


@pytest.mark.parametrize(
    "settings",
    [replace(SETTINGS, feedback=ContestFeedback.NONE), replace(SETTINGS, verify_required=True)],
    ids=["no feedback", "not verified"],
)
async def test_hidden_verdict_is_no_event(
    published: PublishedProblem, stack: AsyncExitStack, settings: ContestSettings
) -> None:
    fixture = await make_fixture(published, stack, settings)
    await subscribe(fixture)
    await fixture.store.clock.advance(HOUR_MS)
    _, job_id = await fixture.submit("author")
    await published.finish(job_id)
    assert await delivered(fixture) == []
