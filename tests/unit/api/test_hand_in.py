"""The short way in: it answers as the routes do, and leaves to them what is not simple."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from adjudge.api.auth import known_by
from adjudge.api.hand_in import HandIn
from adjudge.api.middleware import RequestMiddleware
from adjudge.api.request_limits import OpenStreams, RequestLimits
from adjudge.domain.errors import Unavailable
from adjudge.domain.ids import new_id
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.store_harness import StoreHarness

ROOT = "/api/v1/submissions"
LONG_WAY = {"Content-Type": "application/json; charset=utf-8"}
OWN_WORDS = ("request_id", "submission_id", "job_id")


@pytest.fixture
async def published_problem(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A problem to hand in to."""
    async with make_app(sqlite_store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


class Routes:
    """Stands where the routes are; notes what comes through."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.failed = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        try:
            while more:
                message = await receive()
                body += message["body"]
                more = message["more_body"]
        except HTTPException as error:
            self.failed = error.status_code
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": 299, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def in_front(published_problem: PublishedProblem, routes: Routes, body_bytes: int = 1_000_000) -> httpx.AsyncClient:
    """A client of the short way alone, in its envelope."""
    short_way = HandIn(routes, parts=published_problem.api.parts, root="/api/v1")
    bounds, is_known = RequestLimits(body_bytes, body_bytes, 0, 5.0), known_by(published_problem.api.parts.credentials)
    app = RequestMiddleware(short_way, mint_request_id=new_id, bounds=bounds, is_known=is_known, streams=OpenStreams())
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://adjudge")


async def test_json_with_a_token_needs_no_route(published_problem: PublishedProblem) -> None:
    routes, (_, token) = Routes(), await published_problem.api.user("contestant")
    async with in_front(published_problem, routes) as client:
        client.headers["Authorization"] = f"Bearer {token}"
        one = await client.post(ROOT, json=published_problem.submission_body())
        many = await client.post(f"{ROOT}:batch", json={"items": [published_problem.submission_body()] * 3})
        wrong = await client.post(ROOT, json=published_problem.submission_body(language="klingon"))
    assert (one.status_code, many.status_code, wrong.status_code) == (202, 202, 400)
    assert one.json()["status"] == "pending"
    assert len(many.json()["items"]) == 3
    assert routes.bodies == []
    assert (await published_problem.api.store.row("SELECT count(*) AS n FROM submissions"))["n"] == 4


@pytest.mark.parametrize(
    "change",
    [
        {"headers": {"Authorization": "Bearer adj_wrong"}},
        {"headers": {"Authorization": "Basic abc"}},
        {"headers": {"Authorization": ""}},
        {"headers": {"Content-Type": "text/plain"}},
        {"headers": [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]},
        {"content": b'{"problem": "sum"'},
        {"content": b'{"problem": 7}'},
        {"content": b""},
        {"method": "PUT"},
        {"url": f"{ROOT}:other"},
    ],
)
async def test_what_is_not_simple_reaches_the_routes_as_it_came(
    published_problem: PublishedProblem, change: dict[str, Any]
) -> None:
    routes, (_, token) = Routes(), await published_problem.api.user("contestant")
    headers = httpx.Headers({"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    if isinstance(extra := change.get("headers", {}), dict):
        headers.update(extra)
    else:
        headers = httpx.Headers([*headers.multi_items(), *extra])
    asked = (
        {"method": "POST", "url": ROOT, "content": json.dumps(published_problem.submission_body()).encode()}
        | change
        | {"headers": headers}
    )
    async with in_front(published_problem, routes) as client:
        assert (await client.request(**asked)).status_code == 299
    assert routes.bodies == [asked["content"]]


async def test_somebody_who_may_not_is_refused_by_the_route(published_problem: PublishedProblem) -> None:
    routes = Routes()
    async with in_front(published_problem, routes) as client:
        assert (await client.post(ROOT, json=published_problem.submission_body())).status_code == 299, (
            "without a credential"
        )


async def test_a_body_that_is_too_large_is_refused_by_the_route(published_problem: PublishedProblem) -> None:
    routes, (_, token) = Routes(), await published_problem.api.user("contestant")

    async def pieces() -> AsyncIterator[bytes]:
        yield b"x" * 60
        yield b"x" * 60

    async with in_front(published_problem, routes, body_bytes=100) as client:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        answer = await client.post(ROOT, content=pieces(), headers=headers)
    assert answer.status_code == 299
    assert routes.failed == 413


async def test_a_client_that_hangs_up_is_for_the_routes(published_problem: PublishedProblem) -> None:
    _, token = await published_problem.api.user("contestant")
    heard: list[str] = []

    async def routes(_scope: Scope, receive: Receive, _send: Send) -> None:
        heard.append((await receive())["type"])

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def send(_message: Message) -> None:
        raise AssertionError("nobody is there to be told")

    headers = [(b"authorization", f"Bearer {token}".encode()), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": ROOT, "headers": headers}
    await HandIn(routes, parts=published_problem.api.parts, root="/api/v1")(scope, gone, send)
    assert heard == ["http.disconnect"]


async def test_a_database_that_is_away_is_answered_here(
    published_problem: PublishedProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever surrounds the routes (CORS, the log of failures) sees an answer, as it does where the routes look."""
    said: list[Message] = []

    async def away(_secret: str) -> None:
        raise Unavailable("The database is away.")

    async def never() -> Message:
        raise AssertionError("the body is nobody's yet")

    async def send(message: Message) -> None:
        said.append(message)

    monkeypatch.setattr(published_problem.api.parts.credentials, "viewer_for_token", away)
    headers = [(b"authorization", b"Bearer adj_x"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": ROOT, "headers": headers, "state": {"request_id": "r"}}
    await HandIn(Routes(), parts=published_problem.api.parts, root="/api/v1")(scope, never, send)
    assert said[0]["status"] == 503
    assert json.loads(said[1]["body"])["request_id"] == "r"


def _without_own_words(answer: httpx.Response) -> tuple[int, Any, set[str]]:
    body = {name: value for name, value in answer.json().items() if name not in OWN_WORDS}
    return answer.status_code, body, set(answer.headers)


async def test_both_ways_answer_alike(published_problem: PublishedProblem) -> None:
    good, keyed = published_problem.submission_body(), {"Idempotency-Key": "k"}
    asked: list[tuple[dict[str, Any], dict[str, str]]] = [
        (good, {}),
        (published_problem.submission_body(problem="nowhere"), {}),
        (published_problem.submission_body(language="klingon"), {}),
        (published_problem.submission_body(source=" "), {}),
        (published_problem.submission_body(source="a\0b"), {}),
        (published_problem.submission_body(source="\ud800"), {}),
        (published_problem.submission_body(source="x" * 100_001), {}),
        (published_problem.submission_body(extra=1), {}),
        ({}, {}),
        (good, keyed),
        (published_problem.submission_body(source="other"), keyed),
        (good, {"Idempotency-Key": ""}),
        (good, {"Idempotency-Key": "k" * 300}),
    ]
    async with published_problem.user_client() as client:
        for body, headers in asked:
            content = json.dumps(body).encode()
            answers = [
                await client.post(ROOT, content=content, headers={"Content-Type": "application/json"} | headers | way)
                for way in ({}, LONG_WAY)
            ]
            short, long = (_without_own_words(answer) for answer in answers)
            assert short == long, body


async def test_both_ways_take_of_the_same_limits(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    limits: dict[str, object] = {"admission.in_flight": 2, "admission.health_gate": False}
    async with make_app(sqlite_store, tmp_path, limits) as api:
        published_problem = await publish_problem(api)
        async with published_problem.user_client() as client:
            ways: list[dict[str, str]] = [{}, LONG_WAY, {}, LONG_WAY]
            answers = [await client.post(ROOT, json=published_problem.submission_body(), headers=way) for way in ways]
    assert [answer.status_code for answer in answers] == [202, 202, 429, 429]
    assert _without_own_words(answers[2]) == _without_own_words(answers[3])
    assert answers[2].headers["Retry-After"] == "1"
