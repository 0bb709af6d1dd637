"""Clients of the event feed: who reads what, from where, how it is kept alive, and when it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.contests import lifecycle
from adjudge.contests.ccs.version import CcsVersion
from adjudge.domain.contest import ContestRole
from adjudge.domain.verdict import Verdict
from adjudge.services.ccs_feed import CcsFeedService, FeedRequest
from adjudge.services.viewer import VISITOR, Viewer
from adjudge.store.accounts import api_tokens
from adjudge.store.contests import commands
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.contest_fixture import ContestFixture, icpc_settings, make_contest
from tests.support.event_feeds import FeedFixture
from tests.support.feed_consumer import FeedConsumer, computed_rows, expected_rows
from tests.support.store_harness import StoreHarness

MINUTE_MS = 60_000
NDJSON = "application/x-ndjson"
COLLECTIONS = (
    "judgement-types",
    "languages",
    "problems",
    "groups",
    "organizations",
    "teams",
    "persons",
    "accounts",
    "submissions",
    "judgements",
    "runs",
    "clarifications",
    "awards",
)


@dataclass
class Scene:
    """A contest, its feeds and clients of them."""

    api: AsgiApp
    contest: ContestFixture
    feeds: FeedFixture

    @property
    def service(self) -> CcsFeedService:
        return self.api.services.ccs_feed

    def request(self, **fields: Any) -> FeedRequest:
        return FeedRequest(self.contest.contest_id, CcsVersion.V2023_06, **fields)

    async def viewer(self, user_id: str) -> tuple[Viewer, str]:
        """A user who takes part, and a token of theirs."""
        secret = api_tokens.new_secret()
        token = api_tokens.NewApiToken(f"t-{secret[-20:]}", user_id, "test", secret, ("*",))
        await self.api.store.transact(lambda tx: api_tokens.insert(tx, token))
        found = await self.api.services.credentials.viewer_for_token(secret)
        assert found is not None
        return found, secret

    async def judge(self) -> tuple[Viewer, str]:
        """A member of the jury."""
        user_id, secret = await self.api.user("contestant")
        granted = [(user_id, ContestRole.JUDGE)]
        await self.api.store.transact(
            lambda tx: commands.grant_roles(tx, self.contest.contest_id, granted, actor=user_id)
        )
        found = await self.api.services.credentials.viewer_for_token(secret)
        assert found is not None
        return found, secret

    async def get(self, path: str, token: str | None = None, prefix: str = "/api", **query: Any) -> httpx.Response:
        """Read something of the contest."""
        await self.api.services.scoreboards.feed.catch_up()
        async with self.api.client(token) as client:
            return await client.get(f"{prefix}/contests/{self.contest.contest_id}/{path}", params=query)

    @asynccontextmanager
    async def scheduler(self) -> AsyncIterator[None]:
        """A scheduler that fills the feeds."""
        task = asyncio.create_task(self.feeds.writer.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@pytest.fixture
async def scene(store: StoreHarness, tmp_path: Path) -> AsyncIterator[Scene]:
    """A running contest on each database in turn; visitors see its problems."""
    async with make_app(store, tmp_path) as api:
        contest = await make_contest(store, settings=icpc_settings(problems_public=True))
        await store.clock.advance(10 * MINUTE_MS)
        yield Scene(api, contest, FeedFixture(contest))


async def read_until(stream: AsyncGenerator[str, None], kind: str) -> str:
    """Read until an event of a type has come; return everything."""
    text = ""
    async with asyncio.timeout(20):
        while f'"type":"{kind}"' not in text:
            text += await anext(stream)
    return text


@pytest.mark.slow
async def test_the_feed_up_to_the_present_gives_the_scoreboard_of_each_reader(scene: Scene) -> None:
    await scene.contest.judge(await scene.contest.submit(0, 0), Verdict.AC)
    await scene.api.store.clock.advance(240 * MINUTE_MS)
    await scene.contest.judge(await scene.contest.submit(1, 0), Verdict.AC)  # since the freeze
    _, jury_token = await scene.judge()
    _, own_token = await scene.viewer(scene.contest.users[scene.contest.participants[1]])
    async with scene.scheduler():
        for token, solved in ((None, 1), (own_token, 1), (jury_token, 2)):
            for prefix in ("/api", "/api/2023-06", "/api/2026-01"):
                answer = await scene.get("event-feed", token, prefix, stream="false")
                assert (answer.status_code, answer.headers["content-type"]) == (200, NDJSON)
                consumer = FeedConsumer()
                consumer.read(answer.text)
                consumer.check_references()
                expected = expected_rows((await scene.get("scoreboard", token, prefix)).json())
                assert computed_rows(consumer) == expected
                assert sum(row["num_solved"] for row in expected) == solved
                assert len(consumer.objects["judgements"]) == solved


async def test_the_feed_has_what_the_collections_have(scene: Scene) -> None:
    await scene.contest.judge(await scene.contest.submit(0, 0), Verdict.AC)
    _, token = await scene.judge()
    async with scene.scheduler():
        for prefix in ("/api/2023-06", "/api/2026-01"):
            consumer = FeedConsumer()
            consumer.read((await scene.get("event-feed", token, prefix, stream="false")).text)
            for kind in COLLECTIONS:
                assert list(consumer.objects[kind].values()) == (await scene.get(kind, token, prefix)).json(), kind
            assert consumer.state == (await scene.get("state", token, prefix)).json()


async def test_live_events_come_when_they_happen_and_a_token_resumes(scene: Scene) -> None:
    consumer = FeedConsumer()
    async with scene.scheduler():
        stream = await scene.service.open(VISITOR, scene.request())
        async with aclosing(stream):
            consumer.read(await read_until(stream, "state"))
            submission = await scene.contest.submit(0, 0)
            consumer.read(await read_until(stream, "submissions"))
        await scene.contest.judge(submission, Verdict.AC)
        stream = await scene.service.open(VISITOR, scene.request(since_token=consumer.token))
        async with aclosing(stream):
            text = await read_until(stream, "judgements")
        assert "submissions" not in [json.loads(line)["type"] for line in text.splitlines() if line]
        consumer.read(text)
    assert [item["judgement_type_id"] for item in consumer.objects["judgements"].values()] == ["AC"]


async def test_a_silent_feed_sends_empty_lines(scene: Scene) -> None:
    async with scene.scheduler():
        stream = await scene.service.open(VISITOR, scene.request())
        async with aclosing(stream):
            await read_until(stream, "state")
        feed = await scene.feeds.open(scene.feeds.views[0])
        token = f"{feed.id[-12:]}-{feed.last_sequence}"
        silent = await replace(scene.service, newline_sec=0.01).open(VISITOR, scene.request(since_token=token))
        async with aclosing(silent):
            assert [await asyncio.wait_for(anext(silent), 20) for _ in range(3)] == ["\n"] * 3


async def test_an_empty_line_is_sent_at_least_every_ten_seconds(scene: Scene) -> None:
    assert scene.service.newline_sec < 10


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"since_token": "33874"}, "since_token: '33874' is not a token"),
        ({"since_token": "0123456789ab-1"}, "since_token: this token belongs to another contest or to another role"),
        ({"since_token": ""}, "since_token: '' is not a token"),
        ({"since_id": "7"}, "since_id: events have tokens; use since_token."),
        ({"stream": "maybe"}, "stream:"),
    ],
)
async def test_bad_requests_are_refused_with_the_reason(scene: Scene, query: dict[str, str], message: str) -> None:
    answer = await scene.get("event-feed", **query)
    assert answer.status_code == 400
    assert answer.json()["code"] == 400
    assert answer.json()["message"].startswith(message)


async def test_a_token_of_the_jury_is_refused_to_others(scene: Scene) -> None:
    _, token = await scene.judge()
    async with scene.scheduler():
        text = (await scene.get("event-feed", token, stream="false")).text
    last = json.loads(text.splitlines()[-1])["token"]
    assert (await scene.get("event-feed", since_token=last)).status_code == 400


async def test_a_contest_that_is_hidden_has_no_feed(scene: Scene) -> None:
    await scene.api.store.clock.advance(-60 * MINUTE_MS)
    await scene.contest.transact(
        lambda tx: lifecycle.unpublish(tx, scene.contest.contest_id, actor="ada", reason="not yet")
    )
    answer = await scene.get("event-feed")
    assert (answer.status_code, answer.json()["code"]) == (404, 404)
    assert await scene.api.store.rows("SELECT id FROM contest_feeds") == []


async def test_without_a_scheduler_the_present_is_not_known(scene: Scene) -> None:
    impatient = replace(scene.service, present_sec=0.01)
    with pytest.raises(Exception, match="is a scheduler running"):
        await impatient.open(VISITOR, scene.request(is_stream=False))


async def test_a_stream_ends_when_its_reader_loses_the_role(scene: Scene) -> None:
    viewer, _ = await scene.judge()
    watchful = replace(scene.service, newline_sec=0.01, check_sec=0.0)
    async with scene.scheduler():
        stream = await watchful.open(viewer, scene.request())
        async with aclosing(stream):
            await read_until(stream, "state")
            user_id = viewer.user_id or ""
            await scene.contest.transact(
                lambda tx: commands.revoke_role(tx, scene.contest.contest_id, user_id, ContestRole.JUDGE, actor=user_id)
            )
            async with asyncio.timeout(20):
                rest = [text async for text in stream]
    assert set(rest) <= {"\n"}


async def test_participants_with_an_own_clock_read_the_feed_of_visitors(scene: Scene) -> None:
    user_id = scene.contest.users[scene.contest.participants[0]]
    viewer, _ = await scene.viewer(user_id)
    await scene.api.store.write("UPDATE participants SET delay_us = 1 WHERE user_id = :id", id=user_id)
    await scene.service.open(viewer, scene.request())
    other, _ = await scene.viewer(scene.contest.users[scene.contest.participants[1]])
    await scene.service.open(other, scene.request())
    rows = await scene.api.store.rows("SELECT view FROM contest_feeds ORDER BY id")
    assert [row["view"] for row in rows] == ["visitor", "participant"]
