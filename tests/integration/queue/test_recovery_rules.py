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
def stage(drive: QueueHarness) -> ManualWorker:
    return ManualWorker(drive)


# C4: taking over.


async def test_c4_1_what_came_to_harm_is_restored_from_its_row_when_it_is_taken_over(stage: ManualWorker) -> None:
    if not isinstance(stage.drive.stream, MemoryStream):
        job_id = await stage.delivered()
        assert await stage.read("dead")
        client = stage.drive.stream._client  # type: ignore[attr-defined]  # the raw server, to do it harm
        for key in await client.keys(f"*payload:{job_id}:*"):
            await client.delete(key)
    else:
        await stage.drive.submit()
        job_id = str((await stage.job())["id"])
        stage.drive.stream.add_defective(2, "payload_missing_or_invalid", job_id)
        assert await stage.read("dead")
    async with stage.worker() as worker:
        await reclaim_now(stage, worker)
        await stage.quiet(worker)
    assert stage.drive.handler.runs == [(job_id, 1)]
    assert await stage.messages() == 0


async def test_c4_2_only_an_expired_lease_is_taken_over_and_the_attempt_grows(stage: ManualWorker) -> None:
    job_id = await claim_without_heartbeat(stage, lease_ms=10_000)
    async with stage.worker(lease_ms=10_000) as worker:
        await reclaim_now(stage, worker)
        assert (await stage.job())["lease_owner"] == "dead"
        await stage.write("UPDATE jobs SET lease_until = 1 WHERE id = :id", id=job_id)
        await reclaim_now(stage, worker)
        await stage.quiet(worker)
    assert stage.drive.handler.runs == [(job_id, 2)]
    assert (await stage.job())["status"] == "succeeded"


async def test_c4_3_claimed_is_acknowledged_only_once_it_is_finished(stage: ManualWorker) -> None:
    job_id = await claim_without_heartbeat(stage, lease_ms=1)
    await asyncio.sleep(0.005)
    async with stage.worker() as worker:
        await reclaim_now(stage, worker)
        await stage.quiet(worker)
    assert stage.stream.acks == [(job_id, "succeeded")]
    assert metric_value("worker_reclaim_total", status="claimed", reason="lease_expired") > 0


async def test_c4_3_done_or_stale_is_acknowledged(stage: ManualWorker) -> None:
    job_id = await claim_without_heartbeat(stage, lease_ms=10_000)
    assert (await finish(stage, Fence(job_id, 1, "dead"))).done
    async with stage.worker() as worker:
        await reclaim_now(stage, worker)
    assert stage.stream.acks == [(job_id, "succeeded")]
    assert metric_value("worker_reclaim_total", status="done_or_stale", reason="already_finished") > 0


async def test_c4_3_not_found_is_acknowledged(stage: ManualWorker) -> None:
    await stage.stream.publish([MessageBody("nobody-knows-it", 2, JOB_KIND_JUDGE)])
    assert await stage.read("dead")
    async with stage.worker() as worker:
        await reclaim_now(stage, worker)
    assert stage.stream.acks == [("nobody-knows-it", None)]
    assert metric_value("worker_reclaim_total", status="not_found", reason="not_found") > 0


async def test_c4_3_a_valid_lease_is_left_alone_and_not_acknowledged(stage: ManualWorker) -> None:
    await claim_without_heartbeat(stage, lease_ms=10_000)
    async with stage.worker() as worker:
        await reclaim_now(stage, worker)
    assert (stage.stream.acks, stage.drive.handler.runs) == ([], [])
    assert metric_value("worker_reclaim_total", status="lease_still_valid", reason="lease_still_valid") > 0


async def test_c4_3_a_database_error_acknowledges_nothing(stage: ManualWorker) -> None:
    await claim_without_heartbeat(stage, lease_ms=1)
    async with stage.worker() as worker:
        stage.database.is_away = True
        with pytest.raises(Unavailable):
            await reclaim_now(stage, worker)
    assert stage.stream.acks == []
    assert metric_value("worker_reclaim_total", status="failed", reason="db_error") > 0


async def test_c4_4_a_result_of_an_older_attempt_is_refused_as_stale_and_acknowledged(stage: ManualWorker) -> None:
    go_on = asyncio.Event()

    async def slow(_: Job) -> HandlerResult:
        await go_on.wait()
        return HandlerResult(result={}, typed_result=Judgement(Verdict.WA))

    stage.drive.handler.act = slow
    job_id = await stage.delivered()
    stale = metric_value("worker_stale_attempt_total")
    async with stage.worker() as worker:
        await worker.claim_messages(await stage.read())
        await stage.write("UPDATE jobs SET lease_until = 1 WHERE id = :id", id=job_id)
        await stage.drive.database.transact(
            lambda tx: stage.drive.jobs.reclaim(tx, [job_id], worker="other", lease_ms=10_000)
        )
        go_on.set()
        await stage.quiet(worker)
    assert [job for job, _ in stage.stream.acks] == [job_id]
    assert metric_value("worker_stale_attempt_total") == stale + 1
    assert metric_value("worker_finalize_rejected_total", reason="stale_attempt") > 0
    assert (await stage.job())["attempt_id"] == 2


# C5: finishing.


async def test_c5_1_one_row_means_finished(stage: ManualWorker) -> None:
    job_id = await claim_without_heartbeat(stage, lease_ms=10_000)
    outcome = await finish(stage, Fence(job_id, 1, "dead"))
    assert [job.status for job in outcome.done] == [JobStatus.SUCCEEDED]
    row = await stage.job()
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
async def test_c5_2_no_row_is_explained(stage: ManualWorker, damage: str, reason: RefusalReason) -> None:
    job_id = await claim_without_heartbeat(stage, lease_ms=10_000)
    fence = Fence(job_id, 1, "dead")
    if damage == "finish":
        await finish(stage, fence)
    elif damage == "release":
        await stage.write("UPDATE jobs SET lease_until = 1 WHERE id = :id", id=job_id)
        assert await Watchdog(stage.drive.database, stage.drive.jobs, name="watchdog").run_once() == 1
    else:
        await stage.write(damage, id=job_id)
    outcome = await finish(stage, fence)
    assert [item.reason for item in outcome.refused] == [reason]


async def test_c5_2_a_database_error_while_finishing_is_counted_kept_and_sent_again(stage: ManualWorker) -> None:
    async def pull_the_plug(job: Job) -> HandlerResult:
        stage.database.is_away = True
        return await stage.drive.handler._accept(job)

    stage.drive.handler.act = pull_the_plug
    job_id = await stage.delivered()
    errors = metric_value("worker_finalize_errors_total")
    async with stage.worker() as worker:
        await worker.claim_messages(await stage.read())

        async def failed() -> bool:
            return metric_value("worker_finalize_errors_total") > errors

        await stage.drive.until(failed, "the write fails")
        assert stage.stream.acks == [], "nothing is acknowledged"
        stage.database.is_away = False
        await stage.quiet(worker)
    assert stage.stream.acks == [(job_id, "succeeded")]


# D1: the outbox.


async def test_d1_1_submission_job_and_outbox_row_commit_together_or_not_at_all(stage: ManualWorker) -> None:
    drive = stage.drive
    new = NewSubmission(new_id(), drive.person, drive.problem, drive.revision, "cpp", "digest", 1)

    async def half(tx: Tx) -> None:
        await SubmissionCommands(drive.jobs).submit(tx, [new])
        raise RuntimeError("the process loses heart")

    async def counted() -> list[int]:
        tables = ("submissions", "jobs", "outbox")
        return [(await drive.rows(f"SELECT count(*) AS n FROM {table}"))[0]["n"] for table in tables]

    with pytest.raises(RuntimeError):
        await drive.database.transact(half)
    assert await counted() == [0, 0, 0]
    await drive.submit(3)
    assert await counted() == [3, 3, 3]


async def test_d1_2_submitting_needs_no_stream(stage: ManualWorker) -> None:
    stage.stream.publishes_fail = True
    await stage.drive.submit()
    assert (await stage.job())["status"] == "pending"


async def test_d1_dispatch_1_only_due_rows_are_taken(stage: ManualWorker) -> None:
    await stage.drive.submit()
    await stage.write("UPDATE outbox SET next_attempt_at = next_attempt_at + 60000000")
    assert await stage.pump.dispatch_batch() == 0
    await stage.write("UPDATE outbox SET next_attempt_at = 1")
    assert await stage.pump.dispatch_batch() == 1
    assert await stage.pump.dispatch_batch() == 0, "what is delivered is not taken again"


async def test_d1_dispatch_2_relays_share_rows_and_put_them_off_while_the_stream_is_away(stage: ManualWorker) -> None:
    await stage.drive.submit(20)
    stage.stream.publishes_fail = True
    taken = await asyncio.gather(
        stage.pump.dispatch_batch(),
        Dispatcher(stage.drive.database, stage.drive.jobs, stage.stream, name="other").dispatch_batch(),
    )
    assert sum(taken) == 20
    rows = await stage.drive.rows("SELECT attempts, next_attempt_at - created_at AS later_us FROM outbox")
    assert {row["attempts"] for row in rows} == {0}, "the stream is at fault: no row is closer to being given up"
    assert all(row["later_us"] >= 100_000 for row in rows)


async def test_d1_dispatch_3_a_payload_is_there_before_its_entry(stage: ManualWorker) -> None:
    job_id = await stage.delivered()
    (message,) = await stage.read()
    assert message.body is not None
    assert (message.job_id, message.body.kind, message.body.priority) == (job_id, JOB_KIND_JUDGE, 2)
    assert set(message.body.payload) == {"submission_id", "revision_id", "language", "user_id"}, "identifiers only"


async def test_d1_dispatch_4_a_delivery_is_noted_with_its_entry(stage: ManualWorker) -> None:
    await stage.delivered()
    (row,) = await stage.drive.rows("SELECT state, stream_entry_id, dispatched_at FROM outbox")
    (message,) = await stage.read()
    assert (row["state"], row["stream_entry_id"]) == ("delivered", message.entry_id)
    assert row["dispatched_at"] is not None
    assert (await stage.job())["status"] == "queued"


async def test_d1_dispatch_5_outbox_survives_enqueue_failure(stage: ManualWorker) -> None:
    stage.stream.publishes_fail = True
    await stage.drive.submit()
    assert await stage.pump.dispatch_batch() == 1
    (row,) = await stage.drive.rows("SELECT state, last_error FROM outbox")
    assert (row["state"], row["last_error"]) == ("pending", "the stream is away")
    stage.stream.publishes_fail = False
    await stage.write("UPDATE outbox SET next_attempt_at = 1")
    assert await stage.pump.dispatch_batch() == 1
    async with stage.worker() as worker:
        await worker.claim_messages(await stage.read())
        await stage.quiet(worker)
    assert (await stage.job())["status"] == "succeeded"


async def test_a_lease_that_is_lost_by_its_own_end_leaves_nothing_behind(
    stage: ManualWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renewal on the keeper's thread is refused because the job has just ended; it is heard when all is over."""
    await stage.delivered()
    told: list[Callable[[RefusalReason], None]] = []
    async with stage.worker() as worker:
        monkeypatch.setattr(worker._keeper, "add", lambda _, on_lost, **__: told.append(on_lost))
        await worker.claim_messages(await stage.read())
        await stage.quiet(worker)
        told[0](RefusalReason.ALREADY_FINISHED)
        await asyncio.sleep(0)
        assert worker._lost == {}
