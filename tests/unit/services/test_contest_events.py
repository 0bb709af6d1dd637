"""Events of contests in the stream of a user: resumable, sent once, and only what the user may see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge.contests import jury
from adjudge.domain.contest import ContestFeedback
from adjudge.domain.errors import InvalidInput
from adjudge.domain.verdict import Verdict
from adjudge.relay.contest_announcer import ContestAnnouncer
from adjudge.services.submission_events import BEAT, Stream, StreamEvent
from adjudge.services.user_events import parse_user_offset
from adjudge.store import Tx
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.event_log import ContestEventEntry
from adjudge.store.contests.submissions import JuryDecision
from adjudge.store.judging.events import EventFilter
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.store_harness import StoreHarness
from tests.unit.services.test_contest_visibility import HOUR_MS, SETTINGS, SLUG, VisibilityFixture, make_fixture

ROOT = f"/api/v1/contests/{SLUG}"


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
    """A contest an hour before its start."""
    return await make_fixture(published, stack, SETTINGS)


async def send(fixture: VisibilityFixture, who: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await fixture.clients[who].post(f"{ROOT}{path}", json=body)
    assert answer.is_success, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def open_stream(fixture: VisibilityFixture, who: str, last: str | None = None) -> Stream:
    return await fixture.published.api.services.user_events.stream(fixture.viewer(who), last)


async def missed(fixture: VisibilityFixture, who: str, last: str | None = "0-0_0-0") -> list[StreamEvent]:
    """What a reader that resumes gets before the first heartbeat, without events of submissions."""
    found = list[StreamEvent]()
    async with aclosing(await open_stream(fixture, who, last)) as stream:
        while BEAT not in (batch := await asyncio.wait_for(anext(stream), 20)):
            found += batch
    return [event for event in found if event.name != "status"]


async def next_event(stream: Stream) -> StreamEvent:
    async with asyncio.timeout(20):
        while True:
            for event in await anext(stream):
                if event is not BEAT:
                    return event


def names(events: list[StreamEvent]) -> list[str]:
    return [event.name for event in events]


async def test_messages_reach_those_who_may_see_them(fixture: VisibilityFixture) -> None:
    await send(fixture, "jury", "/announcements", {"body": "Read problem A.", "problem": "A"})
    assert await missed(fixture, "author") == [], "names a problem before the start"
    await fixture.store.clock.advance(HOUR_MS)
    asked = await send(fixture, "author", "/clarifications", {"body": "Is n > 0?", "problem": "A"})
    await send(fixture, "jury", f"/clarifications/{asked['id']}:answer", {"body": "Yes."})
    answers = [event for event in await missed(fixture, "teammate") if event.name == "clarification.answered"]
    assert [event.data and event.data["body"] for event in answers] == ["Yes."]
    assert answers[0].data is not None
    assert (answers[0].data["contest"], answers[0].data["reply_to"]) == (SLUG, asked["number"])
    assert names(await missed(fixture, "other")) == ["contest.announcement"]
    for who in ("balloon", "stranger", "jury"):
        assert await missed(fixture, who) == [], who


async def test_live_events_are_sent_once_and_resumed_from_their_ids(fixture: VisibilityFixture) -> None:
    await fixture.store.clock.advance(HOUR_MS)
    async with aclosing(await open_stream(fixture, "other")) as stream:
        assert await anext(stream) == [BEAT]
        await send(fixture, "jury", "/announcements", {"body": "One."})
        one = await next_event(stream)
        await send(fixture, "jury", "/announcements", {"body": "Two."})
        two = await next_event(stream)
    assert [event.data and event.data["body"] for event in (one, two)] == ["One.", "Two."]
    assert one.id is not None
    assert two.id is not None
    assert await missed(fixture, "other", two.id) == []
    assert [event.data for event in await missed(fixture, "other", one.id)] == [two.data]
    async with aclosing(await open_stream(fixture, "other", one.id)) as stream:
        assert (await next_event(stream)).data == two.data
        await send(fixture, "jury", "/announcements", {"body": "Three."})
        three = await next_event(stream)
    assert three.data is not None
    assert three.data["body"] == "Three."


async def test_ids_resume_submissions_and_contests_together(fixture: VisibilityFixture) -> None:
    await fixture.store.clock.advance(HOUR_MS)
    submission_id, job_id = await fixture.submit("author")
    async with aclosing(await open_stream(fixture, "author")) as stream:
        assert await anext(stream) == [BEAT]
        await send(fixture, "jury", "/announcements", {"body": "One."})
        announced = await next_event(stream)
        await fixture.published.finish(job_id)
    async with aclosing(await open_stream(fixture, "author", announced.id)) as stream:
        status = await next_event(stream)
        assert status.name == "status"
        assert status.data is not None
        assert status.data["submission_id"] == submission_id
        await send(fixture, "jury", "/announcements", {"body": "Two."})
        while (event := await next_event(stream)).name == "status":
            status = event
        assert event.data is not None
        assert event.data["body"] == "Two."
    assert [event.data and event.data["body"] for event in await missed(fixture, "author", status.id)] == ["Two."]
    assert await missed(fixture, "author", "1-1") == [], "the id of another stream: contests from now on"
    for wrong in ("1-1_", "1-1_x", "_1-1", "1-1_1-1_1-1"):
        with pytest.raises(InvalidInput):
            parse_user_offset(wrong)


async def test_transitions_reach_participants(fixture: VisibilityFixture) -> None:
    await fixture.store.clock.advance(HOUR_MS)
    announcer = ContestAnnouncer(fixture.store.database)
    async with aclosing(await open_stream(fixture, "author")) as stream:
        assert await anext(stream) == [BEAT]
        await announcer.run_once()
        started = await next_event(stream)
    assert started.name == "contest.started"
    assert started.data is not None
    assert (started.data["contest"], set(started.data)) == (SLUG, {"contest_id", "contest", "at"})
    await announcer.run_once()
    assert names(await missed(fixture, "other")) == ["contest.started"]
    assert await missed(fixture, "stranger") == []


async def decide(fixture: VisibilityFixture, submission_id: str, decision: JuryDecision) -> None:
    async def operation(tx: Tx) -> None:
        row = await contest_submissions.find(tx, submission_id)
        await jury.decide(tx, submission_id, decision, version=row.version, actor=fixture.users["jury"], reason="")

    await fixture.store.transact(operation)


async def test_verified_and_overridden_verdicts_reach_the_team(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    fixture = await make_fixture(published, stack, replace(SETTINGS, verify_required=True))
    await fixture.store.clock.advance(HOUR_MS)
    submission_id, job_id = await fixture.submit("author")
    await published.finish(job_id)
    judge = fixture.users["jury"]
    await decide(fixture, submission_id, JuryDecision(official=True))
    assert await missed(fixture, "author") == [], "not verified"
    await decide(fixture, submission_id, JuryDecision(official=True, verified_by=judge))
    await decide(fixture, submission_id, JuryDecision(official=False, verified_by=judge))
    verdict = {"override_verdict": Verdict.WA, "overridden_by": judge, "override_reason": "wrong"}
    await decide(fixture, submission_id, JuryDecision(verified_by=judge, **verdict))  # type: ignore[arg-type]  # values of several types
    for who in ("author", "teammate"):
        found = await missed(fixture, who)
        assert names(found) == ["contest.verdict"] * 2, "the first is sent with the verdict of now"
        assert found[-1].data is not None
        assert (found[-1].data["submission_id"], found[-1].data["verdict"]) == (submission_id, "WA")
        assert "override_reason" not in found[-1].data
    assert await missed(fixture, "other") == []


async def test_live_verdicts_are_sent_only_to_the_streams_of_the_team(fixture: VisibilityFixture) -> None:
    """A decision of the jury does not make the streams of all other participants read the database."""
    await fixture.store.clock.advance(HOUR_MS)
    submission_id, job_id = await fixture.submit("author")
    await fixture.published.finish(job_id)
    feed, received = fixture.published.api.services.user_events.feed, dict[str, list[str]]()
    async with AsyncExitStack() as opened:
        whos = ("author", "teammate", "other")
        readers = {
            who: await opened.enter_async_context(feed.subscribe(EventFilter(user_id=fixture.users[who])))
            for who in whos
        }
        await decide(fixture, submission_id, JuryDecision(official=True, verified_by=fixture.users["jury"]))
        await send(fixture, "jury", "/announcements", {"body": "One."})
        for who, reader in readers.items():
            found = received[who] = list[str]()
            while "message" not in found:
                events = [item.event for item in await asyncio.wait_for(reader.read(20), 20)]
                found += [event.kind for event in events if isinstance(event, ContestEventEntry)]
    assert received == {"author": ["verdict", "message"], "teammate": ["verdict", "message"], "other": ["message"]}


async def test_verdict_is_hidden_without_feedback(published: PublishedProblem, stack: AsyncExitStack) -> None:
    fixture = await make_fixture(
        published, stack, replace(SETTINGS, feedback=ContestFeedback.NONE, verify_required=True)
    )
    await fixture.store.clock.advance(HOUR_MS)
    submission_id, job_id = await fixture.submit("author")
    await published.finish(job_id)
    await decide(fixture, submission_id, JuryDecision(verified_by=fixture.users["jury"]))
    assert await missed(fixture, "author") == []
