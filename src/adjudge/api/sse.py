"""Who watches: how many event streams may be open, and when one of them must end.

A stream outlives the request that opened it, so what was asked once is asked again: every few seconds one question to
the database tells which credentials still stand for what they stood for. A stream whose token or session was revoked or
has expired, whose user was disabled or may no longer do the same, is ended with ``reconnect``; whoever comes back is
answered as anybody is. However many watch, that is one look for each process.
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
from adjudge.services.credentials import CredentialCache
from adjudge.services.viewer import Viewer

_RETRY_AFTER_SEC: Final = 10
_FAREWELL: Final = b'event: reconnect\ndata: {"reason":"credential"}\n\n'
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_log = get_logger(__name__)


@dataclass(eq=False, slots=True)
class _SseConnection:
    viewer: Viewer
    life: asyncio.Timeout
    """Without an end, until the credential has one."""


class SseConnections:
    """The watchers of one process."""

    def __init__(self, credentials: CredentialCache, *, per_user: int, most: int, look_sec: float) -> None:
        self._credentials = credentials
        self._per_user = per_user
        self._most = most
        self._look_sec = look_sec
        self._connections: set[_SseConnection] = set()
        self._of_user: Counter[str] = Counter()
        self._usher: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """How many watch."""
        return len(self._connections)

    @contextmanager
    def open(self, viewer: Viewer) -> Iterator[asyncio.Timeout]:
        """A place for one stream, or a refusal; the stream runs within what is returned."""
        user_id = viewer.id
        if self._of_user[user_id] >= self._per_user:
            raise TooManyStreams(open=self._of_user[user_id], limit=self._per_user, retry_after_sec=_RETRY_AFTER_SEC)
        if len(self._connections) >= self._most:
            raise TooManyStreams(
                "Too many open event streams on this server: retry later.",
                limit=self._most,
                retry_after_sec=_RETRY_AFTER_SEC,
            )
        connection = _SseConnection(viewer, asyncio.timeout(None))
        self._connections.add(connection)
        self._of_user[user_id] += 1
        if self._usher is None or self._usher.done():
            self._usher = asyncio.create_task(self._check_loop(), name="audience")
        try:
            yield connection.life
        finally:
            self._connections.discard(connection)
            self._of_user[user_id] -= 1
            if not self._of_user[user_id]:
                del self._of_user[user_id]

    async def close_revoked(self) -> None:
        """End the streams whose credentials have ended."""
        lost = await self._credentials.find_revoked([connection.viewer for connection in self._connections])
        if not lost:
            return
        now = asyncio.get_running_loop().time()
        for connection in self._connections:
            if connection.viewer in lost and not connection.life.expired():
                connection.life.reschedule(now)

    async def close(self) -> None:
        """Look no more."""
        if self._usher is not None:
            self._usher.cancel()
            await asyncio.gather(self._usher, return_exceptions=True)

    async def _check_loop(self) -> None:
        outage = Outage(_log, "sse_poll_failed", first_sec=self._look_sec)
        pause_sec = self._look_sec
        while self._connections:
            await asyncio.sleep(pause_sec)
            pause_sec = self._look_sec
            try:
                await self.close_revoked()
                outage.over()
            except AdjudgeError as error:  # without the database there is nothing to watch either
                pause_sec = outage.failed(error)


class EventStreamResponse(StreamingResponse):
    """An event stream: it has a seat for as long as it is sent, and ends with its viewer's credential."""

    def __init__(self, audience: SseConnections, viewer: Viewer, lines: AsyncIterator[str]) -> None:
        super().__init__(lines, media_type="text/event-stream", headers=_HEADERS)
        self._audience = audience
        self._viewer = viewer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; a refusal comes before anything was sent, and is answered like any other."""
        with self._audience.open(self._viewer) as life:
            try:
                async with life:
                    await super().__call__(scope, receive, send)
            except TimeoutError:
                if not life.expired():
                    raise
                await send({"type": "http.response.body", "body": _FAREWELL})
