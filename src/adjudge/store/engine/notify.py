"""Bells: a commit rings, whoever waits looks again.

A ring carries nothing and promises nothing; the rows do. It saves waiting for the next poll, and a lost one costs no
more than that poll.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress

CHANNEL_OUTBOX = "adjudge_outbox"
"""Rung when the outbox has something to deliver at once."""

CHANNEL_JUDGING = "adjudge_watch"
"""Rung when something that people watch has changed: a submission, an execution, the progress of a job."""

CHANNEL_CANCELED = "adjudge_canceled"
"""Rung when a job was canceled that is running: whoever runs it stops at once instead of at the next heartbeat."""

CHANNEL_CHAIN_RUNS = "adjudge_chain_runs"
"""Rung when a node or a run changed, or a node wrote a line: whoever shows a run looks again."""

COALESCED_CHANNELS = frozenset({CHANNEL_CHAIN_RUNS})
"""What is rung with every step of every run, for people to see: other processes may hear of it a moment later."""

Callback = Callable[[], None]


class LocalNotifier:
    """The listeners of one process. Rings may come from any thread; each listener hears on its own event loop."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[tuple[asyncio.AbstractEventLoop, Callback]]] = defaultdict(list)

    def listen(self, channel: str, callback: Callback) -> Callback:
        """Call ``callback`` at every ring of ``channel``; the function returned ends that."""
        listener = (asyncio.get_running_loop(), callback)
        self._listeners[channel].append(listener)
        return lambda: self._listeners[channel].remove(listener)

    def notify(self, channel: str) -> None:
        """Tell everybody who listens here."""
        for loop, callback in tuple(self._listeners[channel]):
            with suppress(RuntimeError):  # its loop has gone: nobody is left to hear
                loop.call_soon_threadsafe(callback)


class Wakeup:
    """A flag that somebody waits for, with a poll as the net.

    Clear it *before* looking for work: a ring that comes while looking then finds the flag down and raises it, so it is
    never lost.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """There may be work."""
        self._event.set()

    def clear(self) -> None:
        """Now looking for work."""
        self._event.clear()

    async def wait(self, timeout_ms: int) -> bool:
        """Wait until there may be work, or until it is time to look anyway; whether the flag is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1_000):
                await self._event.wait()
        return self._event.is_set()
