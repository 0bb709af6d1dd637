"""Direct dispatch: every process publishes jobs itself, as soon as they are committed.

Used with ``OUTBOX_ENABLED=false``, for installations without a working scheduler: every server and every worker has its
own dispatcher, notified by commits like that of the scheduler. Every new job (request, webhook, chain node, retry,
replay) is then published without a scheduler, in one way.

Outbox rows are still written, so no job depends on the life of one process, and any number of dispatchers share them: a
running scheduler does no harm.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adjudge.relay.dispatcher import Dispatcher
from adjudge.relay.watchdog import periodic_task

_AGAIN_MS = 1_000


@asynccontextmanager
async def dispatch_inline(dispatcher: Dispatcher) -> AsyncIterator[None]:
    """Publish while the block runs; an error is logged and does not end the process."""

    async def run() -> int:
        await dispatcher.run()
        return 0

    async with periodic_task(run, interval_ms=_AGAIN_MS, name="direct-delivery"):
        yield
