"""How much of a body is read for whom, and how much is said of what is wrong with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from adjudge.api.cookies import SESSION_COOKIE
from adjudge.api.middleware import RequestLimiter, RequestLimits
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.store_harness import StoreHarness

BATCH = "/api/v1/rejudge-batches"
JSON = {"Content-Type": "application/json"}
LARGE = json.dumps({"padding": "x" * 100_000}).encode()


@pytest.fixture
async def api(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    async with make_app(sqlite_store, tmp_path) as api:
        yield api


async def post(client: httpx.AsyncClient, body: bytes, path: str = BATCH) -> httpx.Response:
    return await client.post(path, content=body, headers=JSON)


async def test_large_body_needs_a_valid_credential(api: AsgiApp) -> None:
    async with api.client() as visitor, api.client("adj_unknown") as other_user, api.as_role("admin") as admin:
        assert (await post(visitor, LARGE)).json()["code"] == "BODY_TOO_LARGE"
        assert (await post(other_user, LARGE)).json()["code"] == "UNAUTHENTICATED"
        assert (await post(admin, LARGE)).json()["code"] == "INVALID_INPUT", "it was read"
        visitor.cookies.set(SESSION_COOKIE, "no-such-session")
        assert (await post(visitor, LARGE)).json()["code"] == "BODY_TOO_LARGE"


async def test_large_body_of_unknown_length_needs_a_valid_credential_too(api: AsgiApp) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(LARGE), 10_000):
            yield LARGE[at : at + 10_000]

    async with api.client() as visitor, api.client("adj_unknown") as other_user, api.as_role("admin") as admin:
        answers = [await client.post(BATCH, content=pieces(), headers=JSON) for client in (visitor, other_user, admin)]
    assert [answer.status_code for answer in answers] == [413, 401, 400]


async def test_a_few_errors_stand_for_all(api: AsgiApp) -> None:
    body = json.dumps({f"k{i}": 1 for i in range(5_000)} | {"k" * 30_000: 1}).encode()
    async with api.as_role("admin") as admin:
        answer = await post(admin, body)
    problem = answer.json()
    assert (answer.status_code, problem["code"], len(problem["errors"])) == (400, "INVALID_INPUT", 20)
    assert problem["detail"].endswith("more")
    assert len(answer.content) < 10_000


async def test_long_name_is_not_repeated(api: AsgiApp) -> None:
    async with api.as_role("admin") as admin:
        answer = await post(admin, json.dumps({"k" * 50_000: 1}).encode())
    assert answer.status_code == 400
    assert len(answer.content) < 5_000


@pytest.mark.parametrize(
    "body",
    [
        {f"k{i}": 1 for i in range(100_000)},
        {"filter": {"ids": [[] for _ in range(30_000)]}},
        {"items": [{"a": {"b": [1, 2]}} for _ in range(10_000)]},
    ],
    ids=["unknown keys", "a long list", "many small ones"],
)
async def test_body_of_too_many_values_is_refused_before_it_is_validated(api: AsgiApp, body: object) -> None:
    async with api.as_role("admin") as admin:
        for path in (BATCH, "/api/v1/submissions:batch"):
            answer = await post(admin, json.dumps(body).encode(), path)
            assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_INPUT")
            assert "more than 20000 values" in answer.json()["detail"]


async def test_body_that_trickles_is_not_waited_for() -> None:
    async def known(_: object) -> bool:
        return False

    async def trickle() -> dict[str, object]:
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def send(_: object) -> None: ...

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b""}
    bounds = RequestLimits(10_000, 10_000, 10_000, 30)
    exchange = RequestLimiter(scope, trickle, send, bounds, is_known=known, dress=lambda _: None)
    async with asyncio.timeout(30) as deadline:
        exchange.deadline = deadline
        await exchange.receive()
        first = deadline.when()
        for _ in range(1_000):
            await exchange.receive()
        last = deadline.when()
    assert first is not None
    assert last is not None
    assert last <= first + 1, "a thousand bytes earn less than a second, however long they take to come"


@pytest.mark.parametrize(
    "kinds", [["application/json", "text/plain"], ["text/plain", "application/json"]], ids=["json first", "json last"]
)
async def test_a_second_media_type_does_not_hide_a_body_of_many_values(api: AsgiApp, kinds: list[str]) -> None:
    body = json.dumps({f"k{number}": 1 for number in range(30_000)}).encode()
    async with api.as_role("admin") as admin:
        headers = [("Authorization", admin.headers["Authorization"]), *(("Content-Type", kind) for kind in kinds)]
        answer = await admin.post(BATCH, content=body, headers=headers)
    assert answer.status_code == 400
    assert "values" in answer.json()["detail"]
