"""A TCP proxy between browser and server that a test can interrupt."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit


class TcpProxy:
    """Forwards connections to a server; ``drop`` ends those there are, ``cut`` lets none through until ``mend``."""

    def __init__(self, target: str) -> None:
        address = urlsplit(target)
        assert address.hostname is not None
        assert address.port is not None
        self._target = (address.hostname, address.port)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_cut = False
        self.sent = bytearray()
        """What the browser sent, to look at its headers."""

    async def __aenter__(self) -> TcpProxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self.close_connections()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def origin(self) -> str:
        """Its own address."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close_connections(self) -> None:
        """End every connection there is; new ones are let through."""
        for writer in list(self._open):
            writer.transport.abort()
        self._open.clear()

    async def block(self) -> None:
        """End every connection and let none through."""
        self._is_cut = True
        await self.close_connections()

    def unblock(self) -> None:
        """Let connections through again."""
        self._is_cut = False

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            self._open |= {writer, far_writer}
            await asyncio.gather(self._copy(reader, far_writer, self.sent), self._copy(far_reader, writer, bytearray()))

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, kept: bytearray) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                kept += data
                target.write(data)
                await target.drain()
        self._open.discard(target)
        target.transport.abort()
