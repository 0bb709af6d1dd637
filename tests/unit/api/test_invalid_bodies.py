"""Every route that takes JSON, sent what is none, what is no text, what cannot be stored: always 4xx with a code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from adjudge.domain.ids import new_id
from tests.support.asgi_app import AsgiApp

JSON = {"Content-Type": "application/json"}
JUDGE0 = "/judge0/"
"""Routes with the errors of Judge0, which ignores unknown fields."""
CONTEST_API = ("/api/2023-06/", "/api/2026-01/")
"""Routes of the Contest API, where clients may send properties that a server does not know."""
OTHER_TYPES: tuple[Any, ...] = (7, [[]], {"x": {}}, None)
BAD = {
    "cut off": b'{"name": ',
    "no UTF-8": b'{"name": "\xc3\x28"}',
    "no JSON": b"\x00\xff",
    "nested without end": b'{"name":' * 100_000,
    "a list": b"[]",
    "a number": b"1e400",
    "a list without end": b"[" * 100_000,
}


def _bodies(api: AsgiApp) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and example of every operation that takes JSON."""
    for path, operations in api.app.openapi()["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None:
                yield method.upper(), re.sub(r"\{[^}]*\}", new_id(), path), body["example"]


def _replaced(value: Any, text: str) -> Iterator[Any]:
    """The value once for each text in it, with another in its place."""
    if isinstance(value, str):
        yield text
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from ({**value, key: other} for other in _replaced(item, text))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], other, *value[index + 1 :]] for other in _replaced(item, text))


@pytest.mark.slow
async def test_what_is_no_body_at_all_is_the_callers_fault(api: AsgiApp) -> None:
    wrong = []
    async with api.as_role("admin") as client:
        for method, path, _ in _bodies(api):
            for what, body in BAD.items():
                answer = await client.request(method, path, content=body, headers=JSON)
                reported = answer.json().get("error" if path.startswith(JUDGE0) else "code")
                if not (400 <= answer.status_code < 500 and reported):
                    wrong.append(f"{method} {path}: {what}: {answer.status_code} {answer.text[:80]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["a\x00b", "\ud800", "x" * 100_000, "\x1b[31m\u202e\ufffe"])
async def test_texts_that_no_field_should_hold_fail_nothing(api: AsgiApp, odd: str) -> None:
    wrong = []
    async with api.as_role("admin") as client:
        for method, path, example in _bodies(api):
            for body in _replaced(example, odd):
                answer = await client.request(method, path, content=json.dumps(body), headers=JSON)
                if answer.status_code >= 500:
                    wrong.append(f"{method} {path}: {ascii(body)[:120]}: {answer.text[:120]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
async def test_wrong_types_are_reported_by_field(api: AsgiApp) -> None:
    wrong = []
    async with api.as_role("admin") as client:
        for method, path, example in _bodies(api):
            for key in example:
                for other in OTHER_TYPES:
                    answer = await client.request(method, path, json={**example, key: other})
                    if answer.status_code >= 500:
                        wrong.append(f"{method} {path}: {key}={other}: {answer.text[:120]}")
            answer = await client.request(method, path, json={**example, "no_such_field": 1})
            if not (answer.status_code == 400 or "triggers" in path or path.startswith((JUDGE0, *CONTEST_API))):
                wrong.append(f"{method} {path}: a field that is not known: {answer.status_code}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", ["/api/v1/submissions", "/judge0/submissions"])
async def test_large_body_must_say_that_it_is_json(api: AsgiApp, path: str) -> None:
    async with api.as_role("admin") as client:
        body = json.dumps({f"field{number}": 1 for number in range(20_000)})
        answer = await client.post(path, content=body, headers={"Content-Type": "text/plain"})
        assert answer.status_code == 415, answer.text


async def test_batch_is_not_a_form(api: AsgiApp) -> None:
    async with api.as_role("admin") as client:
        answer = await client.post("/api/v1/submissions:batch", files={"source": b"1"})
        assert answer.status_code == 400, answer.text
