"""The in-process stream with a test clock."""

from __future__ import annotations

import pytest

from adjudge.stream import MemoryStream, MessageBody


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now_us = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now_us


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def stream(clock: Clock) -> MemoryStream:
    return MemoryStream(now_us=clock)


def hints(*job_ids: str) -> list[MessageBody]:
    return [MessageBody(job_id, 2, "judge") for job_id in job_ids]


async def test_autoclaim_after_idle_time(stream: MemoryStream, clock: Clock) -> None:
    await stream.publish(hints("a"))
    await stream.read(consumer="dead", limit=1, wait_ms=0)
    clock.now_us += 16_999_999
    assert await stream.autoclaim(consumer="b", idle_ms=17_000, limit=1) == []
    clock.now_us += 1
    assert len(await stream.autoclaim(consumer="b", idle_ms=17_000, limit=1)) == 1
    assert await stream.autoclaim(consumer="c", idle_ms=17_000, limit=1) == []


async def test_entry_ids_grow_if_clock_stops_or_goes_back(stream: MemoryStream, clock: Clock) -> None:
    first = await stream.publish(hints("a", "b"))
    clock.now_us -= 60_000_000
    second = await stream.publish(hints("c"))
    clock.now_us += 120_000_000
    third = await stream.publish(hints("d"))
    ids = [(entry.entry_id or "").split("-") for entry in (*first, *second, *third)]
    numbers = [(int(ms), int(sequence)) for ms, sequence in ids]
    assert numbers == sorted(set(numbers))
    assert numbers[:3] == [(1_700_000_000_000, 0), (1_700_000_000_000, 1), (1_700_000_000_000, 2)]


async def test_message_has_publication_time(stream: MemoryStream, clock: Clock) -> None:
    await stream.publish(hints("a"))
    clock.now_us += 5_000_000
    (message,) = await stream.read(consumer="a", limit=1, wait_ms=0)
    assert message.enqueued_at_ms == 1_700_000_000_000


async def test_long_pending_list_is_scanned_in_parts(stream: MemoryStream, clock: Clock) -> None:
    """A look passes over ten messages for each that it may take, and goes on from there."""
    await stream.publish(hints(*(f"{number}" for number in range(25))))
    busy = await stream.read(consumer="a", limit=24, wait_ms=0)
    clock.now_us -= 60_000_000
    await stream.read(consumer="dead", limit=1, wait_ms=0)
    clock.now_us += 60_000_000
    looks = [await stream.autoclaim(consumer="b", idle_ms=30_000, limit=1) for _ in range(3)]
    assert [[message.job_id for message in look] for look in looks] == [[], [], ["24"]]
    assert len(busy) == 24
