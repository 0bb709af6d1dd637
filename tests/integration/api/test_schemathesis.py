"""Every operation of the served OpenAPI document, asked with what fits its description and with what does not.

Nothing may fail with a 5xx, and every answer must be as the document says. What is asked is the same each time. Each
request goes out twice: with the ids that were made up, and with ids of things that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.core.transport import Response
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.http_server import RunningServer, serve
from tests.support.published_problem import publish_problem

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 2
RECORD = b'{"id": 1, "source": "print(1)", "tests": [{"input": "", "output": "1"}]}'
JUDGE0_PROGRAM = {"language_id": 71, "source_code": "print(1)"}
DAG = {"nodes": [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop", "deps": ["a"]}]}
MADE_UP: set[str] = {"letter_id", "session_id", "import_id", "name", "path", "number", "language", "digest"}
"""Parameters for which there is nothing: dead letters, sessions, imports and files have tests of their own."""
schemathesis.serializer.alias("application/x-ndjson", "application/octet-stream")


@pytest.fixture
def server(sqlite_url: str, tmp_path: Path) -> Iterator[RunningServer]:
    with serve(sqlite_url, tmp_path, {"accounts.registration": "open", "executions.per_day": 0}) as server:
        yield server


@contextmanager
def _client(server: RunningServer, token: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:
        yield client


def _things(server: RunningServer, client: httpx.Client) -> dict[str, str]:
    """Ids of one of everything, by the names that paths have for them."""

    def made(path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = client.post(f"/api/v1{path}", json=body)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    published_problem = server.do(publish_problem(server.api))
    submitted = made("/submissions", published_problem.submission_body())
    server.do(published_problem.finish(submitted["job_id"]))
    made("/chains", {"name": "night", "dag": DAG})
    cron = {"name": "daily", "kind": "cron", "spec": {"cron": "0 3 * * *"}}
    program = {"language": "cpp", "source": "int main() {}"}
    hook = {"url": "https://example.org/x", "events": ["submission.judged"]}
    batch = {"filter": {"problem": "sum"}, "reason": "a test was wrong"}
    webhook_id = made("/webhooks", hook)["webhook"]["id"]
    user_id = server.do(server.api.user("contestant"))[0]
    return {
        **_contest(client, made, user_id),
        "submission_id": submitted["submission_id"],
        "job_id": submitted["job_id"],
        "problem": published_problem.slug,
        "chain": "night",
        "run_id": made("/chains/night:start", {})["run_id"],
        "node_id": "a",
        "trigger_id": made("/chains/night/triggers", cron)["id"],
        "user_id": user_id,
        "token_id": made("/me/tokens", {"name": "spare"})["id"],
        "invitation_id": made("/invitations", {})["id"],
        "execution_id": made("/executions", program)["id"],
        "evaluation_id": client.post("/api/v1/evaluations?name=night", content=RECORD).json()["id"],
        "token": client.post("/judge0/submissions", json=JUDGE0_PROGRAM).json()["token"],
        "language_id": "71",
        "batch_id": made("/rejudge-batches", batch)["id"],
        "webhook_id": webhook_id,
        "delivery_id": made(f"/webhooks/{webhook_id}:ping", {})["delivery_id"],
    }


def _contest(
    client: httpx.Client, made: Callable[[str, dict[str, Any]], dict[str, Any]], user_id: str
) -> dict[str, str]:
    """Ids of a running contest and of what belongs to it."""
    made(
        "/contests",
        {
            "slug": "spring",
            "title": "Spring",
            "duration_sec": 18_000,
            "balloons_enabled": True,
            "printing_enabled": True,
        },
    )
    client.put("/api/v1/contests/spring/problems", json={"problems": [{"problem": "sum"}]}).raise_for_status()
    starts_at = made("/contests/spring:start", {})["starts_at"]
    made("/contests/spring:publish", {})
    made("/contests/spring/intervals", {"from_at": starts_at})
    client.post("/api/v1/contests/spring/roles", json={"user": user_id, "role": "judge"}).raise_for_status()
    (interval,) = client.get("/api/v1/contests/spring/intervals").json()["items"]
    groups = {"groups": [{"code": "north", "name": "North"}]}
    client.put("/api/v1/contests/spring/groups", json=groups).raise_for_status()
    team = {"name": "Null Pointers", "code": "team42", "groups": ["north"], "members": [user_id]}
    announced = made("/contests/spring/announcements", {"body": "Welcome."})
    answer = made("/contests/spring/canned-answers", {"title": "No", "body": "No comment."})
    client.put("/api/v1/contests/spring/materials/rules.txt", content=b"Be fair.").raise_for_status()
    printed = made("/contests/spring/prints", {"content": "int main() {}"})
    participant = made("/contests/spring/participants", team)["id"]
    award = {"citation": "Best newcomer", "participant_ids": [participant]}
    client.put("/api/v1/contests/spring/awards/best-newcomer", json=award).raise_for_status()
    return {
        "contest": "spring",
        "material": "rules.txt",
        "print_number": str(printed["number"]),
        "award": "best-newcomer",
        "clarification_id": announced["id"],
        "answer_id": answer["id"],
        "interval_id": interval["id"],
        "user": user_id,
        "role": "judge",
        "label": "A",
        "group": "north",
        "code": "team42",
        "participant": participant,
        "collection": "teams",
        "object_id": "team42",
    }


def _ask(client: httpx.Client, case: Case[Any]) -> None:
    """Send a case and hold the answer to the document; of a stream that does not end, its head."""
    if "wait" in case.query:
        case.query["wait"] = 0.01  # nobody is at work here, so it would be waited for in vain
    if case.query.get("stream") is False:
        case.query["stream"] = True  # nobody fills the feed either
    asked = case.as_transport_kwargs(base_url=str(client.base_url))
    asked["headers"] = {**asked["headers"], "Authorization": client.headers["Authorization"]}
    asked.pop("cookies", None)
    if "data" in asked and isinstance(asked["data"], bytes | str):
        asked["content"] = asked.pop("data")
    if asked.get("files"):
        asked["files"] = [(name, _part(content)) for name, content in asked["files"]]
    request = client.build_request(**asked)
    request.read()
    answer = found = client.send(request, stream=True)
    if answer.headers.get("X-Accel-Buffering") == "no":
        found = httpx.Response(answer.status_code, headers=answer.headers, text="", request=request)
        found.elapsed = timedelta(0)
    else:
        answer.read()
    answer.close()
    case.validate_response(Response.from_any(found), checks=CHECKS)


def _part(content: Any) -> Any:
    """A part of a form as httpx takes it; what is neither text nor bytes goes out as it is written."""
    if isinstance(content, tuple):
        name, inner, *rest = content
        return (name, _part(inner), *rest)
    return content if isinstance(content, bytes | str) else str(content)


def _modes(operation: APIOperation[Any, Any, Any, Any]) -> list[GenerationMode]:
    """What cannot fit can only be sent where more is taken than names in a path."""
    takes_more = operation.body or operation.query or operation.headers
    return [GenerationMode.POSITIVE, GenerationMode.NEGATIVE] if takes_more else [GenerationMode.POSITIVE]


@pytest.mark.slow
def test_every_operation_answers_as_it_is_documented(server: RunningServer) -> None:
    _, token = server.do(server.api.user("admin"))
    schema = schemathesis.openapi.from_url(f"{server.url}/api/v1/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) == sum(len(item) for item in schema.raw_schema["paths"].values())
    wrong, asked = [], set[str]()
    bounds = settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    with _client(server, token) as client:
        things = _things(server, client)
        for operation in operations:
            asked |= {item.name for item in operation.path_parameters}
            for mode in _modes(operation):

                @bounds
                @given(case=operation.as_strategy(generation_mode=mode))
                def probe(case: Case[Any]) -> None:
                    _ask(client, case)
                    known = {name: things[name] for name in case.path_parameters if name in things}
                    if known:
                        case.path_parameters.update(known)
                        _ask(client, case)

                try:
                    probe()
                except Unsatisfiable:
                    pass  # whatever is sent fits
                except Exception as error:  # noqa: BLE001  # whatever one operation fails of, the others are asked too
                    wrong.append(f"{operation.label} ({mode.value}): {error}")
    assert not wrong, f"{len(wrong)} of {len(operations)} operations:\n\n" + "\n\n".join(wrong)
    assert asked - set(things) <= MADE_UP, "a path speaks of something that there should be one of here"
