"""Waiting for a message on a connection of its own, so that nothing else queues up behind a blocked command.

Redis hands a message to a blocked reader the moment it arrives. If the reader is cancelled just then, the message would
be pending with nobody at work on it until it is reclaimed. So the blocked command is a task that outlives the caller's
cancellation; the next caller, or ``close``, gets what it caught.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

Found = list[tuple[str, str, dict[str, str]]]
"""Stream, entry id and fields of each message."""

_SLACK_SEC: Final = 0.05
_SILENCE_SEC: Final = 5.0
"""How long past its block a connection may stay silent before it counts as dead."""

Connect = Callable[..., Redis]


class Waiter:
    """One consumer's blocked read over all bands."""

    def __init__(self, connect: Connect, group: str, consumer: str, keys: Sequence[str]) -> None:
        self._client = connect(single_connection_client=True, socket_timeout=None, redis_connect_func=self._connected)
        self._group, self._consumer = group, consumer
        self._streams: dict[Any, Any] = dict.fromkeys(keys, ">")
        self._client_id = 0
        self._task: asyncio.Task[Found] | None = None

    def caught(self) -> Found:
        """What arrived after the last caller was cancelled."""
        if self._task is None or not self._task.done():
            return []
        task, self._task = self._task, None
        return task.result()

    async def wait(self, wait_ms: int) -> Found:
        """Wait for the first message, at most ``wait_ms``; up to one of each band may come at once."""
        if self._task is None:
            self._task = asyncio.create_task(self._block(wait_ms), name="stream-wait")
        await asyncio.wait({self._task}, timeout=wait_ms / 1000 + _SLACK_SEC)
        return self.caught()

    async def close(self, helper: Redis) -> Found:
        """End the wait by asking Redis to, over another connection, so that a message caught just now is not lost."""
        found: Found = []
        if self._task is not None:
            try:
                if not self._task.done():
                    await helper.client_unblock(self._client_id)
                async with asyncio.timeout(1):
                    found = await self._task
            except (RedisError, OSError, TimeoutError):
                # Redis is away or silent: what it still holds pending for us will be reclaimed.
                self._task.cancel()
                await asyncio.wait({self._task})
        await self._client.aclose()
        return found

    async def _block(self, wait_ms: int) -> Found:
        async with asyncio.timeout(wait_ms / 1000 + _SILENCE_SEC):
            # BLOCK 0 would be for ever.
            reply: Any = await self._client.xreadgroup(
                self._group, self._consumer, self._streams, count=1, block=max(wait_ms, 1)
            )
        return [(key, entry_id, fields) for key, entries in reply or () for entry_id, fields in entries]

    async def _connected(self, connection: AbstractConnection) -> None:
        """Learn the connection's number each time it connects: that is what ``CLIENT UNBLOCK`` goes by."""
        await connection.on_connect()
        await connection.send_command("CLIENT", "ID")
        answer: Any = await connection.read_response()
        self._client_id = int(answer)
