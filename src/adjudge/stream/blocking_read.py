"""Waiting for a message on a connection of its own, so that nothing else queues up behind a blocked command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection

Found = list[tuple[str, str, dict[str, str]]]
"""Stream, entry id and fields of each message."""

_SILENCE_SEC: Final = 5.0
"""How long past its block a connection may stay silent before it counts as dead."""


class BlockingReader:
    """One consumer's blocked read over all bands."""

    def __init__(self, connect: Callable[..., Redis], group: str, consumer: str, keys: Sequence[str]) -> None:
        self._client = connect(single_connection_client=True, redis_connect_func=self._connected)
        self._group, self._consumer = group, consumer
        self._streams: dict[Any, Any] = dict.fromkeys(keys, ">")
        self._client_id = 0

    async def wait(self, wait_ms: int) -> Found:
        """Wait for the first message, at most ``wait_ms``; up to one of each band may come at once."""
        async with asyncio.timeout(wait_ms / 1000 + _SILENCE_SEC):
            # BLOCK 0 would be for ever.
            reply: Any = await self._client.xreadgroup(
                self._group, self._consumer, self._streams, count=1, block=max(wait_ms, 1)
            )
        return [(key, entry_id, fields) for key, entries in reply or () for entry_id, fields in entries]

    async def unblock(self, helper: Redis) -> None:
        """End the wait by asking Redis to, over another connection: a message that comes just now is not lost."""
        if self._client_id:
            await helper.client_unblock(self._client_id)

    async def close(self) -> None:
        """Disconnect."""
        await self._client.aclose()

    async def _connected(self, connection: AbstractConnection) -> None:
        """Learn the connection's number each time it connects: that is what ``CLIENT UNBLOCK`` goes by."""
        await connection.on_connect()
        await connection.send_command("CLIENT", "ID")
        answer: Any = await connection.read_response()
        self._client_id = int(answer)
