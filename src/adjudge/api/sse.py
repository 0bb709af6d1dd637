"""Limits the number of open event streams and ends streams whose credential is no longer valid.

A stream lasts longer than the request that opened it, so its credential is checked again: every few seconds, one query
per process checks the credentials of all open streams. A stream is ended with the event ``reconnect`` if its token or
session was revoked or has expired, if its user was disabled, or if its permissions changed. The client then connects
again and is authenticated like any other request.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from adjudge.domain.errors import AdjudgeError, TooManyStreams
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.services.viewer import CredentialCache, Viewer

_RETRY_AFTER_SEC: Final = 10
_RECONNECT_EVENT: Final = b'event: reconnect\ndata: {"reason":"credential"}\n\n'
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_log = get_logger(__name__)


@dataclass(eq=False, slots=True)
class _SseConnection:
    viewer: Viewer
    life: asyncio.Timeout
    """Has no deadline until the credential becomes invalid; then it expires immediately."""


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


class SseConnections:
    """The open event streams of one process."""

    def __init__(self, credentials: CredentialCache, *, per_user: int, most: int, look_sec: float) -> None:
        self._credentials = credentials
        self._per_user = per_user
        self._most = most
        self._look_sec = look_sec
        self._connections: set[_SseConnection] = set()
        self._count_by_user: Counter[str] = Counter()
        self._checker: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """The number of open streams."""
        return len(self._connections)

    @contextmanager
    def open(self, viewer: Viewer) -> Iterator[asyncio.Timeout]:
        """Register one stream, or raise ``TooManyStreams``; the stream must run inside the yielded timeout.

        Visitors, who follow public scoreboards, share the limit of the process only.
        """
        user_id = viewer.user_id or ""
        if viewer.user_id is not None and self._count_by_user[user_id] >= self._per_user:
            raise TooManyStreams(
                open=self._count_by_user[user_id], limit=self._per_user, retry_after_sec=_RETRY_AFTER_SEC
            )
        if len(self._connections) >= self._most:
            raise TooManyStreams(
                "Too many open event streams on this server: retry later.",
                limit=self._most,
                retry_after_sec=_RETRY_AFTER_SEC,
            )
        connection = _SseConnection(viewer, asyncio.timeout(None))
        self._connections.add(connection)
        self._count_by_user[user_id] += 1
        if self._checker is None or self._checker.done():
            self._checker = asyncio.create_task(self._check_loop(), name="audience")
        try:
            yield connection.life
        finally:
            self._connections.discard(connection)
            self._count_by_user[user_id] -= 1
            if not self._count_by_user[user_id]:
                del self._count_by_user[user_id]

    async def close_revoked(self) -> None:
        """End the streams whose credentials are no longer valid."""
        known = [item.viewer for item in self._connections if item.viewer.user_id is not None]
        lost = await self._credentials.find_revoked(known) if known else set()
        if not lost:
            return
        now = asyncio.get_running_loop().time()
        for connection in self._connections:
            if connection.viewer in lost and not connection.life.expired():
                connection.life.reschedule(now)

    async def close(self) -> None:
        """Stop checking credentials."""
        if self._checker is not None:
            self._checker.cancel()
            await asyncio.gather(self._checker, return_exceptions=True)

    async def _check_loop(self) -> None:
        outage = Outage(_log, "sse_poll_failed", first_sec=self._look_sec)
        pause_sec = self._look_sec
        while self._connections:
            await asyncio.sleep(pause_sec)
            pause_sec = self._look_sec
            try:
                await self.close_revoked()
                outage.over()
            except AdjudgeError as error:  # no database, no events either: the streams stay open
                pause_sec = outage.failed(error)


class LiveResponse(StreamingResponse):
    """A response without an end: registered while it is sent, and ended when the viewer's credential becomes invalid.

    Its header tells proxies not to buffer it, and the server to end it at shutdown (``RequestMiddleware``).
    """

    def __init__(
        self, audience: SseConnections, viewer: Viewer, lines: AsyncIterator[str], *, media_type: str, last: bytes = b""
    ) -> None:
        super().__init__(lines, media_type=media_type, headers=_HEADERS)
        self._sse_connections = audience
        self._viewer = viewer
        self._last = last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream. ``TooManyStreams`` is raised before anything is sent and becomes an error response."""
        with self._sse_connections.open(self._viewer) as life:
            try:
                async with life:
                    await super().__call__(scope, receive, send)
            except TimeoutError:
                if not life.expired():
                    raise
                await send({"type": "http.response.body", "body": self._last})


class EventStreamResponse(LiveResponse):
    """Server-sent events; the last one tells the client to connect again."""

    def __init__(self, audience: SseConnections, viewer: Viewer, lines: AsyncIterator[str]) -> None:
        super().__init__(audience, viewer, lines, media_type="text/event-stream", last=_RECONNECT_EVENT)
