"""Change notification within a process, by callbacks.

A notification carries no data: listeners read the rows. It spares them waiting for the next poll, so a lost
notification costs no more than that poll.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress

CHANNEL_OUTBOX = "adjudge_outbox"
"""Notified when the outbox has rows that are due."""

CHANNEL_JUDGING = "adjudge_watch"
"""Notified when a submission, an execution or the progress of a job changed."""

CHANNEL_CANCELED = "adjudge_canceled"
"""Notified when a running job was canceled, so that its worker stops before the next heartbeat."""

CHANNEL_CHAIN_RUNS = "adjudge_chain_runs"
"""Notified when a chain run or node changed, or a node wrote a log line."""

CHANNEL_SCOREBOARD = "adjudge_scoreboard"
"""Notified when the scoreboard of a contest changed."""

CHANNEL_WORKER_CONTROL = "adjudge_worker_control"
"""Notified when an operator pauses, resumes or drains a worker."""

CHANNEL_FEED = "adjudge_feed"
"""Notified when the event feed of a contest has new events, or a client asks for it."""

COALESCED_CHANNELS = frozenset({CHANNEL_CHAIN_RUNS})
"""Channels with frequent notifications that only serve display: other processes get them with a small delay."""

Callback = Callable[[], None]


class LocalNotifier:
    """The listeners of one process. ``notify`` is thread-safe; callbacks run on the listener's event loop."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[tuple[asyncio.AbstractEventLoop, Callback]]] = defaultdict(list)

    def listen(self, channel: str, callback: Callback) -> Callback:
        """Call ``callback`` at every notification of ``channel``; the returned function removes it."""
        listener = (asyncio.get_running_loop(), callback)
        self._listeners[channel].append(listener)
        return lambda: self._listeners[channel].remove(listener)

    def notify(self, channel: str) -> None:
        """Call the listeners of this process."""
        for loop, callback in tuple(self._listeners[channel]):
            with suppress(RuntimeError):  # its event loop is closed
                loop.call_soon_threadsafe(callback)


class Wakeup:
    """A flag to wait for, with a poll interval as a fallback.

    Clear it *before* looking for work: a notification that arrives meanwhile sets it again, so that none is lost.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        """Clear the flag, before looking for work."""
        self._event.clear()

    async def wait(self, timeout_ms: int) -> bool:
        """Wait for the flag or the poll interval; return whether the flag is set."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1_000):
                await self._event.wait()
        return self._event.is_set()
