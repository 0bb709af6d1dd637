"""Conformance of streams, run on every driver."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from adjudge.domain.priority import BANDS
from adjudge.stream import Message, MessageBody, Stream
from tests.conformance.stream.conftest import StreamDriverFixture

NOTHING = dict.fromkeys(BANDS, 0)
HintOf = Callable[..., MessageBody]


async def take(stream: Stream, limit: int = 100, wait_ms: int = 0, consumer: str = "a") -> list[Message]:
    return await stream.read(consumer=consumer, limit=limit, wait_ms=wait_ms)


def jobs(messages: list[Message]) -> list[str | None]:
    return [message.job_id for message in messages]


async def test_published_message_is_read_unchanged(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream = side.open()
    (published,) = await stream.publish([hint_of("one")])
    (message,) = await take(stream)
    assert message.body == hint_of("one")
    assert (message.entry_id, message.band, message.job_id) == (published.entry_id, 2, "one")
    assert (message.defect, message.delivery_count, published.error) == (None, 1, None)
    assert message.enqueued_at_ms is not None
    assert message.enqueued_at_ms > 1_600_000_000_000


async def test_message_published_before_first_read_is_delivered(side: StreamDriverFixture, hint_of: HintOf) -> None:
    await side.open().publish([hint_of("early")])
    assert jobs(await take(side.open())) == ["early"]


async def test_each_message_goes_to_one_consumer_in_order(side: StreamDriverFixture, hint_of: HintOf) -> None:
    await side.open().publish([hint_of(f"{number}") for number in range(10)])
    first = await take(side.open(), limit=4, consumer="a")
    second = await take(side.open(), limit=100, consumer="b")
    assert jobs(first) == ["0", "1", "2", "3"]
    assert jobs(second) == ["4", "5", "6", "7", "8", "9"]
    assert await take(side.open(), consumer="a") == []


async def test_concurrent_readers_get_each_message_once(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream, seen, everything = side.open(), Counter[str | None](), 200

    async def read(stream: Stream, consumer: str, limit: int) -> None:
        while seen.total() < everything:
            messages = await take(stream, limit, wait_ms=50, consumer=consumer)
            assert len(messages) <= limit
            seen.update(jobs(messages))

    async with asyncio.TaskGroup() as readers:
        for number in range(4):
            readers.create_task(read(side.open(), f"reader-{number}", number + 1))
        for start in range(0, everything, 20):
            await stream.publish([hint_of(f"{start + step}", (start + step) % 4) for step in range(20)])
    assert seen == Counter(f"{number}" for number in range(everything))
    assert await take(stream) == []


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
async def test_read_respects_limit(side: StreamDriverFixture, hint_of: HintOf, limit: int) -> None:
    stream = side.open()
    await stream.publish([hint_of(f"{band}-{number}", band) for band in BANDS for number in range(3)])
    assert len(await take(stream, limit, wait_ms=50)) == limit
    assert sum((await stream.pending_counts()).values()) == limit


@pytest.mark.parametrize("limit", [1, 3])
async def test_woken_read_respects_limit(side: StreamDriverFixture, hint_of: HintOf, limit: int) -> None:
    stream, publisher = side.open(), side.open()
    waiting = asyncio.create_task(take(stream, limit, wait_ms=5000))
    await asyncio.sleep(0)
    await publisher.publish([hint_of(f"{band}", band) for band in BANDS])
    first = await waiting
    rest = await take(side.open(), 100, consumer="b")
    assert 1 <= len(first) <= limit
    assert sorted(jobs(first + rest), key=str) == ["0", "1", "2", "3"]


async def test_higher_bands_are_served_first(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream = side.open()
    await stream.publish([hint_of(f"{band}", band) for band in reversed(BANDS)])
    assert [message.band for message in await take(stream)] == list(BANDS)


async def test_priority_out_of_range_uses_nearest_band(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream = side.open()
    await stream.publish([hint_of("low", 99), hint_of("high", -5)])
    assert [(message.job_id, message.band) for message in await take(stream)] == [("high", 0), ("low", 3)]


@pytest.mark.parametrize("limit", [1, 5, 16])
async def test_lower_bands_do_not_starve(side: StreamDriverFixture, hint_of: HintOf, limit: int) -> None:
    stream = side.open()
    await stream.publish([hint_of(f"{band}-{number}", band) for band in BANDS for number in range(100)])
    seen: Counter[int] = Counter()
    while sum(seen.values()) < 80:
        seen.update(message.band for message in await take(stream, limit))
    assert all(seen[band] >= 4 for band in BANDS)
    assert seen[0] >= 4 * max(seen[1], seen[2], seen[3])


async def test_read_returns_on_first_message(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream, publisher = side.open(), side.open()
    waiting = asyncio.create_task(take(stream, limit=10, wait_ms=60_000))
    await asyncio.sleep(0.01)
    await publisher.publish([hint_of("awaited")])
    assert jobs(await asyncio.wait_for(waiting, 120)) == ["awaited"]


async def test_read_returns_empty_after_wait(side: StreamDriverFixture) -> None:
    assert await take(side.open(), wait_ms=20) == []


async def test_cancelled_read_loses_no_message(side: StreamDriverFixture, hint_of: HintOf) -> None:
    """Cancel a waiting reader around the arrival of a message: the next read, or another consumer, has it."""
    stream, publisher = side.open(), side.open()
    seen: list[str | None] = []
    for number in range(30):
        waiting = asyncio.create_task(take(stream, limit=1, wait_ms=5000))
        publishing = asyncio.create_task(publisher.publish([hint_of(f"{number}")]))
        for _ in range(number):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting, publishing})
        if not waiting.cancelled():
            seen += jobs(waiting.result())
        while len(seen) <= number:
            seen += jobs(await asyncio.wait_for(take(stream, limit=1, wait_ms=1000), 120))
    assert seen == [f"{number}" for number in range(30)]


async def test_messages_of_a_canceled_read_are_released_on_close(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream, other = side.open(), side.open()
    await take(stream)
    waiting = asyncio.create_task(take(stream, limit=1, wait_ms=60_000))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.wait({waiting})
    await other.publish([hint_of("caught")])
    await stream.close()
    messages = await take(other, wait_ms=5000, consumer="b")
    assert jobs(messages) == ["caught"]
    assert messages[0].body == hint_of("caught")
    assert await other.pending_counts() == NOTHING | {2: 1}


async def test_acknowledged_messages_are_deleted(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream = side.open()
    await stream.publish([hint_of("a"), hint_of("b"), hint_of("c", 0)])
    messages = await take(stream, limit=2)
    assert await stream.pending_counts() == NOTHING | {0: 1, 2: 1}
    assert await stream.depths() == NOTHING | {0: 1, 2: 2}
    assert await stream.ack(messages) == 2
    assert await stream.pending_counts() == NOTHING
    assert await stream.depths() == NOTHING | {2: 1}
    assert await stream.autoclaim(consumer="b", idle_ms=0, limit=10) == []


async def test_ack_twice_counts_once(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream = side.open()
    await stream.publish([hint_of("a")])
    messages = await take(stream)
    assert [await stream.ack(messages), await stream.ack(messages), await stream.ack([])] == [1, 0, 0]


async def test_any_consumer_can_acknowledge(side: StreamDriverFixture, hint_of: HintOf) -> None:
    await side.open().publish([hint_of("a")])
    messages = await take(side.open())
    assert await side.open().ack(messages) == 1


async def test_ack_of_old_message_keeps_new_payload(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream = side.open()
    await stream.publish([hint_of("retried")])
    old = await take(stream)
    await stream.publish([hint_of("retried")])
    await stream.ack(old)
    (new,) = await take(stream)
    assert new.body == hint_of("retried")


async def test_autoclaim_claims_idle_messages_and_counts_deliveries(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream = side.open()
    await stream.publish([hint_of("lost")])
    await take(stream, consumer="dead")
    assert await stream.autoclaim(consumer="b", idle_ms=3_600_000, limit=10) == []
    (message,) = await stream.autoclaim(consumer="b", idle_ms=0, limit=10)
    assert (message.body, message.delivery_count) == (hint_of("lost"), 2)
    (message,) = await stream.autoclaim(consumer="c", idle_ms=0, limit=10)
    assert message.delivery_count == 3
    assert await stream.ack([message]) == 1


async def test_autoclaim_ignores_unread_messages(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream = side.open()
    await stream.publish([hint_of("new")])
    assert await stream.autoclaim(consumer="b", idle_ms=0, limit=10) == []
    assert jobs(await take(stream)) == ["new"]


async def test_autoclaim_continues_at_cursor(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream = side.open()
    await stream.publish([hint_of(f"{number}") for number in range(10)])
    await take(stream)
    looks = [jobs(await stream.autoclaim(consumer="b", idle_ms=0, limit=4)) for _ in range(3)]
    assert looks == [["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8", "9"]]
    assert jobs(await stream.autoclaim(consumer="b", idle_ms=0, limit=2)) == ["0", "1"]


async def test_autoclaim_reaches_every_band(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream = side.open()
    await stream.publish([hint_of(f"{band}-{number}", band) for band in BANDS for number in range(3)])
    await take(stream)
    seen: Counter[str | None] = Counter()
    for _ in range(8):
        messages = await stream.autoclaim(consumer="b", idle_ms=0, limit=2)
        assert len(messages) <= 2
        seen.update(jobs(messages))
    assert {message.band for message in await stream.autoclaim(consumer="b", idle_ms=0, limit=100)} <= set(BANDS)
    assert {f"{job}"[0] for job in seen} == {"0", "1", "2", "3"}


async def test_maxlen_bounds_stream(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream = side.open(maxlen=100)
    await stream.publish([hint_of(f"{number}") for number in range(1000)])
    depth = (await stream.depths())[2]
    assert 100 <= depth <= 300  # about: Redis drops whole blocks of a hundred
    assert jobs(await take(stream, limit=2000))[-1] == "999"


async def test_message_trimmed_while_pending_is_not_delivered_again(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream = side.open(maxlen=100)
    await stream.publish([hint_of("old")])
    (old,) = await take(stream)
    await stream.publish([hint_of(f"{number}") for number in range(1000)])
    assert (await stream.depths())[2] <= 300
    assert await stream.autoclaim(consumer="b", idle_ms=0, limit=10) == []
    assert await stream.pending_counts() == NOTHING
    assert await stream.ack([old]) == 0


async def test_invalid_message_does_not_fail_others(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream = side.open()
    source = MessageBody("bad", 2, "judge", None, {"source": "int main() {\n}"})
    outcomes = await stream.publish([hint_of("a"), source, hint_of("b")])
    assert [outcome.job_id for outcome in outcomes] == ["a", "bad", "b"]
    assert [outcome.entry_id is None for outcome in outcomes] == [False, True, False]
    assert "payload.source" in (outcomes[1].error or "")
    assert "main" not in (outcomes[1].error or "")
    assert jobs(await take(stream)) == ["a", "b"]


async def test_publish_of_empty_list(side: StreamDriverFixture) -> None:
    assert await side.open().publish([]) == []


@pytest.mark.parametrize("field", ["job_id", "enqueue_ts", "payload_ref", "priority"])
async def test_entry_with_missing_field_is_defective(side: StreamDriverFixture, field: str) -> None:
    stream = side.open()
    await side.add_without(field, "poor")
    (message,) = await take(stream)
    assert (message.body, message.defect) == (None, "missing_field")
    assert message.job_id == (None if field == "job_id" else "poor")
    assert await stream.ack([message]) == 1


async def test_message_without_payload_is_defective_with_job_id(side: StreamDriverFixture) -> None:
    stream = side.open()
    await side.spoil_payload("hollow")
    (message,) = await take(stream)
    assert (message.body, message.defect, message.job_id) == (None, "payload_missing_or_invalid", "hollow")
    (again,) = await stream.autoclaim(consumer="b", idle_ms=0, limit=1)
    assert (again.defect, again.delivery_count) == ("payload_missing_or_invalid", 2)
    assert await stream.ack([again]) == 1


async def test_flushed_stream_recovers(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream, publisher = side.open(), side.open()
    await stream.publish([hint_of("before")])
    old = await take(stream)
    await side.flush()
    assert await stream.pending_counts() == NOTHING
    assert await stream.depths() == NOTHING
    assert await stream.autoclaim(consumer="a", idle_ms=0, limit=5) == []
    await publisher.publish([hint_of("after")])
    assert jobs(await take(stream)) == ["after"]
    assert await stream.ack(old) == 0


async def test_flush_during_blocking_read_recovers(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream, publisher = side.open(), side.open()
    await take(stream)
    waiting = asyncio.create_task(take(stream, wait_ms=2000))
    await asyncio.sleep(0.05)
    await side.flush()
    await publisher.publish([hint_of("after")])
    seen = jobs(await waiting) or jobs(await take(stream, wait_ms=2000))
    assert seen == ["after"]


async def test_concurrent_group_creation(side: StreamDriverFixture, hint_of: HintOf) -> None:
    await side.open().publish([hint_of(f"{number}") for number in range(8)])
    reads = (take(side.open(), limit=1, consumer=f"{number}") for number in range(8))
    seen = [jobs(messages) for messages in await asyncio.gather(*reads)]
    assert sorted(job for (job,) in seen if job) == [f"{number}" for number in range(8)]


async def test_find_existing_returns_unacknowledged_messages(side: StreamDriverFixture, hint_of: HintOf) -> None:
    stream = side.open()
    unread, read, done = await stream.publish([hint_of("unread", 3), hint_of("read", 0), hint_of("done", 1)])
    taken = {message.job_id: message for message in await take(stream, limit=2)}
    await stream.ack([taken["done"]])
    entries = [(3, unread.entry_id), (0, read.entry_id), (1, done.entry_id), (2, unread.entry_id), (2, None)]
    assert await stream.find_existing(entries) == {(3, unread.entry_id), (0, read.entry_id)}
    assert await stream.find_existing([]) == set()
    await side.flush()
    assert await stream.find_existing(entries) == set()
