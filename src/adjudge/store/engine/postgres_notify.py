"""Change notification between processes, by PostgreSQL's NOTIFY.

Notifications are sent after the commit on a separate connection, and those that arrive during a send are sent together:
NOTIFY inside the transaction would make PostgreSQL serialise the commits. Coalesced channels are sent immediately after
a pause, and then at most a few times per second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import asyncpg

from adjudge.concurrency.batcher import Batcher
from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.store.engine.notify import COALESCED_CHANNELS, Callback, LocalNotifier
from adjudge.store.engine.postgres_pool import ConnectionPool

_CHECK_SECONDS = 15.0
"""Interval of the connection check of a listener, which may receive nothing for a long time."""
_ANSWER_SECONDS = 5.0
_COALESCE_SECONDS = 0.05
_FAILURES = (
    Unavailable,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
_NOTIFY = "SELECT pg_notify(channel, '') FROM unnest(CAST($1 AS text[])) AS channel"
_log = get_logger(__name__)


class PostgresNotifier:
    """Notifies the listeners of this process and of all other processes on the same database."""

    def __init__(self, connections: ConnectionPool, check_sec: float = _CHECK_SECONDS) -> None:
        self._connections = connections
        self._check_sec = check_sec
        self._local = LocalNotifier()
        self._immediate = Batcher(self._send, name="notify", key=_identity)
        self._coalesced = Batcher(self._send, name="notify-unhurried", key=_identity, pause_sec=_COALESCE_SECONDS)
        self._channels: set[str] = set()
        self._listener: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def notify(self, channel: str) -> None:
        """Notify this process immediately, and the others when the previous send is done."""
        self._local.notify(channel)
        (self._coalesced if channel in COALESCED_CHANNELS else self._immediate).offer(channel)

    def listen(self, channel: str, callback: Callback) -> Callback:
        """Listen to the notifications of all processes."""
        if channel not in self._channels:
            self._channels.add(channel)
            self._changed.set()
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._listen_forever())
        return self._local.listen(channel, callback)

    async def close(self) -> None:
        """Stop sending and listening."""
        await self._immediate.close()
        await self._coalesced.close()
        if self._listener is not None:
            self._listener.cancel()
            with suppress(asyncio.CancelledError):
                await self._listener

    async def _send(self, channels: Sequence[str]) -> list[None]:
        try:
            async with self._connections.acquire() as connection:
                await connection.fetch(_NOTIFY, sorted(channels))
        except _FAILURES as error:
            _log.debug("notify_send_failed", error=str(error))  # the listeners' poll finds the work
        return [None] * len(channels)

    async def _listen_forever(self) -> None:
        outage = Outage(_log, "notify_listener_reconnecting")
        while True:
            try:
                await self._listen_on_connection(outage)
            except _FAILURES as error:
                await asyncio.sleep(outage.failed(error))

    async def _listen_on_connection(self, outage: Outage) -> None:
        closed = asyncio.Event()

        def on_closed(_: object) -> None:
            closed.set()

        async with self._connections.acquire(is_limited=False) as connection:
            listening: set[str] = set()
            connection.add_termination_listener(on_closed)
            try:
                while not closed.is_set():
                    self._changed.clear()
                    async with asyncio.timeout(_ANSWER_SECONDS):
                        await connection.fetchval("SELECT 1")
                        for channel in self._channels - listening:
                            await connection.add_listener(channel, self._on_notification)
                            self._local.notify(channel)  # notifications from before the LISTEN
                            listening.add(channel)
                    outage.over()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._check_sec):
                            await _wait_any(closed, self._changed)
                raise ConnectionResetError("The server closed the connection.")
            finally:
                with suppress(*_FAILURES):  # the connection may be closed already
                    connection.remove_termination_listener(on_closed)
                    connection.terminate()  # instead of UNLISTEN for each channel

    def _on_notification(self, *call: object) -> None:
        self._local.notify(str(call[2]))


def _identity(channel: str) -> str:
    return channel


async def _wait_any(*events: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
