"""Limits the number of values in a large JSON body, before it is validated.

A body of a few megabytes can contain a million unknown keys. Validation creates an error for each, which takes seconds
on the event loop. Small bodies are not checked: they cannot contain that many.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any, Final

from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adjudge.api import errors
from adjudge.domain.errors import InvalidInput

VALUES_MOST: Final = 20_000
_HEADERS: Final = frozenset({b"content-length", b"content-type", b"transfer-encoding"})
_SMALL_BYTES: Final = 64 * 1024
_UNVALIDATED_FIELDS: Final = frozenset({"dag", "parameters", "spec"})
"""Fields that accept any JSON: no model validates their contents, and a chain may have 20,000 nodes."""
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class JsonShape:
    """ASGI middleware that runs before validation."""

    def __init__(self, app: ASGIApp, *, uploads: re.Pattern[str]) -> None:
        self._app = app
        self._uploads = uploads
        """Paths that accept file uploads, JSON or not: these are never parsed here or held in memory."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, unless its JSON has too many values."""
        if scope["type"] != "http" or scope["method"] not in _WITH_BODY or not self._must_check(scope):
            await self._app(scope, receive, send)
            return
        messages, failed = await _read(receive)
        if failed is None and _has_too_many_values(b"".join([message.get("body", b"") for message in messages])):
            error = InvalidInput(f"body: more than {VALUES_MOST} values; send less at once.", field="body")
            await errors.error_response(error, errors.get_request_id(Request(scope)))(scope, receive, send)
            return

        async def replay() -> Message:
            if messages:
                return messages.popleft()
            if failed is not None:
                raise failed
            return await receive()

        await self._app(scope, replay, send)

    def _must_check(self, scope: Scope) -> bool:
        return _may_be_large(scope) and not self._uploads.match(scope["path"])


def _may_be_large(scope: Scope) -> bool:
    """Whether there is a body that may be JSON and does not declare a small length.

    A missing or repeated media type counts as JSON, because frameworks differ in which one they read.
    """
    given: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        if name in _HEADERS:
            given.setdefault(name, []).append(value)
    if b"content-length" not in given and b"transfer-encoding" not in given:
        return False
    length = given.get(b"content-length", [b""])[0]
    if length.isdigit() and int(length[:20]) <= _SMALL_BYTES:
        return False
    kinds = given.get(b"content-type", [])
    return len(kinds) != 1 or b"json" in kinds[0].lower()


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
    if len(body) <= _SMALL_BYTES or body.count(b",") + body.count(b"[") + body.count(b"{") <= VALUES_MOST:
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
