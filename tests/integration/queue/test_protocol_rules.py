"""The numbered rules of the queue protocol, one test each, in both modes.

C2: reading and acknowledging. C3: fence and lease. C4, C5 and D1 are next door. The numbers are those of the
requirement. Where a rule was widened here, the test says so.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adjudge.domain.errors import Unavailable
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.models import Fence, Job
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.worker.handler import HandlerResult
from tests.integration.queue.conftest import QueueHarness
from tests.integration.queue.manual_worker import ManualWorker, corrupt_message, finish
from tests.support.store_harness import metric_value


@pytest.fixture
def manual_worker(queue: QueueHarness) -> ManualWorker:
    return ManualWorker(queue)


# C2: reading.


async def test_c2_1_a_message_without_its_fields_is_acknowledged_and_harms_nobody(manual_worker: ManualWorker) -> None:
    await manual_worker.delivered()
    (message,) = await manual_worker.read()
    before = metric_value("worker_claim_total", status="poison", reason="missing_field")
    async with manual_worker.worker() as worker:
        await worker.reader.claim_messages([corrupt_message(message, "missing_field", job_id=None)])
    assert manual_worker.stream.acks == [(None, None)]
    assert metric_value("worker_claim_total", status="poison", reason="missing_field") == before + 1
    assert (await manual_worker.job())["status"] == "queued", "the reconciler will announce it again"


async def test_c2_2_missing_payload_is_read_from_the_row(manual_worker: ManualWorker) -> None:
    """Widened: the requirement ends such a job as a system error; here the row is the truth."""
    job_id = await manual_worker.delivered()
    (message,) = await manual_worker.read()
    async with manual_worker.worker() as worker:
        await worker.reader.claim_messages([corrupt_message(message, "payload_missing_or_invalid", job_id=job_id)])
        await manual_worker.quiet(worker)
    assert (await manual_worker.job())["status"] == "succeeded"
    assert metric_value("worker_claim_total", status="restored", reason="payload_missing_or_invalid") > 0
    assert await manual_worker.messages() == 0


async def test_c2_2_poison_job_is_dead_lettered_with_a_code_and_acknowledged(
    manual_worker: ManualWorker,
) -> None:
    job_id = await manual_worker.delivered()
    await manual_worker.write("UPDATE jobs SET payload = '[1]' WHERE id = :id", id=job_id)
    (message,) = await manual_worker.read()
    async with manual_worker.worker() as worker:
        await worker.reader.claim_messages([corrupt_message(message, "payload_missing_or_invalid", job_id=job_id)])
    assert manual_worker.stream.acks == [(job_id, "failed")], "buried first, then acknowledged"
    (letter,) = await manual_worker.queue.database.read(dead_letters.page)
    assert letter.error_code == "PAYLOAD_MISSING_OR_INVALID"


async def test_c2_3_a_refused_claim_is_acknowledged_and_runs_nothing(manual_worker: ManualWorker) -> None:
    job_id = await manual_worker.delivered()
    messages = await manual_worker.read()
    (submission,) = await manual_worker.queue.rows("SELECT id FROM submissions")
    await manual_worker.queue.database.transact(
        lambda tx: SubmissionCommands(manual_worker.queue.jobs).cancel(
            tx, submission["id"], actor="person", reason="no"
        )
    )
    async with manual_worker.worker() as worker:
        await worker.reader.claim_messages(messages)
    assert manual_worker.stream.acks == [(job_id, "canceled")]
    assert manual_worker.queue.handler.runs == []
    assert metric_value("worker_claim_total", status="refused", reason="already_finished") > 0


async def test_c2_4_a_database_error_acknowledges_nothing(manual_worker: ManualWorker) -> None:
    await manual_worker.delivered()
    messages = await manual_worker.read()
    manual_worker.database.is_away = True
    before = metric_value("worker_claim_total", status="failed", reason="db_error")
    async with manual_worker.worker() as worker:
        with pytest.raises(Unavailable):
            await worker.reader.claim_messages(messages)
    assert manual_worker.stream.acks == []
    assert sum((await manual_worker.stream.pending_counts()).values()) == 1, "it stays pending, for the next worker"
    assert metric_value("worker_claim_total", status="failed", reason="db_error") == before + 1


async def test_c2_5_an_acknowledgement_that_fails_is_tried_once_more_and_no_oftener(
    manual_worker: ManualWorker,
) -> None:
    await manual_worker.delivered()
    manual_worker.stream.failing_acks = 100
    async with manual_worker.worker() as worker:
        await worker.reader.claim_messages(await manual_worker.read())
        await manual_worker.quiet(worker)
        assert manual_worker.stream.tried_acks == 2
        assert (await manual_worker.job())["status"] == "succeeded"
        manual_worker.stream.failing_acks = 0
        (again,) = await manual_worker.stream.autoclaim(consumer="worker", idle_ms=0, limit=1)
        await worker.reader.claim_messages([again])
    assert len(manual_worker.queue.handler.runs) == 1, "what comes twice is refused by the row"
    assert await manual_worker.messages() == 0


# C3: fence and lease.


async def test_c3_1_claim_creates_an_attempt_and_a_lease_before_anything_runs(manual_worker: ManualWorker) -> None:
    seen: list[dict[str, Any]] = []

    async def look(job: Job) -> HandlerResult:
        seen.append(await manual_worker.job())
        return await manual_worker.queue.handler._accept(job)

    manual_worker.queue.handler.act = look
    await manual_worker.delivered()
    async with manual_worker.worker("w-1") as worker:
        await worker.reader.claim_messages(await manual_worker.read())
        await manual_worker.quiet(worker)
    (row,) = seen
    assert (row["status"], row["attempt_id"], row["lease_owner"]) == ("running", 1, "w-1")
    assert row["lease_until"] == row["started_at"] + 10_000_000


async def test_c3_2_a_heartbeat_renews_the_lease(manual_worker: ManualWorker) -> None:
    go_on = asyncio.Event()

    async def wait(job: Job) -> HandlerResult:
        await go_on.wait()
        return await manual_worker.queue.handler._accept(job)

    manual_worker.queue.handler.act = wait
    await manual_worker.delivered()
    async with manual_worker.worker() as worker:
        await worker.reader.claim_messages(await manual_worker.read())
        before = (await manual_worker.job())["lease_until"]
        await worker.keeper.renew_all()
        assert (await manual_worker.job())["lease_until"] > before
        go_on.set()
        await manual_worker.quiet(worker)
    assert metric_value("worker_lease_heartbeat_total", status="renewed", reason="ok") > 0


async def test_c3_3_the_work_is_given_the_attempt_that_was_claimed(manual_worker: ManualWorker) -> None:
    job_id = await manual_worker.delivered()
    async with manual_worker.worker() as worker:
        await worker.reader.claim_messages(await manual_worker.read())
        await manual_worker.quiet(worker)
    assert manual_worker.queue.handler.runs == [(job_id, 1)]


async def test_c3_4_finish_requires_current_attempt(manual_worker: ManualWorker) -> None:
    """Attempt, owner, lease and status: each alone keeps a write out."""
    job_id = await manual_worker.delivered()
    claim = await manual_worker.queue.database.transact(
        lambda tx: manual_worker.queue.jobs.claim(tx, [job_id], worker="holder", lease_ms=10_000)
    )
    assert claim.done[0].attempt_id == 1
    for fence in (Fence(job_id, 0, "holder"), Fence(job_id, 2, "holder"), Fence(job_id, 1, "somebody")):
        outcome = await finish(manual_worker, fence)
        assert not outcome.done, fence
    assert (await manual_worker.job())["status"] == "running"
    assert (await finish(manual_worker, Fence(job_id, 1, "holder"))).done


async def test_c3_5_a_message_is_acknowledged_only_after_the_end_is_written(manual_worker: ManualWorker) -> None:
    job_id = await manual_worker.delivered()
    async with manual_worker.worker() as worker:
        await worker.reader.claim_messages(await manual_worker.read())
        await manual_worker.quiet(worker)
    assert manual_worker.stream.acks == [(job_id, "succeeded")]


async def test_c3_lease_lost_stops_the_work_writes_nothing_and_acknowledges_nothing(
    manual_worker: ManualWorker,
) -> None:
    stopped = asyncio.Event()

    async def long(_: Job) -> HandlerResult:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return HandlerResult()

    manual_worker.queue.handler.act = long
    job_id = await manual_worker.delivered()
    async with manual_worker.worker() as worker:
        await worker.reader.claim_messages(await manual_worker.read())
        await manual_worker.write("UPDATE jobs SET lease_until = 1 WHERE id = :id", id=job_id)
        reclaimed = await manual_worker.queue.database.transact(
            lambda tx: manual_worker.queue.jobs.claim(tx, [job_id], worker="other", lease_ms=10_000)
        )
        assert reclaimed.done
        await worker.keeper.renew_all()
        async with asyncio.timeout(120):
            await stopped.wait()
        await manual_worker.quiet(worker)
    assert manual_worker.stream.acks == []
    row = await manual_worker.job()
    assert (row["status"], row["attempt_id"], row["lease_owner"]) == ("running", 2, "other")
    assert metric_value("worker_lease_heartbeat_total", status="refused", reason="stale_attempt") > 0
