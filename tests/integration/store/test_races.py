"""Races with real connections: several pools on PostgreSQL, several processes' worth of connections on SQLite."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial

import pytest

from adjudge.domain.errors import Conflict
from adjudge.domain.states import SubmissionStatus
from adjudge.store import Tx
from adjudge.store.jobs import outbox
from adjudge.store.jobs.models import DispatchedMessage, JobResult, PoisonJob
from adjudge.store.judging import commands as submission_commands
from adjudge.store.judging.models import SubmissionUpdate
from tests.support.store_harness import StoreHarness, fence_of, open_store

CLAIMANTS = 16


@pytest.fixture
async def rivals(store_url: str) -> AsyncIterator[list[StoreHarness]]:
    """Several stores on one database, each with connections (on SQLite: a writer thread) of its own."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(open_store(store_url)) for _ in range(8)]


async def test_sixteen_claimants_one_job_one_winner(rivals: list[StoreHarness]) -> None:
    job_id = await rivals[0].enqueue()
    claims = [rivals[n % len(rivals)].claim(job_id, worker=f"w{n}") for n in range(CLAIMANTS)]
    outcomes = await asyncio.gather(*claims)
    winners = [outcome.done[0] for outcome in outcomes if outcome.done]
    assert len(winners) == 1
    assert winners[0].attempt_id == 1
    reasons = Counter(str(item.reason) for outcome in outcomes for item in outcome.refused)
    assert reasons == {"lease_still_valid": CLAIMANTS - 1}
    assert (await rivals[0].job(job_id))["lease_owner"] == winners[0].actor


async def test_sixteen_workers_share_many_jobs_without_overlap(rivals: list[StoreHarness]) -> None:
    job_ids = await rivals[0].enqueue_many(60)
    outcomes = await asyncio.gather(
        *(rivals[n % len(rivals)].claim(*job_ids, worker=f"w{n}") for n in range(CLAIMANTS))
    )
    won = Counter(job.id for outcome in outcomes for job in outcome.done)
    assert won == dict.fromkeys(job_ids, 1)
    assert all(len(outcome.done) + len(outcome.refused) == 60 for outcome in outcomes)


async def test_late_finish_changes_nothing_and_is_refused_with_a_reason(rivals: list[StoreHarness]) -> None:
    first, second = rivals[:2]
    old = await first.claimed(worker="slow")
    await first.clock.advance(ms=15_000)
    second.clock.now_us = first.clock.now_us
    outcome = await second.transact(lambda tx: second.jobs.claim(tx, [old.job_id], worker="quick", lease_ms=15_000))
    new = fence_of(outcome.done[0])
    late, rightful = await asyncio.gather(
        first.transact(lambda tx: first.jobs.finish_and_claim_next(tx, [JobResult(old, result={"by": "slow"})])),
        second.transact(lambda tx: second.jobs.finish_and_claim_next(tx, [JobResult(new, result={"by": "quick"})])),
    )
    assert [str(item.reason) for item in late.refused] == ["stale_attempt"]
    assert [job.attempt_id for job in rightful.done] == [2]
    row = await first.row("SELECT CAST(result AS text) AS result FROM jobs")
    assert "quick" in row["result"]


async def test_two_appliers_of_one_version_make_one_conflict(rivals: list[StoreHarness]) -> None:
    (item,) = await rivals[0].submit()

    async def apply(store: StoreHarness) -> None:
        change = SubmissionUpdate(item.submission_id, 1, SubmissionStatus.JUDGING, "a", "race")
        await store.transact(lambda tx: submission_commands.update(tx, [change]))

    outcomes = await asyncio.gather(*(apply(store) for store in rivals[:2]), return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", "VersionConflict"]
    assert (await rivals[0].row("SELECT version FROM submissions"))["version"] == 2


async def test_eight_watchdogs_free_each_job_once(rivals: list[StoreHarness]) -> None:
    job_ids = await rivals[0].enqueue_many(40)
    await rivals[0].claim(*job_ids)
    await rivals[0].clock.advance(ms=15_000)
    for store in rivals:
        store.clock.now_us = rivals[0].clock.now_us
    freed = await asyncio.gather(
        *(store.transact(lambda tx, jobs=store.jobs: jobs.release_expired(tx, actor="dog")) for store in rivals)  # type: ignore[misc]  # bound now
    )
    assert Counter(job.id for batch in freed for job in batch) == dict.fromkeys(job_ids, 1)
    log = await rivals[0].rows("SELECT job_id FROM job_status_log WHERE to_status = 'pending'")
    assert len(log) == 40


async def test_overlapping_batches_in_opposite_orders_never_deadlock(rivals: list[StoreHarness]) -> None:
    job_ids = await rivals[0].enqueue_many(50)
    orders = [job_ids, job_ids[::-1]] * 4
    claims = [store.claim(*order, worker=f"w{n}") for n, (store, order) in enumerate(zip(rivals, orders, strict=True))]
    outcomes = await asyncio.wait_for(asyncio.gather(*claims), 120)
    assert Counter(job.id for outcome in outcomes for job in outcome.done) == dict.fromkeys(job_ids, 1)


async def test_a_cancel_and_a_finish_of_one_submission_never_deadlock(rivals: list[StoreHarness]) -> None:
    items = await rivals[0].submit(10)
    claimed = await rivals[0].claim(*(item.job_id for item in items))
    finishes = [JobResult(fence_of(job)) for job in claimed.done]

    async def cancel(store: StoreHarness, submission_id: str) -> None:
        await store.transact(lambda tx: store.submissions.cancel(tx, submission_id, actor="ada", reason="race"))

    outcomes = await asyncio.wait_for(
        asyncio.gather(
            *(cancel(rivals[n % 4], item.submission_id) for n, item in enumerate(items)),
            rivals[5].transact(lambda tx: rivals[5].jobs.finish_and_claim_next(tx, finishes)),
            return_exceptions=True,
        ),
        120,
    )
    assert all(outcome is None or not isinstance(outcome, Conflict) for outcome in outcomes)
    rows = await rivals[0].rows(
        "SELECT submissions.status AS s, jobs.status AS j FROM submissions JOIN jobs ON submission_id = submissions.id"
    )
    assert {(row["s"], row["j"]) for row in rows} <= {("canceled", "canceled"), ("error", "succeeded")}


async def test_a_deferral_and_the_note_of_a_delivery_never_deadlock(rivals: list[StoreHarness]) -> None:
    """A worker defers what it has just read, while the dispatcher marks it as queued: each locks job and outbox row."""
    job_ids, begun = await rivals[0].enqueue_many(200), 0
    taken = await rivals[0].transact(lambda tx: outbox.take_due(tx, limit=500))
    sent = [DispatchedMessage(row.job_id, "1-1", row.dispatch_seq) for row in taken]

    async def note(tx: Tx) -> None:
        nonlocal begun
        begun += 1
        await rivals[0].jobs.mark_queued(tx, sent, actor="dispatcher")

    async def defer(tx: Tx) -> object:
        nonlocal begun
        begun += 1
        return await rivals[1].jobs.defer(tx, job_ids, delay_ms=3_000, actor="worker", reason="busy")

    await asyncio.wait_for(asyncio.gather(rivals[1].transact(defer), rivals[0].transact(note)), 120)
    assert begun == 2, "PostgreSQL ended one of the two, and it was run again"
    assert {row["status"] for row in await rivals[0].rows("SELECT status FROM jobs")} == {"pending"}


async def test_a_cancel_and_the_note_of_a_delivery_never_deadlock(rivals: list[StoreHarness]) -> None:
    """Two clients cancel jobs while the dispatcher marks them as queued, again and again: no transaction is retried."""
    begun = 0
    for _ in range(12):
        items = await rivals[0].submit(40)
        taken = await rivals[0].transact(lambda tx: outbox.take_due(tx, limit=500))
        sent = [DispatchedMessage(row.job_id, "1-1", row.dispatch_seq) for row in taken]

        async def note(tx: Tx, sent: list[DispatchedMessage] = sent) -> None:
            nonlocal begun
            begun += 1
            await rivals[0].jobs.mark_queued(tx, sent, actor="dispatcher")

        async def cancel(tx: Tx, submission_id: str) -> None:
            nonlocal begun
            begun += 1
            await rivals[1].submissions.cancel(tx, submission_id, actor="ada", reason="no")

        async def client(store: StoreHarness, ids: list[str]) -> None:
            for submission_id in ids:
                await store.transact(partial(cancel, submission_id=submission_id))

        ids = [item.submission_id for item in items]
        clients = client(rivals[1], ids[::2]), client(rivals[2], ids[1::2])
        await asyncio.wait_for(asyncio.gather(*clients, rivals[0].transact(note)), 120)
    assert begun == 12 * 41, "PostgreSQL ended a transaction, and it was run again"
    rows = await rivals[0].rows("SELECT status FROM jobs")
    assert {row["status"] for row in rows} == {"canceled"}


async def test_two_replays_of_one_letter_make_one_job(rivals: list[StoreHarness]) -> None:
    job_id = await rivals[0].enqueue()
    await rivals[0].transact(
        lambda tx: rivals[0].jobs.dead_letter(tx, [PoisonJob(job_id, "POISON", "bad")], actor="relay")
    )
    letter = (await rivals[0].row("SELECT id FROM dead_letters"))["id"]

    async def replay(store: StoreHarness) -> dict[str, str | None]:
        try:
            return await store.transact(lambda tx: store.jobs.replay(tx, [letter], actor="ops", note="race"))
        except Conflict:  # it saw the letter open, and was not the first to close it
            return {}

    made = await asyncio.gather(*(replay(store) for store in rivals))
    assert sorted(len(item) for item in made) == [0] * 7 + [1]
    assert (await rivals[0].row("SELECT count(*) AS n FROM jobs"))["n"] == 2


async def test_one_key_enqueued_by_many_is_one_job(rivals: list[StoreHarness]) -> None:
    made = await asyncio.gather(*(store.enqueue(dedupe_key="once") for store in rivals))
    assert len(set(made)) == 1
