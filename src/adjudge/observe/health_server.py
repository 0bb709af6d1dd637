"""Health server: ``/metrics`` and ``/health/live`` on loopback, for workers and schedulers.

It answers ``GET`` and closes the connection; nothing more of HTTP is implemented.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from adjudge.observe import metrics

_PATIENCE_SEC: Final = 5.0
SILENCE_SEC: Final = 30.0
"""How long a loop may make no progress, in addition to the timeouts of its calls."""
_REQUEST_BYTES: Final = 8192


class LoopHeartbeat:
    """The heartbeat of one loop: it beats on every iteration and is paused while the loop waits on purpose."""

    def __init__(self, name: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._clock = clock
        self._last: float | None = clock()

    def beat(self) -> None:
        """Record an iteration."""
        self._last = self._clock()

    def pause(self) -> None:
        """Suspend the check while the loop waits."""
        self._last = None

    @property
    def stalled_sec(self) -> float:
        """Time without progress; 0 while paused."""
        return 0.0 if self._last is None else self._clock() - self._last


@asynccontextmanager
async def serve_health(
    port: int, pulses: Sequence[LoopHeartbeat], *, host: str = "127.0.0.1", silence_sec: float = SILENCE_SEC
) -> AsyncIterator[int]:
    """Serve while the block runs, on ``port`` or on a free one if it is 0; yields the port.

    A loop without progress for ``silence_sec`` is reported as not alive.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_PATIENCE_SEC):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(request, pulses, silence_sec))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, host, port, limit=_REQUEST_BYTES)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        await server.wait_closed()


def _response(request: bytes, pulses: Sequence[LoopHeartbeat], silence_sec: float) -> bytes:
    method, _, rest = request.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method not in (b"GET", b"HEAD"):
        status, kind, body = "405 Method Not Allowed", "text/plain", b"Ask with GET.\n"
    elif path == b"/metrics":
        status, kind, body = "200 OK", metrics.CONTENT_TYPE, metrics.render_metrics()
    elif path == b"/health/live":
        silent = [heartbeat for heartbeat in pulses if heartbeat.stalled_sec > silence_sec]
        words = [f"{heartbeat.name}: no progress for {heartbeat.stalled_sec:.0f} s" for heartbeat in silent] or ["ok"]
        status, kind = ("503 Service Unavailable" if silent else "200 OK"), "text/plain; charset=utf-8"
        body = "\n".join([*words, ""]).encode()
    else:
        status, kind, body = "404 Not Found", "text/plain", b"There are /metrics and /health/live.\n"
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + (b"" if method == b"HEAD" else body)
