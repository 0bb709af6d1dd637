"""An HTTP server whose responses never end: each part arrives within a read timeout, the whole response never."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.support.tcp_server import tcp_server


@asynccontextmanager
async def dripping(head: bytes, part: bytes) -> AsyncIterator[str]:
    """Sends ``head`` and then ``part`` repeatedly until the client disconnects; yields its URL."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        with suppress(ConnectionError):
            while True:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0.02)

    async with tcp_server(answer) as port:
        yield f"http://127.0.0.1:{port}"
