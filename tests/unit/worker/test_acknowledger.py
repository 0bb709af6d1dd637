"""Acknowledging together: what comes while a call is under way goes into the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from adjudge.domain.errors import InternalFault, Unavailable
from adjudge.stream import MemoryStream, MessageBody
from adjudge.stream.driver import Message
from adjudge.worker.acknowledger import Acknowledger


class BlockedStream(MemoryStream):
    """A stream that notes its calls, waits for a signal, and fails on request."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []
        self.go_on = asyncio.Event()
        self.failures: list[Exception] = []

    async def ack(self, messages: Sequence[Message]) -> int:
        self.calls.append(len(messages))
        await self.go_on.wait()
        if self.failures:
            raise self.failures.pop(0)
        return await super().ack(messages)


async def _read(stream: BlockedStream, count: int) -> list[Message]:
    await stream.publish([MessageBody(f"job-{number}", 2, "noop") for number in range(count)])
    return await stream.read(consumer="w", limit=count, wait_ms=0)


async def test_pending_acknowledgements_are_sent_in_one_call() -> None:
    stream = BlockedStream()
    acks, messages = Acknowledger(stream), await _read(stream, 10)
    waiting = [asyncio.create_task(acks.ack([message])) for message in messages]
    while not stream.calls:
        await asyncio.sleep(0)
    late = (await _read(stream, 2))[:2]
    waiting += [asyncio.create_task(acks.ack([message])) for message in late]
    await asyncio.sleep(0)
    stream.go_on.set()
    await asyncio.gather(*waiting)
    assert stream.calls == [10, 2]
    assert sum((await stream.pending_counts()).values()) == 0


async def test_canceled_waiter_does_not_affect_other_acknowledgements() -> None:
    stream = BlockedStream()
    acks, messages = Acknowledger(stream), await _read(stream, 2)
    gone, stays = (asyncio.create_task(acks.ack([message])) for message in messages)
    while not stream.calls:
        await asyncio.sleep(0)
    gone.cancel()
    stream.go_on.set()
    await stays
    assert sum((await stream.pending_counts()).values()) == 0


async def test_unavailable_stream_is_retried_once() -> None:
    stream = BlockedStream()
    acks, messages = Acknowledger(stream), await _read(stream, 1)
    stream.go_on.set()
    stream.failures = [Unavailable("away"), Unavailable("away")]
    await acks.ack(messages)
    assert stream.calls == [1, 1]
    assert sum((await stream.pending_counts()).values()) == 1


async def test_error_reaches_the_caller_and_the_next_call_succeeds() -> None:
    stream = BlockedStream()
    acks, messages = Acknowledger(stream), await _read(stream, 2)
    stream.go_on.set()
    stream.failures = [InternalFault("not understood")]
    with pytest.raises(InternalFault):
        await acks.ack(messages[:1])
    await acks.ack(messages)
    await acks.close()
    assert sum((await stream.pending_counts()).values()) == 0


async def test_deferred_acknowledgements_are_sent_before_close() -> None:
    stream = BlockedStream()
    acks, messages = Acknowledger(stream), await _read(stream, 3)
    for message in messages:
        acks.offer([message])
    idle_before = acks.is_idle
    stream.go_on.set()
    await acks.flush()
    assert (idle_before, acks.is_idle) == (False, True)
    assert stream.calls == [3]
    assert sum((await stream.pending_counts()).values()) == 0


async def test_error_without_a_waiter_does_not_affect_later_calls() -> None:
    stream = BlockedStream()
    acks, messages = Acknowledger(stream), await _read(stream, 2)
    stream.go_on.set()
    stream.failures = [InternalFault("not understood")]
    acks.offer(messages[:1])
    await acks.flush()
    acks.offer(messages)
    await acks.flush()
    assert sum((await stream.pending_counts()).values()) == 0
