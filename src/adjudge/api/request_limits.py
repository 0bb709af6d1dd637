"""One request and its answer, held to bounds: how much is read, how long it may take, what happens at the end.

- A body is counted as it comes; past its limit the answer is 413, whatever the request said of its length. Past a much
  smaller limit it is first found out who is asking: frameworks read a body before they ask, and nobody unknown may make
  the server hold or parse megabytes.
- Time runs until the answer begins, anew with every piece of the body: a slow upload is no slow request, unless it is
  so slow that it only holds the connection. A request that asks to wait (``?wait=``) gets that much more. What streams
  may stream.
- ``HEAD`` is ``GET`` without the body.
- When the server ends, event streams are ended in good order and told to connect again; others finish.
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
"""A body that comes more slowly than this on the whole is not waited for."""
_FAREWELL: Final = b"event: reconnect\ndata: {}\n\n"


IsKnown = Callable[[Scope], Awaitable[bool]]
"""Tells whether a request carries a valid credential; one that is given and wrong is refused."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What one request may take."""

    anonymous_bytes: int
    body_bytes: int
    upload_bytes: int
    seconds: float
    uploads: re.Pattern[str] = re.compile(r"(?!)")
    """Paths whose bodies are files."""

    def body_limit(self, scope: Scope) -> int:
        """The most that is read of this request, whoever sends it."""
        return self.upload_bytes if self.uploads.match(scope["path"]) else self.body_bytes


class OpenStreams:
    """The event streams that are open, so that the server can end without waiting for their readers."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self.are_closing = False

    def add(self, task: asyncio.Task[object]) -> None:
        """Count a stream that has begun."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self.are_closing:
            task.cancel()

    def close(self) -> None:
        """End them all; whoever comes later is ended at once."""
        self.are_closing = True
        for task in self._tasks:
            task.cancel()


class ResponseComplete(Exception):
    """Nothing more of this answer is wanted."""


class RequestLimiter:
    """What passes between a client and the application."""

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
        """Told once an event stream has begun."""
        self._dress = dress
        self._receive, self._send = receive, send
        self._seconds = bounds.seconds + _wait_sec(scope)
        self._most = bounds.body_limit(scope)
        self._limit = min(bounds.anonymous_bytes, self._most)
        self._is_known = is_known
        self._received = 0
        self._first_piece_at: float | None = None

    @property
    def seconds(self) -> float:
        """How long it may take until the answer begins."""
        return self._seconds

    async def check_length(self) -> None:
        """Refuse a body that says itself that it is too large, before reading any of it."""
        for name, length in self.scope["headers"]:
            if name == b"content-length" and length.isdigit() and int(length[:20]) > self._limit:
                await self._check_size(int(length[:20]))

    async def receive(self) -> Message:
        """Pass on what the client sends, counted."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            if self._received > self._limit:
                try:
                    await self._check_size(self._received)
                except AdjudgeError as error:
                    # The framework lets only its own kind of error through while it reads a body.
                    raise HTTPException(error.http_status, error.message, {"Connection": "close"}) from error
            if self.deadline is not None and not self.status:
                self.deadline.reschedule(self._next_deadline())
        return message

    async def _check_size(self, size: int) -> None:
        """Refuse a body of that size; whoever is known may send more."""
        if self._limit < self._most and await self._is_known(self.scope):
            self._limit = self._most
        if size > self._most:
            raise BodyTooLarge(f"The body is larger than {self._most} bytes.", limit_bytes=self._most)
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
        earned = self._received / _SLOWEST_BYTES_PER_SEC
        return min(now, self._first_piece_at + earned) + self._seconds

    async def send(self, message: Message) -> None:
        """Pass on what the application answers."""
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
        """End an event stream in good order."""
        if not self.has_ended:
            self.has_ended = True
            await self._send({"type": "http.response.body", "body": b"" if self.is_head else _FAREWELL})

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
