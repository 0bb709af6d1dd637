"""The HTTP frame: health, version, metrics, OpenAPI, problems, headers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from adjudge import __version__
from adjudge.api.errors import MEDIA_TYPE, error_code_table
from adjudge.api.middleware import SECURITY_HEADERS
from adjudge.domain.errors import Conflict, NotFound, Unavailable
from tests.support.asgi_app import make_services
from tests.support.shared_routes import create_shared_app
from tests.support.store_harness import StoreHarness


class _Part:
    """A part whose health the test decides."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    async def check(self) -> None:
        if self.error is not None:
            raise self.error


@pytest.fixture
def part() -> _Part:
    return _Part()


@pytest.fixture
async def app(part: _Part, sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[FastAPI]:
    async with make_services(sqlite_store, tmp_path) as services:
        with create_shared_app(replace(services, checks={"database": part.check}, new_id=lambda: "minted")) as app:
            yield _with_failures(app)


def _with_failures(app: FastAPI) -> FastAPI:
    failures: dict[str, Exception] = {
        "not-found": NotFound("problem", "a-plus-b"),
        "conflict": Conflict(version=3),
        "away": Unavailable("The database is away.", retry_after_sec=7),
        "crash": ZeroDivisionError("a secret detail"),
    }

    @app.get("/fail/{name}")
    async def fail(name: str, times: int = 1) -> None:
        raise failures[name]

    return app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://adjudge") as client:
        yield client


def test_every_route_is_in_the_index(app: FastAPI) -> None:
    """An included router is tried for every request; see ADR 0112."""
    assert {type(route).__name__ for route in app.routes if not isinstance(route, Route)} == set()


async def test_live_does_not_depend_on_any_part(client: httpx.AsyncClient, part: _Part) -> None:
    part.error = OSError("gone")
    answer = await client.get("/api/v1/health/live")
    assert (answer.status_code, answer.json()) == (200, {"status": "live"})


async def test_ready_follows_its_parts(client: httpx.AsyncClient, part: _Part) -> None:
    answer = await client.get("/api/v1/health/ready")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "checks": {"database": "ok"}})
    part.error = OSError("password=hunter2 refused")
    answer = await client.get("/api/v1/health/ready")
    assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE")
    assert answer.json()["fields"] == {"silent": "database"}
    assert answer.headers["Retry-After"] == "1"
    assert "hunter2" not in answer.text


async def test_version_and_metrics(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/v1/version")).json()["version"] == __version__
    metrics = await client.get("/metrics")
    assert metrics.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "# TYPE adjudge_api_outbox_pending gauge" in metrics.text


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/fail/not-found", 404, "PROBLEM_NOT_FOUND"),
        ("/fail/conflict", 409, "CONFLICT"),
        ("/fail/away", 503, "UNAVAILABLE"),
        ("/fail/crash", 500, "INTERNAL_FAULT"),
        ("/fail/conflict?times=often", 400, "INVALID_INPUT"),
        ("/no/such/path", 404, "ROUTE_NOT_FOUND"),
    ],
)
async def test_failures_are_problems(client: httpx.AsyncClient, path: str, status: int, code: str) -> None:
    answer = await client.get(path)
    problem = answer.json()
    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert answer.headers["Content-Type"] == MEDIA_TYPE
    assert problem["request_id"] == answer.headers["X-Request-Id"] == "minted"
    assert "a secret detail" not in answer.text


async def test_a_wrong_field_is_named(client: httpx.AsyncClient) -> None:
    problem = (await client.get("/fail/conflict?times=often")).json()
    assert [item["field"] for item in problem["errors"]] == ["query.times"]


async def test_a_wrong_method_says_which_are_right(client: httpx.AsyncClient) -> None:
    answer = await client.post("/api/v1/version")
    assert (answer.status_code, answer.json()["code"], answer.headers["Allow"]) == (405, "METHOD_NOT_ALLOWED", "GET")


async def test_what_can_be_retried_says_when(client: httpx.AsyncClient) -> None:
    assert (await client.get("/fail/away")).headers["Retry-After"] == "7"
    assert "Retry-After" not in (await client.get("/fail/conflict")).headers


async def test_every_answer_has_the_security_headers(client: httpx.AsyncClient) -> None:
    for path in ("/api/v1/version", "/fail/crash", "/no/such/path"):
        headers = (await client.get(path)).headers
        assert {name: headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS


@pytest.mark.parametrize(("offered", "used"), [("trace-7.a", "trace-7.a"), ("a b\tc", "minted"), ("x" * 65, "minted")])
async def test_a_harmless_request_id_is_kept(client: httpx.AsyncClient, offered: str, used: str) -> None:
    answer = await client.get("/api/v1/version", headers={"X-Request-Id": offered})
    assert answer.headers["X-Request-Id"] == used


async def test_openapi_describes_every_route_and_its_problems(client: httpx.AsyncClient) -> None:
    schema: dict[str, Any] = (await client.get("/api/v1/openapi.json")).json()
    assert {"/api/v1/health/live", "/api/v1/health/ready", "/api/v1/version", "/metrics"} <= set(schema["paths"])
    for path in schema["paths"].values():
        for operation in path.values():
            assert MEDIA_TYPE in operation["responses"]["default"]["content"]
            assert "422" not in operation["responses"]
            assert operation["summary"]
    assert "ErrorResponse" in schema["components"]["schemas"]


def test_the_table_of_errors_has_each_code_once() -> None:
    codes = [row.code for row in error_code_table()]
    assert len(codes) == len(set(codes))
    assert {"INVALID_STATUS", "INVALID_TRANSITION", "CONFLICT", "<KIND>_NOT_FOUND"} <= set(codes)
