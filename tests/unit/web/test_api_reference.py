"""The API reference page: complete, without external resources."""

from __future__ import annotations

import re

from adjudge.web.api_reference import build_reference, type_of
from tests.support.asgi_app import AsgiApp


async def test_every_operation_and_model_is_on_the_page(pages: AsgiApp) -> None:
    document = pages.app.openapi()
    async with pages.client() as client:
        answer = await client.get("/api/v1/docs")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", answer.text), "nothing comes from elsewhere"
    for operations in document["paths"].values():
        for operation in operations.values():
            assert f'id="{operation["operationId"]}"' in answer.text
    targets, places = set(re.findall(r'href="#([^"]+)"', answer.text)), re.findall(r'id="([^"]+)"', answer.text)
    assert targets <= set(places) | {"main"}
    assert len(places) == len(set(places))


async def test_page_is_translated(pages: AsgiApp) -> None:
    async with pages.client() as client:
        assert "API 接口" in (await client.get("/api/v1/docs", headers={"Accept-Language": "zh"})).text


async def test_operation_shows_a_curl_example(pages: AsgiApp) -> None:
    (submit,) = (
        item
        for item in build_reference(pages.app.openapi()).groups["submissions"]
        if item.path.endswith("ions") and item.method == "POST"
    )
    assert submit.curl.startswith("curl -X POST")
    assert '"problem": "multiples"' in submit.curl
    assert [body.media_type for body in submit.bodies] == ["application/json", "multipart/form-data"]
    assert [answer.link for answer in submit.answers] == ["SubmissionCreated"]


def test_type_names() -> None:
    ref = {"$ref": "#/components/schemas/Job"}
    assert type_of({"anyOf": [{"type": "array", "items": ref}, {"type": "null"}]}) == ("Job[] | null", "Job")
    assert type_of({"enum": ["a", "b"]}) == ('"a" | "b"', "")
    assert type_of({}) == ("any", "")
