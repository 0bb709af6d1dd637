"""Limits of one request and its response: body size, time, and what happens at shutdown.

- The body is counted as it is received. Above the limit the response is 413, whatever ``Content-Length`` says. Above a
  much smaller limit the credential is checked first: frameworks read a body before they authenticate, and an anonymous
  client must not make the server hold or parse megabytes.
- The time limit ends when the response starts. Each received part of the body restarts it, so a slow upload does not
  time out unless it is slower than a minimum rate. A request with ``?wait=`` gets that much more time. A response that
  streams has no time limit.
- ``HEAD`` is ``GET`` without the response body.
- At shutdown, event streams end with the event ``reconnect``; other requests finish.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from adjudge.domain.errors import AdjudgeError, BodyTooLarge

_WAIT: Final = re.compile(rb"(?:^|&)wait=(\d{1,3}(?:\.\d{1,3})?)(?:&|$)")
_SLOWEST_BYTES_PER_SEC: Final = 1024
"""Minimum average rate of a body; a slower one times out."""
_RECONNECT_EVENT: Final = b"event: reconnect\ndata: {}\n\n"


IsKnown = Callable[[Scope], Awaitable[bool]]
"""Returns whether a request has a valid credential; raises if the credential is invalid."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Size and time limits of one request."""

    anonymous_bytes: int
    body_bytes: int
    upload_bytes: int
    seconds: float
    uploads: re.Pattern[str] = re.compile(r"(?!)")
    """Paths that accept file uploads."""

    def body_limit(self, scope: Scope) -> int:
        """The maximum body size of this request with a valid credential."""
        return self.upload_bytes if self.uploads.match(scope["path"]) else self.body_bytes


class OpenStreams:
    """The open event streams, so that the server can shut down without waiting for their clients."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self.are_closing = False

    def add(self, task: asyncio.Task[object]) -> None:
        """Register a stream that has started; at shutdown it is canceled at once."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self.are_closing:
            task.cancel()

    def close(self) -> None:
        """Cancel all streams, and every stream that is added later."""
        self.are_closing = True
        for task in self._tasks:
            task.cancel()


class ResponseComplete(Exception):
    """The response is complete; what the application still sends is not needed."""


class RequestLimiter:
    """Wraps ``receive`` and ``send`` of one request and enforces its limits."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        bounds: RequestLimits,
        *,
        is_known: IsKnown,
        dress: Callable[[Message], None],
    ) -> None:
        self.is_head = scope["method"] == "HEAD"
        self.scope: Scope = {**scope, "method": "GET"} if self.is_head else scope
        self.status = 0
        self.is_stream = False
        self.has_ended = False
        self.deadline: asyncio.Timeout | None = None
        self.on_stream: Callable[[], None] | None = None
        """Called once, when an event stream has started."""
        self._dress = dress
        self._receive, self._send = receive, send
        self._seconds = bounds.seconds + _wait_sec(scope)
        self._max_bytes = bounds.body_limit(scope)
        self._limit = min(bounds.anonymous_bytes, self._max_bytes)
        self._is_known = is_known
        self._received = 0
        self._first_piece_at: float | None = None

    @property
    def seconds(self) -> float:
        """Time limit until the response starts."""
        return self._seconds

    async def check_length(self) -> None:
        """Reject a body whose ``Content-Length`` is too large, before reading it."""
        for name, length in self.scope["headers"]:
            if name == b"content-length" and length.isdigit() and int(length[:20]) > self._limit:
                await self._check_size(int(length[:20]))

    async def receive(self) -> Message:
        """Pass on a message of the client and count the bytes of the body."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            if self._received > self._limit:
                try:
                    await self._check_size(self._received)
                except AdjudgeError as error:
                    # While it reads a body, the framework passes on only its own error class.
                    raise HTTPException(error.http_status, error.message, {"Connection": "close"}) from error
            if self.deadline is not None and not self.status:
                self.deadline.reschedule(self._next_deadline())
        return message

    async def _check_size(self, size: int) -> None:
        """Reject a body of this size; a valid credential raises the limit."""
        if self._limit < self._max_bytes and await self._is_known(self.scope):
            self._limit = self._max_bytes
        if size > self._max_bytes:
            raise BodyTooLarge(f"The body is larger than {self._max_bytes} bytes.", limit_bytes=self._max_bytes)
        if size > self._limit:
            raise BodyTooLarge(
                f"The body is larger than {self._limit} bytes, which is the most without a valid credential: log in "
                "or send an API token.",
                limit_bytes=self._limit,
            )

    def _next_deadline(self) -> float:
        now = asyncio.get_running_loop().time()
        if self._first_piece_at is None:
            self._first_piece_at = now
        allowed_sec = self._received / _SLOWEST_BYTES_PER_SEC
        return min(now, self._first_piece_at + allowed_sec) + self._seconds

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.deadline is not None:
                self.deadline.reschedule(None)
            self.is_stream = any(
                name == b"content-type" and value.startswith(b"text/event-stream") for name, value in message["headers"]
            )
            self._dress(message)
        elif message["type"] == "http.response.body":
            if self.is_head:
                await self._send_no_body(is_last=not message.get("more_body", False))
                return
            self.has_ended = not message.get("more_body", False)
        await self._send(message)
        if self.is_stream and self.on_stream is not None:
            self.on_stream()
            self.on_stream = None

    async def end_event_stream(self) -> None:
        if not self.has_ended:
            self.has_ended = True
            await self._send({"type": "http.response.body", "body": b"" if self.is_head else _RECONNECT_EVENT})

    async def _send_no_body(self, *, is_last: bool) -> None:
        if not self.has_ended:
            self.has_ended = True
            await self._send({"type": "http.response.body", "body": b""})
        if not is_last:
            raise ResponseComplete


def _wait_sec(scope: Scope) -> float:
    query: bytes = scope.get("query_string", b"")
    match = _WAIT.search(query) if query else None
    return float(match[1]) if match else 0.0
