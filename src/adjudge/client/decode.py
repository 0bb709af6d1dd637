"""Decodes JSON into response models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from adjudge.client.errors import BadResponseError
from adjudge.client.sans_io import HttpResponse
from adjudge.schema.base import ResponseModel

V = TypeVar("V", bound=ResponseModel)


def json_body(answer: HttpResponse) -> Any:
    """The JSON body of a response."""
    try:
        return json.loads(answer.body)
    except ValueError:
        raise BadResponseError("The response is not JSON. Is the URL an Adjudge server?") from None


def decode(kind: type[V], given: Any) -> V:
    """Decode a JSON object."""
    try:
        return kind.from_json(given)
    except (TypeError, ValueError) as error:
        raise BadResponseError(f"Unexpected response: {error}.") from None


def decode_list(kind: type[V], given: Any) -> tuple[V, ...]:
    """Decode the ``items`` of a list."""
    items = given.get("items") if isinstance(given, Mapping) else None
    if not isinstance(items, list):
        raise BadResponseError(f"Unexpected response: expected a list of {kind.__name__}.")
    return tuple(decode(kind, item) for item in items)
