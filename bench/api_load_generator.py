"""The process that asks, in the API's benchmark: keep-alive connections, requests made beforehand, nothing parsed.

It gets commands as lines of JSON on standard input and answers with one each, so that what it costs falls into no
measured second but for writing bytes and finding the end of an answer. A load is bounded in number and in time.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import uvloop

MARK = b"0000000000"
"""Where a request has this, every sending has another number: no two sources are the same."""
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_OPENING = 50
"""How many streams are opened at the same time."""


def request(method: str, path: str, token: str = "", body: bytes | None = None) -> bytes:
    """One request as it goes over the wire."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"Authorization: Bearer {token}"] if token else []
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


class Template:
    """A request whose marks become numbers that were never used before."""

    def __init__(self, text: bytes) -> None:
        self._parts = text.split(MARK)

    def written(self, next_number: Callable[[], int]) -> bytes:
        """The request, with new numbers."""
        first, *others = self._parts
        if not others:
            return first
        return first + b"".join([b"%010d" % next_number() + part for part in others])


@dataclass(slots=True)
class LoadCounters:
    """What a load has come to so far."""

    left: int
    number: int
    waits_sec: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    wrong: bytes = b""

    def next_number(self) -> int:
        """A number that no request had."""
        self.number += 1
        return self.number


class LoadConnection(asyncio.Protocol):
    """One connection that asks again as soon as it is answered, while there is something left to ask."""

    def __init__(self, template: Template, counters: LoadCounters) -> None:
        self._template, self._counters = template, counters
        self._sent_at = 0.0
        self._buffer = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way out."""
        self._transport = cast("asyncio.Transport", transport)

    def ask(self) -> None:
        """Send the next request, or be done."""
        if self._counters.left <= 0:
            self.end()
            return
        self._counters.left -= 1
        self._transport.write(self._template.written(self._counters.next_number))
        self._sent_at = time.perf_counter()

    def data_received(self, data: bytes) -> None:
        """Find the end of the answer; what it says matters only if it is not a success."""
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        length = _LENGTH.search(self._buffer, 0, head_end)
        if len(self._buffer) < head_end + 4 + (int(length[1]) if length else 0):
            return
        self._counters.waits_sec.append(time.perf_counter() - self._sent_at)
        status = self._buffer[9:12].decode()
        self._counters.statuses[status] += 1
        if not status.startswith("2"):
            self._counters.wrong = self._buffer[:1_000]
        self._buffer = b""
        self.ask()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """A server that hangs up answers nothing more."""
        self.end()

    def end(self) -> None:
        """Hang up."""
        self._transport.close()
        if not self.done.done():
            self.done.set_result(None)


class SseConnection(asyncio.Protocol):
    """One open event stream; it counts what it hears."""

    def __init__(self, asked: bytes, event: str) -> None:
        self._asked = asked
        self._mark = f"event: {event}".encode()
        self.events = 0
        self.heard_ns = 0
        self._wanted = 0
        loop = asyncio.get_running_loop()
        self.is_open: asyncio.Future[None] = loop.create_future()
        self._has_heard: asyncio.Future[None] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the stream."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(self._asked)

    def data_received(self, data: bytes) -> None:
        """Count events; the first sign of life says that the stream has caught up."""
        heard = data.count(self._mark)
        if heard:
            self.events += heard
            self.heard_ns = time.monotonic_ns()
            if self.events >= self._wanted and not self._has_heard.done():
                self._has_heard.set_result(None)
        if b": alive" in data and not self.is_open.done():
            self.is_open.set_result(None)

    async def hear(self, total: int) -> int:
        """Wait until there were ``total`` events; when the last one came, by the clock that all processes share."""
        if self.events < total:
            self._wanted, self._has_heard = total, asyncio.get_running_loop().create_future()
            await self._has_heard
        return self.heard_ns

    def connection_lost(self, exc: Exception | None) -> None:
        """A stream that never opened is an error."""
        if not self.is_open.done():
            self.is_open.set_exception(exc or ConnectionError("the server refused an event stream"))


class LoadGenerator:
    """Carries commands out."""

    def __init__(self) -> None:
        self._number = 0
        self._listeners: list[SseConnection] = []

    async def load(self, port: int, requests: Sequence[str], count: int, limit_sec: float) -> dict[str, Any]:
        """Send ``count`` requests, each connection one after another; a connection for each of ``requests``."""
        counters = LoadCounters(count, self._number)
        loop = asyncio.get_running_loop()
        connections = []
        for text in requests:
            template = Template(text.encode("latin-1"))
            create = partial(LoadConnection, template, counters)
            _, connection = await loop.create_connection(create, "127.0.0.1", port)
            connections.append(connection)
        began = time.perf_counter()
        for connection in connections:
            connection.ask()
        await asyncio.wait([connection.done for connection in connections], timeout=limit_sec)
        took_sec = time.perf_counter() - began
        for connection in connections:
            connection.end()
        self._number = counters.number
        return {
            "seconds": took_sec,
            "waits_ms": [wait * 1_000 for wait in counters.waits_sec],
            "statuses": dict(counters.statuses),
            "wrong": counters.wrong.decode("latin-1"),
        }

    async def measure(self, port: int, request: str) -> dict[str, Any]:
        """Ask once; say how long the answer's body is."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request.encode("latin-1"))
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        length = _LENGTH.search(head)
        return {"body_bytes": int(length[1]) if length else 0, "status": head[9:12].decode()}

    async def watch(self, port: int, requests: Sequence[str], event: str = "status") -> dict[str, Any]:
        """Open event streams and return when each has caught up."""
        loop = asyncio.get_running_loop()
        for start in range(0, len(requests), _OPENING):
            opening = []
            for text in requests[start : start + _OPENING]:
                asked = text.encode("latin-1")
                _, listener = await loop.create_connection(partial(SseConnection, asked, event), "127.0.0.1", port)
                opening.append(listener)
            async with asyncio.timeout(60):
                await asyncio.gather(*(listener.is_open for listener in opening))
            self._listeners += opening
        return {"open": len(self._listeners)}

    async def arrivals(self, total: int) -> dict[str, Any]:
        """Wait until every event stream has got ``total`` events; when each got the last of them."""
        async with asyncio.timeout(60):
            return {"heard_ns": await asyncio.gather(*(listener.hear(total) for listener in self._listeners))}

    async def leave(self) -> dict[str, Any]:
        """Close the event streams; say how much they have heard."""
        heard = sum(listener.events for listener in self._listeners)
        still_open = sum(not listener.transport.is_closing() for listener in self._listeners)
        for listener in self._listeners:
            listener.transport.close()
        self._listeners = []
        return {"heard": heard, "open": still_open}


async def main() -> None:
    generator = LoadGenerator()
    print("ready", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        answer = await getattr(generator, command.pop("do"))(**command)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
