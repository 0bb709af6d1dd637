"""Acknowledges messages, many in one call to the stream.

A call costs the same for one message as for a hundred, and jobs committed together are acknowledged together. Callers
pass only messages whose jobs are committed already.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.concurrency.batcher import Batcher
from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.store.jobs.metrics import job_ids_fields
from adjudge.stream.driver import Message, Stream

_log = get_logger(__name__)
_MAX_MESSAGES = 500
"""Maximum number of messages in one call, because Redis serves no other client during the call."""


class Acknowledger:
    """Acknowledges messages. A message whose acknowledgement fails is delivered again, and its claim is refused."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._outage = Outage(_log, "ack_failed")
        self._batcher: Batcher[Sequence[Message], None] = Batcher(
            self._send, name="acknowledger", max_weight=_MAX_MESSAGES, weight=len
        )

    async def ack(self, messages: Sequence[Message]) -> None:
        """Wait until the messages are acknowledged or the call has failed."""
        if messages:
            await self._batcher.put(messages)

    def offer(self, messages: Sequence[Message]) -> None:
        """Acknowledge messages without waiting."""
        self._batcher.offer(messages)

    @property
    def is_idle(self) -> bool:
        return self._batcher.is_idle

    async def flush(self) -> None:
        """Wait until all messages are acknowledged or the calls have failed."""
        await self._batcher.flush()

    async def close(self) -> None:
        """Stop immediately."""
        await self._batcher.close()

    async def _send(self, batch: Sequence[Sequence[Message]]) -> list[None]:
        messages = [message for item in batch for message in item]
        for is_last in (False, True):
            try:
                await self._stream.ack(messages)
            except Unavailable as error:
                if is_last:  # no delay: the message is delivered again later, and its claim is refused
                    job_ids = [message.job_id for message in messages if message.job_id is not None]
                    self._outage.failed(error, messages=len(messages), **job_ids_fields(job_ids))
            else:
                self._outage.over()
                break
        return [None] * len(batch)
