"""The outbox on both databases: what is due, who takes it, and which delivery still counts."""

from __future__ import annotations

import asyncio

from adjudge.domain.states import JobStatus
from adjudge.store.engine.notify import CHANNEL_OUTBOX
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs import outbox
from adjudge.store.jobs.models import DispatchedMessage, JobResult, PoisonJob
from adjudge.store.jobs.outbox import DueRow
from adjudge.store.ops import queue_stats
from tests.support.store_harness import StoreHarness, fence_of


async def take(store: StoreHarness, limit: int = 100) -> list[DueRow]:
    return await store.transact(lambda tx: outbox.take_due(tx, limit=limit))


async def note(store: StoreHarness, *due: DueRow, entry_id: str = "1-1") -> None:
    deliveries = [DispatchedMessage(row.job_id, entry_id, row.dispatch_seq) for row in due]
    await store.transact(lambda tx: store.jobs.mark_queued(tx, deliveries, actor="relay"))


async def test_a_delivered_job_is_queued_and_announced_no_more(store: StoreHarness) -> None:
    job_id = await store.enqueue(payload={"x": 1}, priority=0, trace_id="t")
    (row,) = await take(store)
    assert (row.job_id, row.kind, row.priority, row.trace_id, row.attempts) == (job_id, "node", 0, "t", 1)
    await note(store, row)
    assert (await store.job(job_id))["status"] == "queued"
    message = await store.row("SELECT state, stream_entry_id FROM outbox")
    assert (message["state"], message["stream_entry_id"]) == ("delivered", "1-1")
    await store.clock.advance(ms=3_600_000)
    assert await take(store) == []


async def test_a_taken_row_comes_due_again_later_each_time(store: StoreHarness) -> None:
    await store.enqueue()
    for attempt, wait_ms in enumerate((1_000, 2_000, 4_000), 1):
        (row,) = await take(store)
        assert (row.attempts, row.dispatch_seq) == (attempt, attempt)
        due = await store.row("SELECT next_attempt_at AS at FROM outbox")
        assert due["at"] == store.clock.now_us + wait_ms * 1_000
        assert await take(store) == []
        await store.clock.advance(ms=wait_ms)
    assert len(await take(store)) == 1


async def test_relays_at_once_take_each_row_once(store: StoreHarness) -> None:
    job_ids = await store.enqueue_many(40)
    batches = await asyncio.gather(*(take(store, limit=10) for _ in range(6)))
    assert sorted(row.job_id for batch in batches for row in batch) == sorted(job_ids)


async def test_a_delay_is_waited_out(store: StoreHarness) -> None:
    await store.enqueue(delay_ms=500)
    assert await take(store) == []
    await store.clock.advance(ms=500)
    assert len(await take(store)) == 1


async def test_a_delivery_noted_late_does_not_count_for_a_job_that_was_put_back(store: StoreHarness) -> None:
    """Its message was read, its job claimed and released before the relay could say that it was delivered."""
    job_id = await store.enqueue()
    (old,) = await take(store)
    (job,) = (await store.claim(job_id)).done
    again = JobResult(fence_of(job), JobStatus.PENDING, reason="again", delay_ms=2_000)
    await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [again]))
    await note(store, old)
    assert (await store.job(job_id))["status"] == "pending"
    await store.clock.advance(ms=2_000)
    (new,) = await take(store)
    await note(store, old)
    assert (await store.job(job_id))["status"] == "pending"
    await note(store, new)
    assert (await store.job(job_id))["status"] == "queued"


async def test_a_job_claimed_before_its_delivery_was_noted_keeps_running(store: StoreHarness) -> None:
    job_id = await store.enqueue()
    (row,) = await take(store)
    await store.claim(job_id)
    await note(store, row)
    assert (await store.job(job_id))["status"] == "running"
    assert (await store.row("SELECT state FROM outbox"))["state"] == "delivered"


async def test_a_failed_delivery_is_remembered_and_tried_again(store: StoreHarness) -> None:
    job_id = await store.enqueue()
    await take(store)
    await store.transact(lambda tx: outbox.mark_failed(tx, [(job_id, "stream away")]))
    row = await store.row("SELECT state, last_error FROM outbox")
    assert (row["state"], row["last_error"]) == ("pending", "stream away")
    assert (await store.transact(queue_stats.count_outbox)).pending == 1


async def test_a_lost_message_is_announced_again(store: StoreHarness) -> None:
    job_id = await store.enqueue(priority=1)
    await note(store, *await take(store), entry_id="7-0")
    await store.clock.advance(ms=10_000)
    find = store.database.read
    assert await find(lambda tx: store.jobs.find_long_queued(tx, older_than_ms=20_000)) == []
    (stuck,) = await find(lambda tx: store.jobs.find_long_queued(tx, older_than_ms=10_000))
    assert (stuck.job_id, stuck.priority, stuck.entry_id) == (job_id, 1, "7-0")
    (back,) = await store.transact(lambda tx: store.jobs.requeue(tx, [job_id], actor="reconciler"))
    assert (back.status, back.reason) == ("pending", "message_lost")
    assert [row.job_id for row in await take(store)] == [job_id]


async def test_a_deferred_job_waits_longer_and_is_announced_then(store: StoreHarness) -> None:
    job_id = await store.enqueue()
    await note(store, *await take(store))
    (job,) = await store.transact(
        lambda tx: store.jobs.defer(tx, [job_id], delay_ms=3_000, actor="worker", reason="group_full")
    )
    assert (job.status, job.reason) == ("pending", "group_full")
    assert await take(store) == []
    await store.clock.advance(ms=3_000)
    assert [row.job_id for row in await take(store)] == [job_id]


async def test_a_job_is_deferred_before_its_delivery_is_noted_too(store: StoreHarness) -> None:
    """A worker is quicker than the note: were the job not deferred, its message would lie with the worker unheeded."""
    job_id = await store.enqueue()
    taken = await take(store)
    (job,) = await store.transact(
        lambda tx: store.jobs.defer(tx, [job_id], delay_ms=3_000, actor="worker", reason="busy")
    )
    assert (job.status, job.reason) == ("pending", "busy")
    await note(store, *taken)
    assert (await store.job(job_id))["status"] == "pending"
    assert await take(store) == []
    await store.clock.advance(ms=3_000)
    assert [row.job_id for row in await take(store)] == [job_id]


async def test_what_is_not_due_is_not_made_due_sooner_by_deferring_it(store: StoreHarness) -> None:
    """A late message about a job that waits for its next attempt says nothing about how long it should wait."""
    job_id = await store.enqueue(delay_ms=60_000)
    assert not await store.transact(
        lambda tx: store.jobs.defer(tx, [job_id], delay_ms=250, actor="worker", reason="busy")
    )
    await store.clock.advance(ms=30_000)
    assert await take(store) == []


async def test_a_commit_with_something_to_deliver_rings(store: StoreHarness) -> None:
    rung = asyncio.Event()
    silence = store.database.listen(CHANNEL_OUTBOX, rung.set)
    await store.enqueue()
    await asyncio.wait_for(rung.wait(), 120)
    silence()


async def test_full_priority_band_does_not_block_others(store: StoreHarness) -> None:
    low = [await store.enqueue(priority=9) for _ in range(3)]
    urgent = await store.enqueue(priority=-1)
    taken = await store.transact(lambda tx: outbox.take_due(tx, limit=10, capacities=[5, 5, 5, 0]))
    assert [row.job_id for row in taken] == [urgent]
    taken = await store.transact(lambda tx: outbox.take_due(tx, limit=10, capacities=[0, 0, 0, 2]))
    assert [row.job_id for row in taken] == low[:2]


async def test_no_plan_takes_more_than_the_capacity(postgres_store: StoreHarness) -> None:
    """A locked choice of rows must be made once, however PostgreSQL goes through the table.

    It believes that this one has a single row, and so would begin with the table and choose anew for each row it
    meets: a choice that passes by what it has locked already.
    """
    jobs = [await postgres_store.enqueue()]
    await postgres_store.transact(lambda tx: tx.execute(Statement("analyze", "Asked by a test.", "ANALYZE outbox")))
    jobs += [await postgres_store.enqueue() for _ in range(19)]
    assert [row.job_id for row in await take(postgres_store, limit=4)] == jobs[:4]


async def test_a_job_that_ended_before_it_was_due_waits_for_no_delivery(store: StoreHarness) -> None:
    canceled, poisoned, waiting = await store.enqueue_many(3, delay_ms=60_000)
    await store.transact(lambda tx: store.jobs.cancel(tx, [canceled], actor="ann", reason="mistake"))
    poison = PoisonJob(poisoned, "UNKNOWN_KIND", "no handler")
    await store.transact(lambda tx: store.jobs.dead_letter(tx, [poison], actor="w1"))
    assert (await store.transact(queue_stats.count_outbox)).pending == 1
    await store.transact(lambda tx: store.jobs.set_aside(tx, [waiting], actor="w1", error="a bug"))
    assert (await store.transact(queue_stats.count_outbox)).pending == 0
    await store.clock.advance(ms=60_000)
    assert await take(store) == []
