"""The opt-in way out of a box: bytes carried between its loopback listeners and the hosts they stand for.

The box has no network. For each allowed host and port the launcher opens a listener inside and hands it to us; we
accept there and connect outside. So nothing but the listed places can be reached, whatever the program tries.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from typing import Final

from adjudge.sandbox.spec import Egress

CHUNK_BYTES: Final = 64 * 1024
CONNECT_TIMEOUT_SEC: Final = 10.0


@contextlib.asynccontextmanager
async def forward_egress(ways: Sequence[Egress], listeners: Sequence[socket.socket]) -> AsyncIterator[None]:
    """Carry connections of each listener to its host for as long as the run lasts; the listeners are closed after."""
    connections: set[asyncio.Task[None]] = set()
    servers = [
        await asyncio.start_server(_Forwarder(way, connections), sock=listener)
        for way, listener in zip(ways, listeners, strict=False)
    ]
    try:
        yield
    finally:
        for server in servers:
            server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


class _Forwarder:  # used as a function
    """What happens to one accepted connection."""

    def __init__(self, way: Egress, connections: set[asyncio.Task[None]]) -> None:
        self._way = way
        self._connections = connections

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry both ways until either end is done."""
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_SEC):
                far_reader, far_writer = await asyncio.open_connection(self._way.host, self._way.port)
        except OSError:
            writer.close()
            return
        try:
            await asyncio.gather(_carry(reader, far_writer), _carry(far_reader, writer))
        finally:
            writer.close()
            far_writer.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
