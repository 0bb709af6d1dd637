"""Batcher: what arrives during a write goes into the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from adjudge.concurrency.batcher import Batcher
from tests.support.log_capture import capture_logs


class Writer:
    """Records batches; each waits until ``allow`` was called once for it, unless ``is_open``."""

    def __init__(self, *, is_open: bool = False) -> None:
        self.batches: list[list[int]] = []
        self.bad: set[int] = set()
        self._gate = asyncio.Semaphore(0)
        self._is_open = is_open

    def allow(self, batches: int = 1) -> None:
        for _ in range(batches):
            self._gate.release()

    async def __call__(self, items: Sequence[int]) -> list[int]:
        self.batches.append([*items])
        if not self._is_open:
            await self._gate.acquire()
        if wrong := self.bad.intersection(items):
            raise ValueError(f"bad: {sorted(wrong)}")
        return [item * 10 for item in items]


def put_all(batcher: Batcher[int, int], *items: int) -> list[asyncio.Task[int]]:
    return [asyncio.create_task(batcher.put(item)) for item in items]


async def until_written(writer: Writer, batches: int) -> None:
    while len(writer.batches) < batches:
        await asyncio.sleep(0)


async def test_lone_item_is_written_at_once() -> None:
    writer = Writer(is_open=True)
    assert await Batcher(writer, name="b").put(4) == 40
    assert writer.batches == [[4]]


async def test_items_put_during_a_write_form_the_next_batch() -> None:
    writer = Writer()
    batcher = Batcher(writer, name="b")
    first = put_all(batcher, 1)
    await until_written(writer, 1)
    later = put_all(batcher, 2, 3)
    await asyncio.sleep(0)
    writer.allow(2)
    assert await asyncio.gather(*first, *later) == [10, 20, 30]
    assert writer.batches == [[1], [2, 3]]
    await batcher.flush()
    assert batcher.is_idle


async def test_item_put_right_after_a_result_is_written() -> None:
    writer = Writer(is_open=True)
    batcher = Batcher(writer, name="b")
    for number in range(20):
        assert await batcher.put(number) == number * 10
        for _ in range(number % 4):
            await asyncio.sleep(0)


async def test_batch_holds_at_most_its_weight_but_at_least_one_item() -> None:
    writer = Writer(is_open=True)
    batcher = Batcher(writer, name="b", max_weight=5, weight=lambda item: item)
    await asyncio.gather(*put_all(batcher, 2, 3, 9, 1, 5))
    assert writer.batches == [[2, 3], [9], [1], [5]]


async def test_second_writer_starts_only_for_a_full_batch() -> None:
    writer = Writer()
    batcher = Batcher(writer, name="b", max_weight=3, writers=2)
    tasks = put_all(batcher, 1)
    await until_written(writer, 1)
    tasks += put_all(batcher, 2, 3)
    for _ in range(5):
        await asyncio.sleep(0)
    assert writer.batches == [[1]]
    tasks += put_all(batcher, 4)
    await until_written(writer, 2)
    assert writer.batches == [[1], [2, 3, 4]]
    writer.allow(2)
    await asyncio.gather(*tasks)


async def test_same_key_is_one_entry_with_the_latest_item() -> None:
    writer = Writer()
    batcher = Batcher(writer, name="b", key=lambda item: item % 100)
    first = put_all(batcher, 1)
    await until_written(writer, 1)
    later = put_all(batcher, 102, 2, 3, 202)
    await asyncio.sleep(0)
    writer.allow(2)
    assert await asyncio.gather(*later) == [2020, 2020, 30, 2020]
    assert writer.batches == [[1], [202, 3]]
    await asyncio.gather(*first)


async def test_canceled_caller_withdraws_an_unsent_item() -> None:
    writer = Writer()
    batcher = Batcher(writer, name="b", key=lambda item: item)
    first, gone, shared, stays = put_all(batcher, 1, 2, 3, 3)
    await until_written(writer, 1)
    assert writer.batches == [[1, 2, 3]]
    gone2, shared2, stays2 = put_all(batcher, 5, 6, 6)
    await asyncio.sleep(0)
    gone.cancel()  # already sent: written all the same
    gone2.cancel()
    shared2.cancel()
    writer.allow(2)
    assert await asyncio.gather(*[first, shared, stays, stays2]) == [10, 30, 30, 60]
    assert writer.batches == [[1, 2, 3], [6]]


async def test_error_reaches_everybody_of_the_batch_and_the_next_is_written() -> None:
    writer = Writer(is_open=True)
    writer.bad = {2}
    batcher = Batcher(writer, name="b")
    results = await asyncio.gather(*put_all(batcher, 1, 2), return_exceptions=True)
    assert [type(result) for result in results] == [ValueError, ValueError]
    assert await batcher.put(3) == 30


async def test_isolation_gives_the_error_to_the_item_at_fault_alone() -> None:
    writer = Writer(is_open=True)
    writer.bad = {2}
    batcher = Batcher(writer, name="b", isolate=lambda error: isinstance(error, ValueError))
    first, second, third = await asyncio.gather(*put_all(batcher, 1, 2, 3), return_exceptions=True)
    assert (first, third) == (10, 30)
    assert isinstance(second, ValueError)
    assert writer.batches == [[1, 2, 3], [1], [2], [3]]


@pytest.mark.parametrize("good_before", [0, 1])
async def test_error_that_is_of_no_single_item_ends_the_isolation(good_before: int) -> None:
    """In an outage the items of a batch are not tried one after the other, each until its own time is over."""
    batches: list[list[int]] = []

    async def write(items: Sequence[int]) -> list[int]:
        batches.append([*items])
        if good_before and len(batches) == 1:
            raise ValueError("one of them")
        if len(batches) > good_before + good_before:
            raise ConnectionError("an outage")
        return [item * 10 for item in items]

    batcher = Batcher(write, name="b", isolate=lambda error: isinstance(error, ValueError))
    results = await asyncio.gather(*put_all(batcher, 1, 2, 3, 4), return_exceptions=True)
    assert results[:good_before] == [10][:good_before]
    assert [type(result) for result in results[good_before:]] == [ConnectionError] * (4 - good_before)
    assert batches == ([[1, 2, 3, 4]] if not good_before else [[1, 2, 3, 4], [1], [2]])


async def test_wrong_number_of_results_is_an_error() -> None:
    async def forgetful(items: Sequence[int]) -> list[int]:
        return []

    with pytest.raises(ValueError, match="zip"):
        await Batcher(forgetful, name="b").put(1)


async def test_offered_item_is_written_before_flush_returns() -> None:
    writer = Writer(is_open=True)
    batcher = Batcher(writer, name="b", pause_sec=3_600)
    batcher.offer(1)
    batcher.offer(2)
    await batcher.flush()  # does not sit out the pause
    assert writer.batches == [[1, 2]]
    assert batcher.is_idle


async def test_items_wait_for_the_end_of_the_pause() -> None:
    writer = Writer(is_open=True)
    batcher = Batcher(writer, name="b", pause_sec=3_600)
    await batcher.put(1)
    batcher.offer(2)
    for _ in range(5):
        await asyncio.sleep(0)
    assert writer.batches == [[1]]
    await batcher.flush()
    assert writer.batches == [[1], [2]]


async def test_close_cancels_the_write_and_everybody_who_waits() -> None:
    writer = Writer()
    batcher = Batcher(writer, name="b")
    (sent,) = put_all(batcher, 1)
    await until_written(writer, 1)
    (unsent,) = put_all(batcher, 2)
    await asyncio.sleep(0)
    await batcher.close()
    results = await asyncio.gather(sent, unsent, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError] * 2
    assert batcher.is_idle
    assert writer.batches == [[1]]


async def test_closed_before_its_first_write_it_can_be_flushed_and_used_again() -> None:
    writer = Writer(is_open=True)
    batcher = Batcher(writer, name="b")
    batcher.offer(1)
    await batcher.close()
    assert (batcher.is_idle, writer.batches) == (True, [])
    await batcher.flush()
    assert await batcher.put(2) == 20


async def test_close_during_isolation_cancels_everybody_of_the_batch() -> None:
    writer = Writer()
    batcher = Batcher(writer, name="b", isolate=lambda error: isinstance(error, ValueError))
    writer.bad = {1}
    first = put_all(batcher, 0)
    await until_written(writer, 1)
    later = put_all(batcher, 1, 2, 3)
    await asyncio.sleep(0)
    writer.allow(2)
    await until_written(writer, 3)  # the batch failed; its first item is written again, alone
    await batcher.close()
    async with asyncio.timeout(5):
        results = await asyncio.gather(*first, *later, return_exceptions=True)
    assert results[0] == 0
    assert all(isinstance(result, asyncio.CancelledError) for result in results[1:])


async def test_isolation_leaves_out_items_that_nobody_waits_for() -> None:
    writer = Writer()
    batcher = Batcher(writer, name="b", isolate=lambda error: isinstance(error, ValueError))
    writer.bad = {1}
    first = put_all(batcher, 0)
    await until_written(writer, 1)
    later = put_all(batcher, 1, 2, 3)
    await asyncio.sleep(0)
    writer.allow()
    await until_written(writer, 2)
    later[1].cancel()  # its request timed out while the batch was being written
    await asyncio.wait([later[1]])
    writer.allow(4)
    results = await asyncio.gather(*first, *later, return_exceptions=True)
    assert (results[0], results[3]) == (0, 30)
    assert writer.batches == [[0], [1, 2, 3], [1], [3]]


async def test_failure_of_an_offered_item_is_logged() -> None:
    writer = Writer(is_open=True)
    writer.bad = {1}
    batcher = Batcher(writer, name="acks")
    with capture_logs() as lines:
        batcher.offer(1)
        await batcher.flush()
    assert "batch_write_failed" in lines.getvalue()
    assert await batcher.put(2) == 20
