"""The dispatcher publishes a bounded number of jobs ahead of the workers, per priority band."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from adjudge.observe import logs
from adjudge.relay.dispatcher import Dispatcher
from adjudge.stream import MemoryStream
from tests.support.store_harness import StoreHarness


async def test_full_stream_leaves_rows_in_the_outbox(sqlite_store: StoreHarness) -> None:
    store, stream = sqlite_store, MemoryStream()
    dispatcher = Dispatcher(store.database, store.jobs, stream, name="dispatcher", batch=4, ahead=5)
    await store.enqueue_many(12)
    while await dispatcher.dispatch_batch():
        pass
    assert await stream.depths() == {0: 0, 1: 0, 2: 5, 3: 0}
    urgent = await store.enqueue(priority=0)
    assert await dispatcher.dispatch_batch() == 1
    taken = await stream.read(consumer="w", limit=3, wait_ms=0)
    assert taken[0].job_id == urgent
    await stream.ack(taken)
    assert await dispatcher.dispatch_batch() == 2
    assert await stream.depths() == {0: 0, 1: 0, 2: 5, 3: 0}


async def test_several_dispatchers_keep_to_one_prefetch_limit(sqlite_store: StoreHarness) -> None:
    store, stream = sqlite_store, MemoryStream()
    dispatchers = [
        Dispatcher(store.database, store.jobs, stream, name=f"dispatcher-{n}", batch=4, ahead=20, least_ahead=20)
        for n in range(3)
    ]
    await store.enqueue_many(60)
    while any([await dispatcher.dispatch_batch() for dispatcher in dispatchers]):
        pass
    assert (await stream.depths())[2] == 20


async def test_few_messages_wait_in_the_stream_while_nobody_reads_them(sqlite_store: StoreHarness) -> None:
    store, stream = sqlite_store, MemoryStream()
    dispatcher = Dispatcher(store.database, store.jobs, stream, name="dispatcher", least_ahead=8)
    await store.enqueue_many(100)
    for _ in range(10):
        await dispatcher.dispatch_batch()
    assert (await stream.depths())[2] == 8


async def test_more_messages_wait_in_the_stream_for_workers_that_read_fast(sqlite_store: StoreHarness) -> None:
    store, stream = sqlite_store, MemoryStream()
    dispatcher = Dispatcher(store.database, store.jobs, stream, name="dispatcher", least_ahead=8)
    await store.enqueue_many(1_000)
    batches = []
    for _ in range(6):
        batches.append(await dispatcher.dispatch_batch())
        await stream.read(consumer="w", limit=1_000, wait_ms=0)
    assert batches == [8, 16, 32, 64, 128, 256]


async def test_messages_that_workers_hold_take_no_capacity_for_waiting_ones(sqlite_store: StoreHarness) -> None:
    store, stream = sqlite_store, MemoryStream()
    dispatcher = Dispatcher(store.database, store.jobs, stream, name="dispatcher", least_ahead=8)
    await store.enqueue_many(100)
    await dispatcher.dispatch_batch()
    assert len(await stream.read(consumer="w", limit=8, wait_ms=0)) == 8
    await dispatcher.dispatch_batch()
    depths, held = await stream.depths(), await stream.pending_counts()
    assert (held[2], depths[2] - held[2]) == (8, 16)


@pytest.fixture
def published_messages() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    logs.configure("warning", "json", stream)
    yield stream
    logs.configure("warning")


async def test_backlog_is_logged_once(sqlite_store: StoreHarness, published_messages: io.StringIO) -> None:
    store, stream = sqlite_store, MemoryStream()
    dispatcher = Dispatcher(store.database, store.jobs, stream, name="dispatcher", batch=4, ahead=20, least_ahead=20)
    for backlog in (1, 2):
        await store.enqueue_many(60)
        while await dispatcher.dispatch_batch():
            while await dispatcher.dispatch_batch():
                pass
            await stream.ack(await stream.read(consumer="w", limit=6, wait_ms=0))
        await stream.ack(await stream.read(consumer="w", limit=20, wait_ms=0))
        assert published_messages.getvalue().count("stream_full") == backlog
