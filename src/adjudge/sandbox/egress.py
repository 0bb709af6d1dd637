"""Opt-in network access: forwards connections from listeners in the sandbox to the listed hosts.

The sandbox has no network. For each listed host and port, the launcher opens a listener on the sandbox's loopback
interface and passes it to us. We accept connections there and connect to the real host, so only listed hosts are
reachable.
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
async def forward_egress(targets: Sequence[Egress], listeners: Sequence[socket.socket]) -> AsyncIterator[None]:
    """Forward connections of each listener to its host during the run, then close the listeners."""
    connections: set[asyncio.Task[None]] = set()
    servers = [
        await asyncio.start_server(_Forwarder(target, connections), sock=listener)
        for target, listener in zip(targets, listeners, strict=False)
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
    """Handles accepted connections of one listener."""

    def __init__(self, target: Egress, connections: set[asyncio.Task[None]]) -> None:
        self._target = target
        self._connections = connections

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy bytes in both directions until both sides are closed."""
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_SEC):
                host_reader, host_writer = await asyncio.open_connection(self._target.host, self._target.port)
        except OSError:
            writer.close()
            return
        try:
            await asyncio.gather(_copy(reader, host_writer), _copy(host_reader, writer))
        finally:
            writer.close()
            host_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
