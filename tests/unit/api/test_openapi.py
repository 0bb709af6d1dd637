"""The OpenAPI document is complete: what there is to know of an operation stands in it, with an example."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from adjudge.api.errors import MEDIA_TYPE
from adjudge.api.openapi import MissingExampleError, example_for
from tests.support.asgi_app import AsgiApp


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield f"{method.upper()} {path}", operation


def _missing(operation: dict[str, Any]) -> Iterator[str]:
    if not operation.get("summary"):
        yield "it has no summary"
    if not operation.get("tags"):
        yield "it stands in no group"
    if MEDIA_TYPE not in operation["responses"]["default"]["content"]:
        yield "its failures are not described"
    yield from _missing_of_answers(operation)
    for media_type, body in operation.get("requestBody", {}).get("content", {}).items():
        if media_type == "application/json" and "example" not in body:
            yield "its body has no example"
        if not body.get("schema"):
            yield f"its body as {media_type} has no model"


def _missing_of_answers(operation: dict[str, Any]) -> Iterator[str]:
    fine = {code: answer for code, answer in operation["responses"].items() if code[0] in "23"}
    if not fine:
        yield "it has no answer"
    for code, answer in fine.items():
        contents = answer.get("content", {})
        if code.startswith("2") and code != "204" and not contents:
            yield f"its answer {code} has no media type"
        if any(not content.get("schema") and not _is_free(operation) for content in contents.values()):
            yield f"its answer {code} has no model"


def _is_free(operation: dict[str, Any]) -> bool:
    """A node's artifact is whatever the node left behind."""
    return bool(operation["operationId"].startswith("artifact"))


async def test_every_operation_is_described_whole(api: AsgiApp) -> None:
    document = api.app.openapi()
    wrong = [f"{name}: {what}" for name, operation in _operations(document) for what in _missing(operation)]
    assert not wrong, "\n".join(wrong)
    assert len({operation["operationId"] for _, operation in _operations(document)}) == len(list(_operations(document)))


async def test_every_example_fits_what_it_is_an_example_of(api: AsgiApp) -> None:
    document = api.app.openapi()
    for name, operation in _operations(document):
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if body:
            schema = {**body["schema"], "components": document["components"]}
            jsonschema.Draft202012Validator(schema).validate(body["example"])
            assert isinstance(body["example"], dict), name


def test_a_field_without_an_example_is_named() -> None:
    schemas = {"Inner": {"type": "object", "required": ["word"], "properties": {"word": {"type": "string"}}}}
    with pytest.raises(MissingExampleError, match=r"body\.inner\[\]\.word: field has no example"):
        example_for(
            {
                "type": "object",
                "required": ["inner"],
                "properties": {"inner": {"type": "array", "items": {"$ref": "#/components/schemas/Inner"}}},
            },
            schemas,
        )
