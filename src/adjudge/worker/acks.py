"""Acknowledging: what comes while the last call is under way goes into the next one.

A call to the stream costs the same for one message as for a hundred, and jobs whose ends were committed together are to
be acknowledged together. Nothing here decides what may be acknowledged: whoever calls has it committed already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.stream.driver import Message, Stream

_log = get_logger(__name__)
_MOST = 500
"""Messages in one call: Redis serves nobody else meanwhile."""

Waiting = tuple[Sequence[Message], "asyncio.Future[None] | None"]


class Acknowledger:
    """Tells the stream of messages that are dealt with, many at a time."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._waiting: list[Waiting] = []
        self._sender: asyncio.Task[None] | None = None
        self._outage = Outage(_log, "ack_failed")

    async def ack(self, messages: Sequence[Message]) -> None:
        """Wait until the stream was told, or could not be: such a message comes back, and the rows refuse it."""
        if messages:
            told = asyncio.get_running_loop().create_future()
            self._put(messages, told)
            await told

    def tell(self, messages: Sequence[Message]) -> None:
        """Do the same without waiting: for the end of a job, which has nothing left to do."""
        self._put(messages, None)

    @property
    def is_idle(self) -> bool:
        """Whether the stream has been told of everything."""
        return self._sender is None or self._sender.done()

    async def finish(self) -> None:
        """Wait until the stream was told of everything, or could not be."""
        if self._sender is not None:
            await asyncio.wait({self._sender})

    async def stop(self) -> None:
        """Send no more; whoever still waits is past caring."""
        if self._sender is not None:
            self._sender.cancel()
            with suppress(asyncio.CancelledError):
                await self._sender

    def _put(self, messages: Sequence[Message], told: asyncio.Future[None] | None) -> None:
        self._waiting.append((messages, told))
        if self.is_idle:
            self._sender = asyncio.create_task(self._send_all(), name="acknowledger")

    async def _send_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            try:
                await self._send([message for messages, _ in batch for message in messages])
            except Exception as error:  # noqa: BLE001 — it belongs to those who wait, and the next batch goes on
                _log.error("ack_impossible", error=repr(error), messages=len(batch))
                for told in _awaited(batch):
                    told.set_exception(error)
            else:
                for told in _awaited(batch):
                    told.set_result(None)

    async def _send(self, messages: Sequence[Message]) -> None:
        for last in (False, True):
            try:
                await self._stream.ack(messages)
            except Unavailable as error:
                if last:  # no pause: the message comes back after a while, and the rows refuse it
                    self._outage.failed(error, messages=len(messages))
            else:
                self._outage.over()
                return


def _awaited(batch: Sequence[Waiting]) -> list[asyncio.Future[None]]:
    """Of those who asked, who still waits for the answer."""
    return [told for _, told in batch if told is not None and not told.done()]
