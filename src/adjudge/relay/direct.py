"""Direct delivery: whoever creates jobs tells the stream itself, as soon as they are committed.

What ``OUTBOX_ENABLED=false`` falls back to, for installations whose scheduler is out of order: every server and every
worker has a pump of its own, woken by commits as the scheduler's is. So whatever makes a job (a request, a verdict that
a webhook is owed, a chain that goes on, a retry, an operator's replay) is delivered without a scheduler, in one way.

The rows of the outbox are written all the same, so nothing hangs on a process living long enough to speak; and any
number of pumps share them, so it does no harm where a scheduler runs after all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adjudge.relay.dispatcher import Dispatcher
from adjudge.relay.watchdog import periodic_task

_AGAIN_MS = 1_000


@asynccontextmanager
async def dispatch_inline(dispatcher: Dispatcher) -> AsyncIterator[None]:
    """Deliver while the block lasts; a fault of delivery is logged, and does not end what else the process does."""

    async def run() -> int:
        await dispatcher.run()
        return 0

    async with periodic_task(run, interval_ms=_AGAIN_MS, name="direct-delivery"):
        yield
