"""Requests, retries and responses of the client."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import adjudge.client as client_package
from adjudge.client import (
    ApiError,
    AuthenticationError,
    BadResponseError,
    Client,
    ClientRetryPolicy,
    ConflictError,
    ExecutionSpec,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitedError,
    ServerError,
    SubmissionSpec,
    TriggerSpec,
    UnreachableError,
    WaitTimeoutError,
    submissions,
)
from adjudge.client.client import Operations, _Operation, _StreamOperation
from adjudge.domain.retry import RetryPolicy

Call = Callable[..., Any]
NO_OPERATIONS = {"client", "decode", "errors", "models", "requests", "retry", "sans_io", "sse", "transport"}
"""Modules of the client that define no operations."""
SUBMITTED = {"submission_id": "s1", "job_id": "j1", "status": "pending"}
SUBMISSION = {
    "id": "s1",
    "user_id": "u",
    "user_name": "ada",
    "problem": "sum",
    "language": "cpp20",
    "status": "pending",
    "verdict": None,
    "score": None,
    "time_ms": None,
    "mem_kb": None,
    "version": 1,
    "created_at": "2026-01-31T12:00:00.000Z",
    "finished_at": None,
}
ACCEPTED = SUBMISSION | {"status": "accepted", "verdict": "AC"}


class Server:
    """Returns the given responses in order and records the requests."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def lines(self) -> list[str]:
        return [f"{item.method} {item.url.raw_path.decode()}" for item in self.requests]


def problem(status: int, code: str = "X", **headers: str) -> httpx.Response:
    body = {"status": status, "code": code, "detail": "No.", "request_id": "r1"}
    return httpx.Response(status, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()})


def stream(*events: str) -> httpx.Response:
    return httpx.Response(200, text="".join(events), headers={"Content-Type": "text/event-stream"})


def event(name: str, event_id: str = "", **data: Any) -> str:
    return f"{f'id: {event_id}' if event_id else ': none'}\nevent: {name}\ndata: {json.dumps(data)}\n\n"


def test_submission_is_retried_with_one_key(call: Call) -> None:
    lost = httpx.ReadTimeout("too late")
    server = Server(lost, problem(503), problem(429, retry_after="0"), httpx.Response(202, json=SUBMITTED))
    assert call(server, "submit", "sum", "cpp", "int main() {}").submission_id == "s1"
    assert len({item.headers["Idempotency-Key"] for item in server.requests}) == 1
    assert {item.headers["Authorization"] for item in server.requests} == {"Bearer adj_x"}
    assert json.loads(server.requests[-1].content) == {"problem": "sum", "language": "cpp", "source": "int main() {}"}


def test_given_key_is_sent(call: Call) -> None:
    server = Server(httpx.Response(202, json={"items": [SUBMITTED]}))
    (made,) = call(server, "submit_batch", [SubmissionSpec("sum", "cpp", "x")], key="mine")
    assert (made.job_id, server.requests[0].headers["Idempotency-Key"]) == ("j1", "mine")


def test_request_that_is_not_repeatable_is_not_retried(call: Call) -> None:
    server = Server(httpx.ReadTimeout("too late"))
    with pytest.raises(UnreachableError) as raised:
        call(server, "rejudge", {"problem": "sum"}, reason="x")
    assert raised.value.was_sent
    server = Server(problem(503))
    with pytest.raises(ServerError):
        call(server, "rejudge", {"problem": "sum"}, reason="x")
    batch = {"id": "b", "state": "running", "policy": "latest", "reason": "x", "total": 1, "ended": 0}
    server = Server(httpx.ConnectError("nobody"), problem(429), httpx.Response(202, json=batch))
    assert call(server, "rejudge", {"problem": "sum"}, reason="x").id == "b", "it reached nobody, or was refused"


def test_execution_is_retried_with_one_key(call: Call) -> None:
    answer = httpx.Response(202, json={"id": "e", "state": "pending", "runs": []})
    server = Server(httpx.ReadTimeout("too late"), problem(503), answer)
    assert call(server, "execute", "python3", "print(1)").id == "e"
    assert len({request.headers["Idempotency-Key"] for request in server.requests}) == 1
    assert {request.url.query for request in server.requests} == {b"wait=30"}


def test_retries_are_limited_and_respect_retry_after(call: Call) -> None:
    server = Server(*[httpx.ConnectError("nobody")] * 4)
    with pytest.raises(UnreachableError):
        call(server, "me")
    assert len(server.requests) == 4
    server = Server(problem(429, "QUOTA_EXHAUSTED", retry_after="3600"))
    with pytest.raises(RateLimitedError) as raised:
        call(server, "submit", "sum", "cpp", "x")
    assert (raised.value.code, raised.value.retry_after_sec) == ("QUOTA_EXHAUSTED", 3600)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidRequestError),
        (401, AuthenticationError),
        (403, PermissionDeniedError),
        (404, NotFoundError),
        (409, ConflictError),
        (413, InvalidRequestError),
        (500, ServerError),
    ],
)
def test_error_response_has_a_type_and_details(call: Call, status: int, kind: type[ApiError]) -> None:
    with pytest.raises(kind) as raised:
        call(Server(problem(status, "SOME_CODE")), "me")
    error = raised.value
    assert (error.status, error.code, error.detail, error.request_id) == (status, "SOME_CODE", "No.", "r1")


def test_unexpected_response_is_reported(call: Call) -> None:
    with pytest.raises(BadResponseError):
        call(Server(httpx.Response(200, text="<html>")), "me")
    with pytest.raises(BadResponseError):
        call(Server(httpx.Response(200, json=[])), "problems")
    with pytest.raises(InvalidRequestError) as raised:
        call(Server(httpx.Response(301, headers={"Location": "https://elsewhere"})), "me")
    assert raised.value.code == "HTTP_301"
    with pytest.raises(ValueError, match="it must start with"):
        Client("judge.example.org")


def test_unknown_and_missing_fields_are_accepted(call: Call) -> None:
    found = call(Server(httpx.Response(200, json=ACCEPTED | {"mood": "good"})), "submission", "s1")
    assert (found.verdict, found.is_finished, found.extra) == ("AC", True, {"mood": "good"})
    assert call(Server(httpx.Response(200, json={"id": "u", "name": "ada"})), "me").role is None


def test_names_are_quoted_in_paths(call: Call) -> None:
    server = Server(problem(404))
    with pytest.raises(NotFoundError):
        call(server, "problem", "../users?x=1")
    assert server.lines == ["GET /api/v1/problems/..%2Fusers%3Fx%3D1"]


def test_interrupted_stream_resumes_after_the_last_event(call: Call) -> None:
    first = stream("retry: 1000\n\n", event("status", "7", submission_id="s1", to="judging", verdict=None))
    cut = stream(": alive\n\n", event("progress", submission_id="s1", stage="judging", done=1, total=2), "event: sta")
    last = stream(event("reconnect"), event("status", "9", submission_id="s1", to="wrong_answer", verdict="WA"))
    end = stream(event("end", submission_id="s1", status="wrong_answer"))
    server = Server(first, httpx.ReadError("cut"), cut, last, end)
    events = call(server, "watch", "s1")
    assert [(item.name, item.status) for item in events] == [
        ("status", "judging"),
        ("progress", None),
        ("end", "wrong_answer"),
    ]
    assert (events[1].done, events[1].total) == (1, 2)
    assert [item.headers.get("Last-Event-ID") for item in server.requests] == [None, "7", "7", "7", "7"]


def test_wait_polls_if_streams_are_blocked(call: Call) -> None:
    pending, accepted = httpx.Response(200, json=SUBMISSION), httpx.Response(200, json=ACCEPTED)
    server = Server(pending, stream(event("end", submission_id="s1", status="accepted")), accepted)
    assert [item.verdict for item in call(server, "wait", ["s1"])] == ["AC"]
    proxy = httpx.Response(200, text="<html>", headers={"Content-Type": "text/html"})
    server = Server(
        *[httpx.Response(200, json=SUBMISSION), proxy, httpx.Response(200, json=SUBMISSION)],
        *[httpx.Response(200, json=SUBMISSION), httpx.Response(200, json=ACCEPTED)],
    )
    assert [item.verdict for item in call(server, "wait", ["s1"])] == ["AC"]
    assert server.lines[-2:] == ["GET /api/v1/submissions/s1?wait=30.0"] * 2
    with pytest.raises(NotFoundError):
        call(Server(problem(404)), "wait", ["s1"])


def test_wait_ends_at_its_timeout(call: Call) -> None:
    times = iter([0.0, 1.0, 2.0, 6.0])
    retry = ClientRetryPolicy(RetryPolicy(max_retries=0), clock=lambda: next(times))
    server = Server(*[httpx.Response(200, json=SUBMISSION) for _ in range(2)])
    with pytest.raises(WaitTimeoutError, match="still pending"):
        call(server, "wait", ["s1"], timeout_sec=5, retry=retry)
    assert server.lines == ["GET /api/v1/submissions/s1", "GET /api/v1/submissions/s1?wait=3.0"]


def test_execution_limits_are_sent_only_if_given(call: Call) -> None:
    server = Server(httpx.Response(202, json={"items": []}))
    wanted = [ExecutionSpec("c", "x", ["1", "2"]), ExecutionSpec("c", "y", cpu_ms=100)]
    assert call(server, "execute_batch", wanted, wait_sec=5) == ()
    assert json.loads(server.requests[0].content)["items"] == [
        {"language": "c", "source": "x", "stdins": ["1", "2"]},
        {"language": "c", "source": "y", "stdins": [""], "limits": {"cpu_ms": 100}},
    ]


CHAIN = {"id": "c1", "name": "n", "description": None, "enabled": True, "version": 4, "dag": {"nodes": [1]}}


def test_chain_is_applied_with_one_request(call: Call) -> None:
    done = {"outcome": "changed", "triggers": {"old": "removed", "hook": "created"}, "secrets": {"hook": "shh"}}
    server = Server(httpx.Response(200, json={"chain": CHAIN, **done}))
    hook = TriggerSpec("hook", "webhook", {}, enabled=False)
    applied = call(server, "chain_apply", "n", {"nodes": [2]}, enabled=False, triggers=[hook])
    assert (applied.outcome, applied.chain.version, applied.secrets) == ("changed", 4, {"hook": "shh"})
    assert applied.triggers == {"old": "removed", "hook": "created"}
    assert server.lines == ["POST /api/v1/chains:apply"]
    assert json.loads(server.requests[0].content) == {
        "name": "n",
        "description": None,
        "dag": {"nodes": [2]},
        "enabled": False,
        "triggers": [{"name": "hook", "kind": "webhook", "spec": {}, "enabled": False}],
    }


def test_package_is_sent_once(call: Call) -> None:
    server = Server(httpx.Response(202, json={"id": "i", "job_id": "j", "url": "/x"}))
    assert call(server, "problem_import", b"PK", slug="sum", tags=["a", "b"], publish=True).id == "i"
    (request,) = server.requests
    assert (request.content, request.headers["Content-Type"]) == (b"PK", "application/zip")
    assert request.url.query == b"slug=sum&tag=a&tag=b&publish=true"
    with pytest.raises(UnreachableError):
        call(Server(httpx.ReadTimeout("too late")), "problem_import", b"PK")


def test_clients_offer_every_operation() -> None:
    names = [item.name for item in pkgutil.iter_modules(client_package.__path__) if item.name not in NO_OPERATIONS]
    modules = [importlib.import_module(f"{client_package.__name__}.{name}") for name in names]
    functions = {
        name: item
        for module in modules
        for name, item in vars(module).items()
        if inspect.isfunction(item) and item.__module__ == module.__name__ and not name.startswith("_")
    }
    offered = {name for name, item in vars(Operations).items() if isinstance(item, _Operation | _StreamOperation)}
    assert offered == set(functions)
    assert all(item.__doc__ for item in functions.values())
    with Client("http://judge") as client:
        assert client.submit.__doc__ == submissions.submit.__doc__
