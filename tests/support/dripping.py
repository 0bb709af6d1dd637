"""An HTTP server whose answers never end: each part comes in time, the whole answer does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.support.tcp_server import tcp_server


@asynccontextmanager
async def dripping(head: bytes, part: bytes) -> AsyncIterator[str]:
    """Answers ``head`` and then ``part`` again and again, until the caller goes away; yields its URL."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        with suppress(ConnectionError):
            while True:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0.02)

    async with tcp_server(answer) as port:
        yield f"http://127.0.0.1:{port}"
