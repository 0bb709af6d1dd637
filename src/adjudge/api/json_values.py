"""Limits the number of values in a large JSON body, before it is validated.

A body of a few megabytes can contain a million unknown keys. Validation creates an error for each, which takes seconds
on the event loop. Small bodies are not checked: they cannot contain that many.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from adjudge.domain.errors import InvalidInput

VALUES_MOST: Final = 20_000
SMALL_BYTES: Final = 64 * 1024
_UNVALIDATED_FIELDS: Final = frozenset({"dag", "parameters", "spec"})
"""Fields that accept any JSON: no model validates their contents, and a chain may have 20,000 nodes."""


async def check_json_values(receive: Receive) -> Receive:
    """Read the body and raise if its JSON has too many values; return a ``receive`` that replays the body."""
    messages, failed = await _read(receive)
    if failed is None and _has_too_many_values(b"".join([message.get("body", b"") for message in messages])):
        raise InvalidInput(f"body: more than {VALUES_MOST} values; send less at once.", field="body")

    async def replay() -> Message:
        if messages:
            return messages.popleft()
        if failed is not None:
            raise failed
        return await receive()

    return replay


async def _read(receive: Receive) -> tuple[deque[Message], HTTPException | None]:
    """Read the whole body, or the part that was received before its limit was exceeded."""
    messages: deque[Message] = deque()
    while True:
        try:
            message = await receive()
        except HTTPException as error:
            return messages, error
        messages.append(message)
        if message["type"] != "http.request" or not message.get("more_body", False):
            return messages, None


def _has_too_many_values(body: bytes) -> bool:
    # Most large bodies are one long string: with few separators there is nothing to parse.
    if len(body) <= SMALL_BYTES or body.count(b",") + body.count(b"[") + body.count(b"{") <= VALUES_MOST:
        return False
    try:
        whole: Any = from_json(body, cache_strings=False)
    except ValueError:
        return False  # not JSON, or nested too deeply: the route reports it
    pending = (
        [{key: None if key in _UNVALIDATED_FIELDS else value for key, value in whole.items()}]
        if isinstance(whole, dict)
        else [whole]
    )
    count = 0
    while pending and count <= VALUES_MOST:
        value = pending.pop()
        count += len(value) if isinstance(value, dict | list) else 0
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        pending.extend(item for item in inner if isinstance(item, dict | list))
    return count > VALUES_MOST
