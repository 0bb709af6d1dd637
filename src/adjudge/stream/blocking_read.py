"""A blocking read on a connection of its own, so that no other command waits behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection

Found = list[tuple[str, str, dict[str, str]]]
"""Stream, entry id and fields of each message."""

_SILENCE_SEC: Final = 5.0
"""How long after its block time a connection may be silent before it counts as dead."""


class BlockingReader:
    """The blocking read of one consumer over all bands."""

    def __init__(self, connect: Callable[..., Redis], group: str, consumer: str, keys: Sequence[str]) -> None:
        self._client = connect(single_connection_client=True, redis_connect_func=self._connected)
        self._group, self._consumer = group, consumer
        self._streams: dict[Any, Any] = dict.fromkeys(keys, ">")
        self._client_id = 0

    async def wait(self, wait_ms: int) -> Found:
        """Wait for the first message, at most ``wait_ms``; up to one message per band may arrive."""
        async with asyncio.timeout(wait_ms / 1000 + _SILENCE_SEC):
            # BLOCK 0 would block forever.
            reply: Any = await self._client.xreadgroup(
                self._group, self._consumer, self._streams, count=1, block=max(wait_ms, 1)
            )
        return [(key, entry_id, fields) for key, entries in reply or () for entry_id, fields in entries]

    async def unblock(self, helper: Redis) -> None:
        """End the wait by CLIENT UNBLOCK over another connection; no message is lost by it."""
        if self._client_id:
            await helper.client_unblock(self._client_id)

    async def close(self) -> None:
        await self._client.aclose()

    async def _connected(self, connection: AbstractConnection) -> None:
        """Read the id of each new connection, which ``CLIENT UNBLOCK`` needs."""
        await connection.on_connect()
        await connection.send_command("CLIENT", "ID")
        answer: Any = await connection.read_response()
        self._client_id = int(answer)
