"""The OpenAPI document: FastAPI's, with the media type of errors, the security schemes, and examples.

The example of a body is composed of the examples of its fields, so that each example is next to its field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from adjudge.api import errors

_JSON: Final = "application/json"
_SECURITY: Final = {
    "token": {"type": "http", "scheme": "bearer", "description": "API token (adj_…)."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "adjudge_session",
        "description": (
            "Session cookie (prefixed with __Host- under HTTPS). Unsafe methods also require X-CSRF-Token."
        ),
    },
}
Schema = Mapping[str, Any]


class MissingExampleError(LookupError):
    """A required field has neither an example nor values to choose from."""


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Build the document, once per application."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        schemas = document["components"]["schemas"]
        for path in document["paths"].values():
            for operation in path.values():
                content = operation["responses"]["default"]["content"]
                content[errors.MEDIA_TYPE] = content.pop(_JSON)
                body = operation.get("requestBody", {}).get("content", {}).get(_JSON)
                if body is not None:
                    body["example"] = example_for(body["schema"], schemas)
        document["components"]["securitySchemes"] = _SECURITY
        document["security"] = [{"token": []}, {"session": []}, {}]
        app.openapi_schema = document
    return app.openapi_schema


def resolve_ref(schema: Schema, schemas: Mapping[str, Schema]) -> Schema:
    return schemas[schema["$ref"].rsplit("/", 1)[-1]] if "$ref" in schema else schema


def example_for(schema: Schema, schemas: Mapping[str, Schema], place: str = "body") -> Any:
    """An example for a schema: its own, or one composed of the examples of its parts."""
    schema = resolve_ref(schema, schemas)
    for choices in ("anyOf", "allOf"):
        if choices in schema and not schema.get("examples"):
            return example_for(next(item for item in schema[choices] if item.get("type") != "null"), schemas, place)
    known = [*schema.get("examples", ()), *([schema["const"]] if "const" in schema else ()), *schema.get("enum", ())]
    if known:
        return known[0]
    make = _EXAMPLE_BUILDERS.get(schema.get("type", ""))
    if make is None:
        raise MissingExampleError(f"{place}: field has no example.")
    return make(schema, schemas, place)


def _array(schema: Schema, schemas: Mapping[str, Schema], place: str) -> list[Any]:
    return [example_for(schema["items"], schemas, f"{place}[]")]


def _boolean(schema: Schema, _schemas: Mapping[str, Schema], _place: str) -> Any:
    return schema.get("default", True)


def _number(schema: Schema, _schemas: Mapping[str, Schema], _place: str) -> Any:
    return schema.get("default", int(schema.get("minimum", 1)))


def _object(schema: Schema, schemas: Mapping[str, Schema], place: str) -> dict[str, Any]:
    """An example of an object: its required fields, and the optional ones that have an example."""
    required = schema.get("required", ())
    return {
        name: example_for(item, schemas, f"{place}.{name}")
        for name, item in schema.get("properties", {}).items()
        if name in required or _has_example(item, schemas)
    }


def _has_example(schema: Schema, schemas: Mapping[str, Schema]) -> bool:
    schema = resolve_ref(schema, schemas)
    if any(_has_example(item, schemas) for item in schema.get("anyOf", ())):
        return True
    return bool(schema.get("examples"))


_EXAMPLE_BUILDERS: Final[Mapping[str, Callable[[Schema, Mapping[str, Schema], str], Any]]] = {
    "object": _object,
    "array": _array,
    "boolean": _boolean,
    "integer": _number,
    "number": _number,
}
"""Strings are missing on purpose: a generated string would explain nothing."""
