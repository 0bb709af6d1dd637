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
        Dispatcher(store.database, store.jobs, stream, name=f"dispatcher-{n}", batch=4, ahead=20) for n in range(3)
    ]
    await store.enqueue_many(60)
    while any([await dispatcher.dispatch_batch() for dispatcher in dispatchers]):
        pass
    assert (await stream.depths())[2] == 20


@pytest.fixture
def published_messages() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    logs.configure("warning", "json", stream)
    yield stream
    logs.configure("warning")


async def test_backlog_is_logged_once(sqlite_store: StoreHarness, published_messages: io.StringIO) -> None:
    store, stream = sqlite_store, MemoryStream()
    dispatcher = Dispatcher(store.database, store.jobs, stream, name="dispatcher", batch=4, ahead=20)
    for backlog in (1, 2):
        await store.enqueue_many(60)
        while await dispatcher.dispatch_batch():
            while await dispatcher.dispatch_batch():
                pass
            await stream.ack(await stream.read(consumer="w", limit=6, wait_ms=0))
        await stream.ack(await stream.read(consumer="w", limit=20, wait_ms=0))
        assert published_messages.getvalue().count("stream_full") == backlog
