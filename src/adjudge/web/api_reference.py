"""The OpenAPI document as a page: operations by group with parameters and responses, and all models.

Generated from the document alone, so that page and document always agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_JSON: Final = "application/json"
_PROBLEMS: Final = "default"
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FieldDoc:
    """A parameter, or a field of a model."""

    name: str
    where: str
    """Location of a parameter: path, query or header; empty for a field."""
    type: str
    link: str
    """Name of the model in the type, if any."""
    is_required: bool
    meaning: str
    bounds: str


@dataclass(frozen=True, slots=True)
class BodyDoc:
    """A request body or a response."""

    status: str
    media_type: str
    type: str
    link: str
    meaning: str
    example: str = ""


@dataclass(frozen=True, slots=True)
class OperationDoc:
    """One operation."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    parameters: tuple[FieldDoc, ...]
    bodies: tuple[BodyDoc, ...]
    answers: tuple[BodyDoc, ...]
    curl: str


@dataclass(frozen=True, slots=True)
class ModelDoc:
    """One model."""

    name: str
    description: str
    fields: tuple[FieldDoc, ...]
    values: tuple[str, ...]
    """Values of an enumeration."""


@dataclass(frozen=True, slots=True)
class ApiReference:
    """All operations and models, in the document's order."""

    groups: Mapping[str, tuple[OperationDoc, ...]]
    models: tuple[ModelDoc, ...]


def build_reference(document: Document) -> ApiReference:
    groups: dict[str, list[OperationDoc]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            groups.setdefault(operation["tags"][0], []).append(_operation(method.upper(), path, operation))
    models = sorted(document["components"]["schemas"].items())
    return ApiReference(
        {name: tuple(operations) for name, operations in groups.items()},
        tuple(_model(name, schema) for name, schema in models),
    )


def _operation(method: str, path: str, operation: Document) -> OperationDoc:
    bodies = tuple(_contents("", operation.get("requestBody", {})))
    answers = tuple(
        content
        for status, answer in operation["responses"].items()
        if status not in {_PROBLEMS, "422"}  # errors have one model for all statuses
        for content in (list(_contents(status, answer)) or [BodyDoc(status, "", "", "", answer["description"])])
    )
    return OperationDoc(
        id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        description=operation.get("description", ""),
        parameters=tuple(_parameter(item) for item in operation.get("parameters", ())),
        bodies=bodies,
        answers=answers,
        curl=_curl(method, path, bodies),
    )


def _contents(status: str, described: Document) -> Iterator[BodyDoc]:
    for media_type, content in described.get("content", {}).items():
        shown = json.dumps(content["example"], indent=2, ensure_ascii=False) if "example" in content else ""
        name, link = type_of(content.get("schema", {}))
        yield BodyDoc(status, media_type, name, link, described.get("description", ""), shown)


def _parameter(item: Document) -> FieldDoc:
    schema = item.get("schema", {})
    name, link = type_of(schema)
    meaning = item.get("description") or schema.get("description", "")
    return FieldDoc(item["name"], item["in"], name, link, item.get("required", False), meaning, _bounds(schema))


def _model(name: str, schema: Document) -> ModelDoc:
    required = schema.get("required", ())
    fields = tuple(
        FieldDoc(field, "", *type_of(item), field in required, item.get("description", ""), _bounds(item))
        for field, item in schema.get("properties", {}).items()
    )
    return ModelDoc(name, schema.get("description", ""), fields, tuple(str(item) for item in schema.get("enum", ())))


def type_of(schema: Document) -> tuple[str, str]:
    """Name of a type, and the model to link."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return name, name
    if "anyOf" in schema:
        found = [type_of(item) for item in schema["anyOf"]]
        return " | ".join(name for name, _ in found), next((link for _, link in found if link), "")
    if schema.get("type") == "array":
        name, link = type_of(schema.get("items", {}))
        return f"{name}[]", link
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        return " | ".join(json.dumps(item) for item in values), ""
    return str(schema.get("format") or schema.get("type", "any")), ""


def _bounds(schema: Document) -> str:
    """Constraints and default value."""
    symbols = {
        "minimum": "≥",
        "exclusiveMinimum": ">",
        "maximum": "≤",
        "minLength": "length ≥",
        "maxLength": "length ≤",
    }
    bounds: list[Document] = [schema, *schema.get("anyOf", ())]
    constraints = [f"{sign} {item[name]:g}" for item in bounds for name, sign in symbols.items() if name in item]
    if schema.get("default") not in (None, "", [], {}):
        constraints.append(f"= {json.dumps(schema['default'])}")
    return ", ".join(constraints)


def _curl(method: str, path: str, bodies: tuple[BodyDoc, ...]) -> str:
    """Example for curl; names in braces are placeholders."""
    lines = ["curl" + ("" if method == "GET" else f" -X {method}")]
    lines.append("-H 'Authorization: Bearer adj_…'")
    body = next((item for item in bodies if item.example), bodies[0] if bodies else None)
    if body is not None and body.media_type == _JSON:
        compact = json.dumps(json.loads(body.example), ensure_ascii=False).replace("'", "'\\''")
        lines += [f"-H 'Content-Type: {_JSON}'", f"-d '{compact}'"]
    elif body is not None:
        lines += [f"-H 'Content-Type: {body.media_type}'", "--data-binary @FILE"]
    lines.append(f'"$ADJUDGE{path}"')
    return " \\\n  ".join(lines)
