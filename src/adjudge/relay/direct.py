"""Direct delivery: whoever creates jobs tells the stream itself, as soon as they are committed.

What ``OUTBOX_ENABLED=false`` falls back to, for installations whose scheduler is out of order. The rows of the outbox
are written all the same, so nothing hangs on this process living long enough to speak: what it did not deliver, and
every retry, goes the ordinary way once a scheduler is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.relay.pump import Pump

_log = get_logger(__name__)


class DirectDelivery:
    """Delivers what it is told of; what comes while a delivery is under way goes into the next one."""

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._waiting: list[str] = []
        self._delivering: asyncio.Task[None] | None = None

    def __call__(self, job_ids: Sequence[str]) -> None:
        """These jobs were just committed."""
        self._waiting += job_ids
        if self._delivering is None or self._delivering.done():
            self._delivering = asyncio.create_task(self._deliver_all(), name="direct-delivery")

    async def close(self) -> None:
        """Deliver what is left, then stop."""
        if self._delivering is not None:
            with suppress(asyncio.CancelledError):
                await self._delivering

    async def _deliver_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await self._pump.deliver(batch)
            except Unavailable as error:
                _log.warning("direct_delivery_failed", error=error.message, jobs=len(batch))
