"""A TCP proxy that can go silent: connections stay open, and nothing passes through them any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

from tests.support.tcp_server import tcp_server


class SilentProxy:
    """Forwards to ``host:port`` until silenced; new connections are accepted and not served, either."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._parts, self._target = parts, (parts.hostname or "", parts.port or 0)
        self._speaking = asyncio.Event()
        self._speaking.set()
        self._muted: set[asyncio.Task[None]] = set()
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.accepted = 0
        """How many connections were made to it."""

    @property
    def url(self) -> str:
        """The target's address with the proxy in between."""
        user = self._parts.netloc.rpartition("@")
        return urlunsplit(self._parts._replace(netloc=f"{user[0]}{user[1]}127.0.0.1:{self.port}"))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[SilentProxy]:
        async with tcp_server(self._serve) as self.port:
            yield self

    def be_silent(self) -> None:
        """Let nothing through, in either direction, on any connection."""
        self._speaking.clear()

    def mute_present(self) -> None:
        """Let nothing through the connections that there are; new ones work."""
        self._muted |= self._tasks

    def speak(self) -> None:
        """Serve new connections; those that were silenced stay so, as if the way to them had been forgotten."""
        self._muted |= self._tasks
        self._speaking.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.accepted += 1
        try:
            await self._speaking.wait()
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._copy(reader, far_writer, task))
                    both.create_task(self._copy(far_reader, writer, task))
            finally:
                far_writer.transport.abort()
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    async def _copy(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, connection: asyncio.Task[None]
    ) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                if connection in self._muted:
                    await asyncio.Event().wait()
                await self._speaking.wait()
                if connection in self._muted:
                    await asyncio.Event().wait()
                target.write(data)
                await target.drain()
        if connection not in self._muted:
            target.transport.abort()
