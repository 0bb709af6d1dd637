"""A TCP proxy that can stop forwarding while its connections stay open, like a network that drops packets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

from tests.support.tcp_server import tcp_server


class SilentProxy:
    """Forwards to ``host:port`` until silenced; new connections are then accepted but not forwarded either."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._parts, self._target = parts, (parts.hostname or "", parts.port or 0)
        self._speaking = asyncio.Event()
        self._speaking.set()
        self._muted: set[asyncio.Task[None]] = set()
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.accepted = 0
        """Number of accepted connections."""

    @property
    def url(self) -> str:
        """The URL of the target through the proxy."""
        user = self._parts.netloc.rpartition("@")
        return urlunsplit(self._parts._replace(netloc=f"{user[0]}{user[1]}127.0.0.1:{self.port}"))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[SilentProxy]:
        async with tcp_server(self._serve) as self.port:
            yield self

    def be_silent(self) -> None:
        """Forward nothing, in either direction, on any connection."""
        self._speaking.clear()

    def mute_present(self) -> None:
        """Forward nothing on existing connections; new ones work."""
        self._muted |= self._tasks

    def lead_to(self, target: str) -> None:
        """Forward new connections to another server; present ones stay as they are."""
        parts = urlsplit(target)
        self._target = (parts.hostname or "", parts.port or 0)

    def speak(self) -> None:
        """Forward new connections; silenced ones stay silent, as after a router lost its state."""
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
