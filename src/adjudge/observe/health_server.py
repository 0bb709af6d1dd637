"""Health server of every role: ``/metrics``, ``/health/live`` and ``/health/ready``.

It answers ``GET`` and closes the connection; nothing more of HTTP is implemented. Metrics require an allowed address or
the metrics token. Liveness and readiness do not: orchestrators ask without credentials.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from adjudge.observe import metrics
from adjudge.observe.metrics_access import LOOPBACK_ONLY, MetricsAccess

_PATIENCE_SEC: Final = 5.0
SILENCE_SEC: Final = 30.0
"""How long a loop may make no progress, in addition to the timeouts of its calls."""
_REQUEST_BYTES: Final = 8192
_TEXT: Final = "text/plain; charset=utf-8"


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


async def _render_own() -> bytes:
    return metrics.render_metrics(None)


async def _always_ready() -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class HealthSources:
    """What the health server reports."""

    loops: Sequence[LoopHeartbeat] = ()
    silence_sec: float = SILENCE_SEC
    """A loop without progress for longer is reported as not alive."""
    render: Callable[[], Awaitable[bytes]] = _render_own
    """The metrics."""
    find_obstacles: Callable[[], Awaitable[Sequence[str]]] = _always_ready
    """Why the process is not ready; empty if it is."""


@asynccontextmanager
async def serve_health(
    port: int, sources: HealthSources, *, host: str = "127.0.0.1", access: MetricsAccess = LOOPBACK_ONLY
) -> AsyncIterator[int]:
    """Serve while the block runs, on ``port`` or on a free one if it is 0; yields the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_PATIENCE_SEC):
                request = _Request.parse(await reader.readuntil(b"\r\n\r\n"), writer.get_extra_info("peername"))
                writer.write(await _response(request, sources, access))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, host, port, limit=_REQUEST_BYTES)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        await server.wait_closed()


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    authorization: str
    address: str

    @classmethod
    def parse(cls, head: bytes, peer: Sequence[object] | None) -> _Request:
        first, *lines = head.decode("latin-1").split("\r\n")
        method, _, rest = first.partition(" ")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        path = rest.partition(" ")[0].partition("?")[0]
        return cls(method, path, headers.get("authorization", ""), str(peer[0]) if peer else "")


async def _response(request: _Request, sources: HealthSources, access: MetricsAccess) -> bytes:
    status, kind, body = await _answer(request, sources, access)
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + (b"" if request.method == "HEAD" else body)


async def _answer(request: _Request, sources: HealthSources, access: MetricsAccess) -> tuple[str, str, bytes]:
    """Status, content type and body."""
    if request.method not in ("GET", "HEAD"):
        return "405 Method Not Allowed", _TEXT, b"Ask with GET.\n"
    if request.path == "/metrics":
        if not access.allows_address(request.address) and not access.allows_token(request.authorization):
            return "403 Forbidden", _TEXT, b"See server.metrics_networks and server.metrics_token.\n"
        return "200 OK", metrics.CONTENT_TYPE, await sources.render()
    if request.path == "/health/live":
        silent = [loop for loop in sources.loops if loop.stalled_sec > sources.silence_sec]
        return _health([f"{loop.name}: no progress for {loop.stalled_sec:.0f} s" for loop in silent])
    if request.path == "/health/ready":
        return _health(await sources.find_obstacles())
    return "404 Not Found", _TEXT, b"There are /metrics, /health/live and /health/ready.\n"


def _health(problems: Sequence[str]) -> tuple[str, str, bytes]:
    status = "503 Service Unavailable" if problems else "200 OK"
    return status, _TEXT, "\n".join([*(problems or ["ok"]), ""]).encode()
