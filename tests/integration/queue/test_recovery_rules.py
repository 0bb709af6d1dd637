"""The numbered rules of taking over (C4), finishing (C5) and the outbox (D1), one test each, on both modes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from adjudge.domain.errors import RefusalReason, Unavailable
from adjudge.domain.ids import new_id
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.relay.dispatcher import Dispatcher
from adjudge.relay.watchdog import Watchdog
from adjudge.store import Tx
from adjudge.store.jobs.models import Fence, Job
from adjudge.store.judging.commands import JOB_KIND_JUDGE, SubmissionCommands
from adjudge.store.judging.models import Judgement, NewSubmission
from adjudge.stream import MemoryStream, MessageBody
from adjudge.worker.handler import HandlerResult
from tests.integration.queue.conftest import QueueHarness
from tests.integration.queue.manual_worker import ManualWorker, claim_without_heartbeat, finish, reclaim_now
from tests.support.store_harness import metric_value


@pytest.fixture
def manual_worker(queue: QueueHarness) -> ManualWorker:
    return ManualWorker(queue)


# C4: taking over.


async def test_c4_1_what_came_to_harm_is_restored_from_its_row_when_it_is_taken_over(
    manual_worker: ManualWorker,
) -> None:
    if not isinstance(manual_worker.queue.stream, MemoryStream):
        job_id = await manual_worker.delivered()
        assert await manual_worker.read("dead")
        client = manual_worker.queue.stream._client  # type: ignore[attr-defined]  # the raw server, to do it harm
        for key in await client.keys(f"*payload:{job_id}:*"):
            await client.delete(key)
    else:
        await manual_worker.queue.submit()
        job_id = str((await manual_worker.job())["id"])
        manual_worker.queue.stream.add_defective(2, "payload_missing_or_invalid", job_id)
        assert await manual_worker.read("dead")
    async with manual_worker.worker() as worker:
        await reclaim_now(manual_worker, worker)
        await manual_worker.quiet(worker)
    assert manual_worker.queue.handler.runs == [(job_id, 1)]
    assert await manual_worker.messages() == 0


async def test_c4_2_only_an_expired_lease_is_taken_over_and_the_attempt_grows(manual_worker: ManualWorker) -> None:
    job_id = await claim_without_heartbeat(manual_worker, lease_ms=10_000)
    async with manual_worker.worker(lease_ms=10_000) as worker:
        await reclaim_now(manual_worker, worker)
        assert (await manual_worker.job())["lease_owner"] == "dead"
        await manual_worker.write("UPDATE jobs SET lease_until = 1 WHERE id = :id", id=job_id)
        await reclaim_now(manual_worker, worker)
        await manual_worker.quiet(worker)
    assert manual_worker.queue.handler.runs == [(job_id, 2)]
    assert (await manual_worker.job())["status"] == "succeeded"


async def test_c4_3_claimed_is_acknowledged_only_once_it_is_finished(manual_worker: ManualWorker) -> None:
    job_id = await claim_without_heartbeat(manual_worker, lease_ms=1)
    await asyncio.sleep(0.005)
    async with manual_worker.worker() as worker:
        await reclaim_now(manual_worker, worker)
        await manual_worker.quiet(worker)
    assert manual_worker.stream.acks == [(job_id, "succeeded")]
    assert metric_value("worker_reclaim_total", status="claimed", reason="lease_expired") > 0


async def test_c4_3_done_or_stale_is_acknowledged(manual_worker: ManualWorker) -> None:
    job_id = await claim_without_heartbeat(manual_worker, lease_ms=10_000)
    assert (await finish(manual_worker, Fence(job_id, 1, "dead"))).done
    async with manual_worker.worker() as worker:
        await reclaim_now(manual_worker, worker)
    assert manual_worker.stream.acks == [(job_id, "succeeded")]
    assert metric_value("worker_reclaim_total", status="done_or_stale", reason="already_finished") > 0


async def test_c4_3_not_found_is_acknowledged(manual_worker: ManualWorker) -> None:
    await manual_worker.stream.publish([MessageBody("nobody-knows-it", 2, JOB_KIND_JUDGE)])
    assert await manual_worker.read("dead")
    async with manual_worker.worker() as worker:
        await reclaim_now(manual_worker, worker)
    assert manual_worker.stream.acks == [("nobody-knows-it", None)]
    assert metric_value("worker_reclaim_total", status="not_found", reason="not_found") > 0


async def test_c4_3_a_valid_lease_is_left_alone_and_not_acknowledged(manual_worker: ManualWorker) -> None:
    await claim_without_heartbeat(manual_worker, lease_ms=10_000)
    async with manual_worker.worker() as worker:
        await reclaim_now(manual_worker, worker)
    assert (manual_worker.stream.acks, manual_worker.queue.handler.runs) == ([], [])
    assert metric_value("worker_reclaim_total", status="lease_still_valid", reason="lease_still_valid") > 0


async def test_c4_3_a_database_error_acknowledges_nothing(manual_worker: ManualWorker) -> None:
    await claim_without_heartbeat(manual_worker, lease_ms=1)
    async with manual_worker.worker() as worker:
        manual_worker.database.is_away = True
        with pytest.raises(Unavailable):
            await reclaim_now(manual_worker, worker)
    assert manual_worker.stream.acks == []
    assert metric_value("worker_reclaim_total", status="failed", reason="db_error") > 0


async def test_c4_4_a_result_of_an_older_attempt_is_refused_as_stale_and_acknowledged(
    manual_worker: ManualWorker,
) -> None:
    go_on = asyncio.Event()

    async def slow(_: Job) -> HandlerResult:
        await go_on.wait()
        return HandlerResult(result={}, typed_result=Judgement(Verdict.WA))

    manual_worker.queue.handler.act = slow
    job_id = await manual_worker.delivered()
    stale = metric_value("worker_stale_attempt_total")
    async with manual_worker.worker() as worker:
        await worker.reader.claim_messages(await manual_worker.read())
        await manual_worker.write("UPDATE jobs SET lease_until = 1 WHERE id = :id", id=job_id)
        await manual_worker.queue.database.transact(
            lambda tx: manual_worker.queue.jobs.claim(tx, [job_id], worker="other", lease_ms=10_000)
        )
        go_on.set()
        await manual_worker.quiet(worker)
    assert [job for job, _ in manual_worker.stream.acks] == [job_id]
    assert metric_value("worker_stale_attempt_total") == stale + 1
    assert metric_value("worker_finalize_rejected_total", reason="stale_attempt") > 0
    assert (await manual_worker.job())["attempt_id"] == 2


# C5: finishing.


async def test_c5_1_one_row_means_finished(manual_worker: ManualWorker) -> None:
    job_id = await claim_without_heartbeat(manual_worker, lease_ms=10_000)
    outcome = await finish(manual_worker, Fence(job_id, 1, "dead"))
    assert [job.status for job in outcome.done] == [JobStatus.SUCCEEDED]
    row = await manual_worker.job()
    assert (row["status"], row["lease_owner"], row["lease_until"]) == ("succeeded", None, None)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("UPDATE jobs SET attempt_id = 2 WHERE id = :id", RefusalReason.STALE_ATTEMPT),
        ("finish", RefusalReason.ALREADY_FINISHED),
        ("release", RefusalReason.NOT_IN_EXPECTED_STATE),
        ("UPDATE jobs SET lease_owner = 'other' WHERE id = :id", RefusalReason.LEASE_LOST_OR_OWNER_MISMATCH),
        ("UPDATE jobs SET lease_until = 1 WHERE id = :id", RefusalReason.LEASE_LOST_OR_OWNER_MISMATCH),
    ],
    ids=["stale", "finished", "state", "owner", "expired"],
)
async def test_c5_2_no_row_is_explained(manual_worker: ManualWorker, damage: str, reason: RefusalReason) -> None:
    job_id = await claim_without_heartbeat(manual_worker, lease_ms=10_000)
    fence = Fence(job_id, 1, "dead")
    if damage == "finish":
        await finish(manual_worker, fence)
    elif damage == "release":
        await manual_worker.write("UPDATE jobs SET lease_until = 1 WHERE id = :id", id=job_id)
        assert await Watchdog(manual_worker.queue.database, manual_worker.queue.jobs, name="watchdog").run_once() == 1
    else:
        await manual_worker.write(damage, id=job_id)
    outcome = await finish(manual_worker, fence)
    assert [item.reason for item in outcome.refused] == [reason]


async def test_c5_2_a_database_error_while_finishing_is_counted_kept_and_sent_again(
    manual_worker: ManualWorker,
) -> None:
    async def pull_the_plug(job: Job) -> HandlerResult:
        manual_worker.database.is_away = True
        return await manual_worker.queue.handler._accept(job)

    manual_worker.queue.handler.act = pull_the_plug
    job_id = await manual_worker.delivered()
    errors = metric_value("worker_finalize_errors_total")
    async with manual_worker.worker() as worker:
        await worker.reader.claim_messages(await manual_worker.read())

        async def failed() -> bool:
            return metric_value("worker_finalize_errors_total") > errors

        await manual_worker.queue.until(failed, "the write fails")
        assert manual_worker.stream.acks == [], "nothing is acknowledged"
        manual_worker.database.is_away = False
        await manual_worker.quiet(worker)
    assert manual_worker.stream.acks == [(job_id, "succeeded")]


# D1: the outbox.


async def test_d1_1_submission_job_and_outbox_row_commit_together_or_not_at_all(manual_worker: ManualWorker) -> None:
    queue = manual_worker.queue
    new = NewSubmission(new_id(), queue.person, queue.problem, queue.revision, "cpp", "digest", 1)

    async def half(tx: Tx) -> None:
        await SubmissionCommands(queue.jobs).submit(tx, [new])
        raise RuntimeError("the process loses heart")

    async def counted() -> list[int]:
        tables = ("submissions", "jobs", "outbox")
        return [(await queue.rows(f"SELECT count(*) AS n FROM {table}"))[0]["n"] for table in tables]

    with pytest.raises(RuntimeError):
        await queue.database.transact(half)
    assert await counted() == [0, 0, 0]
    await queue.submit(3)
    assert await counted() == [3, 3, 3]


async def test_d1_2_submitting_needs_no_stream(manual_worker: ManualWorker) -> None:
    manual_worker.stream.publishes_fail = True
    await manual_worker.queue.submit()
    assert (await manual_worker.job())["status"] == "pending"


async def test_d1_dispatch_1_only_due_rows_are_taken(manual_worker: ManualWorker) -> None:
    await manual_worker.queue.submit()
    await manual_worker.write("UPDATE outbox SET next_attempt_at = next_attempt_at + 60000000")
    assert await manual_worker.dispatcher.dispatch_batch() == 0
    await manual_worker.write("UPDATE outbox SET next_attempt_at = 1")
    assert await manual_worker.dispatcher.dispatch_batch() == 1
    assert await manual_worker.dispatcher.dispatch_batch() == 0, "what is delivered is not taken again"


async def test_d1_dispatch_2_relays_share_rows_and_put_them_off_while_the_stream_is_away(
    manual_worker: ManualWorker,
) -> None:
    await manual_worker.queue.submit(20)
    manual_worker.stream.publishes_fail = True
    taken = await asyncio.gather(
        manual_worker.dispatcher.dispatch_batch(),
        Dispatcher(
            manual_worker.queue.database, manual_worker.queue.jobs, manual_worker.stream, name="other", least_ahead=20
        ).dispatch_batch(),
    )
    assert sum(taken) == 20
    rows = await manual_worker.queue.rows("SELECT attempts, next_attempt_at - due_at AS later_us FROM outbox")
    assert {row["attempts"] for row in rows} == {0}, "the stream is at fault: no row is closer to being given up"
    assert all(row["later_us"] >= 100_000 for row in rows)


async def test_d1_dispatch_3_a_payload_is_there_before_its_entry(manual_worker: ManualWorker) -> None:
    job_id = await manual_worker.delivered()
    (message,) = await manual_worker.read()
    assert message.body is not None
    assert (message.job_id, message.body.kind, message.body.priority) == (job_id, JOB_KIND_JUDGE, 2)
    assert set(message.body.payload) == {"submission_id", "revision_id", "language", "user_id"}, "identifiers only"


async def test_d1_dispatch_4_a_delivery_is_noted_with_its_entry(manual_worker: ManualWorker) -> None:
    await manual_worker.delivered()
    (row,) = await manual_worker.queue.rows("SELECT state, stream_entry_id, dispatched_at FROM outbox")
    (message,) = await manual_worker.read()
    assert (row["state"], row["stream_entry_id"]) == ("delivered", message.entry_id)
    assert row["dispatched_at"] is not None
    assert (await manual_worker.job())["status"] == "queued"


async def test_d1_dispatch_5_outbox_survives_enqueue_failure(manual_worker: ManualWorker) -> None:
    manual_worker.stream.publishes_fail = True
    await manual_worker.queue.submit()
    assert await manual_worker.dispatcher.dispatch_batch() == 1
    (row,) = await manual_worker.queue.rows("SELECT state, last_error FROM outbox")
    assert (row["state"], row["last_error"]) == ("pending", "the stream is away")
    manual_worker.stream.publishes_fail = False
    await manual_worker.write("UPDATE outbox SET next_attempt_at = 1")
    assert await manual_worker.dispatcher.dispatch_batch() == 1
    async with manual_worker.worker() as worker:
        await worker.reader.claim_messages(await manual_worker.read())
        await manual_worker.quiet(worker)
    assert (await manual_worker.job())["status"] == "succeeded"


async def test_a_lease_that_is_lost_by_its_own_end_leaves_nothing_behind(
    manual_worker: ManualWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renewal on the keeper's thread is refused because the job has just ended; it is heard when all is over."""
    await manual_worker.delivered()
    callbacks: list[Callable[[RefusalReason], None]] = []
    async with manual_worker.worker() as worker:
        monkeypatch.setattr(worker.keeper, "add", lambda _, on_lost, **__: callbacks.append(on_lost))
        await worker.reader.claim_messages(await manual_worker.read())
        await manual_worker.quiet(worker)
        callbacks[0](RefusalReason.ALREADY_FINISHED)
        await asyncio.sleep(0)
        assert worker.running == 0
