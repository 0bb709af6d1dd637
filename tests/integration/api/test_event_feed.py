"""The event feed over HTTP: lines come while the response is open, it ends with the server, and streams are limited."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.contests.ccs.feed import FeedView
from adjudge.contests.ccs.version import CcsVersion
from adjudge.domain.verdict import Verdict
from adjudge.services.ccs_feed import FeedRequest
from adjudge.services.viewer import VISITOR
from tests.support.asgi_app import make_app
from tests.support.contest_fixture import ContestFixture, icpc_settings, make_contest
from tests.support.event_feeds import FeedFixture
from tests.support.http_server import RunningServer, serve
from tests.support.servers import RedisServer
from tests.support.store_harness import StoreHarness, open_store

OPEN = icpc_settings(problems_public=True)
_ENVIRONMENTS = count(1)


async def _start(server: RunningServer) -> tuple[ContestFixture, FeedFixture, asyncio.Task[None]]:
    contest = await make_contest(server.api.store, settings=OPEN)
    await server.api.store.clock.advance(60_000)
    feeds = FeedFixture(contest, (FeedView.VISITOR,))
    return contest, feeds, asyncio.create_task(feeds.writer.run())


def _read_until(lines: Iterator[str], kind: str) -> list[Any]:
    found = []
    for line in lines:
        if line:
            found.append(json.loads(line))
            if found[-1]["type"] == kind:
                break
    return found


@pytest.mark.slow
def test_lines_are_sent_while_the_response_is_open_until_the_server_stops(store_url: str, tmp_path: Path) -> None:
    with httpx.Client(timeout=60) as client, serve(store_url, tmp_path) as server:
        contest, _, scheduler = server.do(_start(server))
        url = f"{server.url}/api/contests/{contest.contest_id}/event-feed"
        with client.stream("GET", url) as response:
            assert response.status_code == 200
            assert response.headers["Content-Type"] == "application/x-ndjson"
            assert response.headers["X-Accel-Buffering"] == "no"
            lines = response.iter_lines()
            first = _read_until(lines, "state")
            assert {"contest", "problems", "teams", "state"} <= {event["type"] for event in first}
            submission = server.do(contest.submit())
            (event,) = [item for item in _read_until(lines, "submissions") if item["type"] == "submissions"]
            assert event["data"]["team_id"] == "p0"
            server.do(contest.judge(submission, Verdict.AC))
            (event,) = [item for item in _read_until(lines, "judgements") if item["type"] == "judgements"]
            assert event["data"]["judgement_type_id"] == "AC"
            server.loop.call_soon_threadsafe(scheduler.cancel)
            server.loop.call_soon_threadsafe(server.api.app.state.streams.close)
            assert [line for line in lines if "reconnect" in line] == []  # it ends, between two lines


@pytest.mark.slow
def test_feeds_count_as_streams_of_their_user(sqlite_url: str, tmp_path: Path) -> None:
    limits: dict[str, object] = {"server.streams_per_user": 1}
    with httpx.Client(timeout=60) as client, serve(sqlite_url, tmp_path, limits) as server:
        contest, _, scheduler = server.do(_start(server))
        _, secret = server.do(server.api.user("contestant"))
        url = f"{server.url}/api/contests/{contest.contest_id}/event-feed"
        own = {"Authorization": f"Bearer {secret}"}
        with client.stream("GET", url, headers=own) as response:
            lines = response.iter_lines()
            _read_until(lines, "contest")
            refused = client.get(url, headers=own)
            assert refused.status_code == 429
            assert int(refused.headers["Retry-After"]) > 0
        server.loop.call_soon_threadsafe(scheduler.cancel)


@pytest.mark.slow
async def test_events_reach_the_clients_of_other_servers(
    postgres_store: StoreHarness, redis_server: RedisServer, tmp_path: Path
) -> None:
    environment = f"feed-{next(_ENVIRONMENTS)}"
    shared: dict[str, object] = {"jobs.redis_url": redis_server.url, "server.environment": environment}
    contest = await make_contest(postgres_store, settings=OPEN)
    await postgres_store.clock.advance(60_000)
    feeds = FeedFixture(contest, (FeedView.VISITOR,))
    async with (
        open_store(postgres_store.url) as other_store,
        make_app(other_store, tmp_path, shared) as server,
        asyncio.timeout(60),
    ):
        request = FeedRequest(contest.contest_id, CcsVersion.V2023_06)
        scheduler = asyncio.create_task(feeds.writer.run())
        stream = await server.services.ccs_feed.open(VISITOR, request)
        async with aclosing(stream):
            text = ""
            while '"type":"state"' not in text:
                text += await anext(stream)
            await contest.judge(await contest.submit(), Verdict.AC)
            while '"type":"judgements"' not in text:
                text += await anext(stream)
        scheduler.cancel()
        await asyncio.gather(scheduler, return_exceptions=True)
