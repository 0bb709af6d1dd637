"""What surrounds a request: bounds, malformed bodies, HEAD and OPTIONS, other origins, traces, the server's end."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route, Router

from adjudge.api.app import create_app
from adjudge.api.errors import MEDIA_TYPE
from adjudge.api.middleware import RouteIndex
from adjudge.api.schema.base import ApiModel
from adjudge.observe import logs
from tests.support.asgi_app import make_services
from tests.support.shared_routes import create_shared_app
from tests.support.store_harness import StoreHarness

LIMITS: dict[str, object] = {
    "server.body_limit_bytes": 1_024,
    "server.upload_limit_bytes": 4_096,
    "server.cors_origins": "https://pages.example",
}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class _Words(ApiModel):
    words: str
    nested: object = None


@pytest.fixture
def limits() -> dict[str, object]:
    """The server's; a test may have others."""
    return LIMITS


@pytest.fixture
async def app(sqlite_store: StoreHarness, tmp_path: Path, limits: dict[str, object]) -> AsyncIterator[FastAPI]:
    async with make_services(sqlite_store, tmp_path, limits) as services:
        with create_shared_app(services) as app:
            yield _with_routes(app)


def _with_routes(app: FastAPI) -> FastAPI:
    @app.post("/echo")
    async def echo(body: _Words, request: Request) -> dict[str, str]:
        return {"words": body.words, "trace_id": request.state.trace_id}

    @app.post("/swallow")
    async def swallow(request: Request) -> int:
        return sum([len(piece) async for piece in request.stream()])

    @app.get("/slow")
    async def slow(wait: float = 0) -> str:
        await asyncio.sleep(1.2 if wait else 60)
        return "done"

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        async def events() -> AsyncIterator[str]:
            yield "data: first\n\n"
            await asyncio.Event().wait()

        return StreamingResponse(events(), media_type="text/event-stream")

    return app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://adjudge") as client:
        yield client


async def _pieces(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * 512


async def test_only_packages_and_files_may_be_as_large_as_packages(client: httpx.AsyncClient) -> None:
    body = b"x" * 2_048
    for path in ("/problems/sum:publish", "/problems/sum", "/problems:importer", "/problems"):
        assert (await client.post(f"/api/v1{path}", content=body)).status_code == 413
    for path in ("/problems:import", "/files"):
        assert (await client.post(f"/api/v1{path}", content=body)).status_code == 401
        assert (await client.post(f"/api/v1{path}", content=body * 3)).status_code == 413


@pytest.mark.parametrize("route", ["/swallow", "/echo"])
async def test_a_body_is_too_large_by_its_word_or_by_what_comes(client: httpx.AsyncClient, route: str) -> None:
    headers = {"Content-Type": "application/json"}
    for body in (b"x" * 1_025, _pieces(3)):
        answer = await client.post(route, content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")
        assert answer.headers["Content-Type"] == MEDIA_TYPE
    assert (await client.post("/swallow", content=_pieces(2))).json() == 1_024


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"words": ', "MALFORMED_BODY"),
        (b"\xff\xfe", "MALFORMED_BODY"),
        (b'{"words": "\xc3\x28"}', "MALFORMED_BODY"),
        (b'{"words": "x", "\\ud800": 1}', "INVALID_INPUT"),
        (b'{"words": 1}', "INVALID_INPUT"),
        (b'{"words": null}', "INVALID_INPUT"),
        (b"[]", "INVALID_INPUT"),
        (b"", "INVALID_INPUT"),
        (b"NaN", "INVALID_INPUT"),
    ],
)
async def test_a_malformed_body_is_the_callers_fault(client: httpx.AsyncClient, body: bytes, code: str) -> None:
    answer = await client.post("/echo", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, code)


async def test_a_body_nested_without_end_is_refused(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    async with make_services(sqlite_store, tmp_path, {"server.anonymous_body_limit_bytes": 1_000_000}) as services:
        transport = httpx.ASGITransport(app=_with_routes(create_app(services)), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://adjudge") as client:
            body = b'{"words": "x", "nested": ' + b"[" * 200_000
            answer = await client.post("/echo", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, "MALFORMED_BODY")


@pytest.mark.parametrize("odd", ["\\u0000", "\\ud800", "\\udfff\\ud800"])
async def test_texts_that_cannot_be_stored_are_the_callers_fault(client: httpx.AsyncClient, odd: str) -> None:
    for body in (f'{{"name": "a{odd}b", "password": "long"}}', f'{{"name": "ada", "password": "long{odd}"}}'):
        headers = {"Content-Type": "application/json"}
        assert (await client.post("/api/v1/login", content=body, headers=headers)).status_code in (400, 401)
    assert (await client.get("/api/v1/health/%00")).json()["code"] == "ROUTE_NOT_FOUND"


@pytest.mark.parametrize("limits", [LIMITS | {"server.request_timeout_sec": 1.0}], ids=["hurried"])
async def test_a_request_has_its_time_and_waiting_is_no_slowness(client: httpx.AsyncClient) -> None:
    late, waited = await asyncio.gather(client.get("/slow"), client.get("/slow", params={"wait": 5}))
    assert (late.status_code, late.json()["code"]) == (503, "TIMED_OUT")
    assert late.headers["Retry-After"] == "1"
    assert waited.json() == "done"


async def test_head_is_get_without_a_body(client: httpx.AsyncClient) -> None:
    got, head = await client.get("/api/v1/version"), await client.head("/api/v1/version")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Content-Length"] == got.headers["Content-Length"]
    assert (await client.head("/stream")).status_code == 200, "a stream has no end, its head has"
    assert (await client.head("/no/such/path")).status_code == 404


async def test_options_say_what_a_path_takes(client: httpx.AsyncClient) -> None:
    answer = await client.options("/api/v1/version")
    assert (answer.status_code, answer.headers["Allow"]) == (204, "GET")


async def test_other_origins_pages_are_let_in_by_name_and_without_cookies(client: httpx.AsyncClient) -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "Authorization"}
    let_in = await client.options("/echo", headers=asked | {"Origin": "https://pages.example"})
    assert let_in.headers["Access-Control-Allow-Origin"] == "https://pages.example"
    assert "Access-Control-Allow-Credentials" not in let_in.headers
    other = await client.options("/echo", headers=asked | {"Origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in other.headers


@pytest.mark.parametrize(
    ("given", "kept"), [(f"00-{TRACE}-00f067aa0ba902b7-01", True), ("00-0-0-0", False), (None, False)]
)
async def test_a_trace_is_continued_or_begun_and_logged(
    client: httpx.AsyncClient, given: str | None, kept: bool
) -> None:
    headers = {"traceparent": given} if given else {}
    said = io.StringIO()
    logs.configure("info", "json", said)
    trace_id = (await client.post("/echo", json={"words": "x"}, headers=headers)).json()["trace_id"]
    logs.configure("warning")
    lines = [json.loads(line) for line in said.getvalue().splitlines()]
    assert (trace_id == TRACE) is kept
    assert len(trace_id) == 32
    assert [line["trace_id"] for line in lines if line["event"] == "request_finished"] == [trace_id]


async def test_streams_get_a_reconnect_event_when_the_server_stops(app: FastAPI) -> None:
    sent: list[dict[str, object]] = []
    has_begun = asyncio.Event()

    async def receive() -> dict[str, object]:
        await asyncio.Event().wait()
        return {}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)
        if message.get("body"):
            has_begun.set()

    scope: dict[str, object] = {
        "type": "http",
        "method": "GET",
        "path": "/stream",
        "headers": [],
        "query_string": b"",
        "client": None,
    }
    request = asyncio.create_task(app(scope, receive, send))  # type: ignore[arg-type]  # plain dictionaries
    await has_begun.wait()
    app.state.streams.close()
    await request
    assert sent[-1] == {"type": "http.response.body", "body": b"event: reconnect\ndata: {}\n\n"}


@pytest.mark.parametrize(
    ("method", "path", "answer"),
    [
        ("GET", "/things", "GET /things"),
        ("POST", "/things", "POST /things"),
        ("GET", "/things/one", "GET /things/{name}"),
        ("GET", "/things/new", "GET /things/{name}"),
        ("POST", "/things/new", "POST /things/new"),
        ("GET", "/things/one/parts/new", "GET /things/{name}/parts/new"),
        ("GET", "/things/one/parts/two", "GET /things/{name}/parts/{part}"),
        ("GET", "/things/one:close", "GET /things/{name}:close"),
        ("GET", "/other/a/b", "GET /{path:path}"),
        ("GET", "/things/", "GET /{path:path}"),
    ],
)
async def test_the_index_finds_the_route_that_was_added_first(method: str, path: str, answer: str) -> None:
    routes = [
        ("GET", "/things/{name}:close"),
        ("GET", "/things"),
        ("POST", "/things"),
        ("GET", "/things/{name}"),
        ("GET", "/things/new"),
        ("POST", "/things/new"),
        ("GET", "/things/{name}/parts/new"),
        ("GET", "/things/{name}/parts/{part}"),
        ("GET", "/{path:path}"),
    ]
    router = Router([_route(*found) for found in routes])
    for app in (RouteIndex(router), router):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://adjudge") as client:
            assert (await client.request(method, path)).text == answer


async def test_the_router_responds_to_what_the_index_does_not_find() -> None:
    router = Router([_route("GET", "/things"), _route("GET", "/things/{name}")])
    index = RouteIndex(router)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=index), base_url="http://adjudge") as client:
        assert (await client.get("/nothing")).status_code == 404
        assert (await client.get("/x" + "/" * 10_000)).status_code == 404
        assert (await client.post("/things")).status_code == 405
        assert (await client.get("/added")).status_code == 404
        router.routes.append(_route("GET", "/added"))
        assert (await client.get("/added")).text == "GET /added"


def _route(method: str, path: str) -> Route:
    async def respond(_request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"{method} {path}")

    return Route(path, respond, methods=[method])
