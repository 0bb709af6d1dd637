"""The operations on jobs, on both databases: results, log rows and reasons for refusal."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.domain.errors import InvalidTransition, RefusalReason
from adjudge.domain.ids import new_id
from adjudge.domain.retry import RetryPolicy
from adjudge.domain.states import JobStatus
from adjudge.store.jobs import outbox
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import BatchResult, Fence, FinishReport, Job, JobResult, NewJob, PoisonJob
from tests.support.store_harness import StoreHarness, fence_of, metric_value

LEASE_MS = 15_000
GONE = "01890000-0000-7000-8000-000000000000"

_TIMES: dict[str, dict[str, str]] = {
    "judge_run_duration_seconds": {"status": "succeeded"},
    "verdict_latency_seconds": {},
    "queue_wait_seconds": {"kind": "judge"},
}
"""Durations, with the labels of a judge run that succeeds."""


def reasons(outcome: BatchResult[Any]) -> list[str]:
    return [str(item.reason) for item in outcome.refused]


async def finish(store: StoreHarness, *fences: Fence, **fields: Any) -> BatchResult[Job]:
    finishes = [JobResult(fence, **fields) for fence in fences]
    return await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, finishes))


def retry(fence: Fence, reason: str, **fields: Any) -> JobResult:
    return JobResult(fence, JobStatus.PENDING, reason=reason, **fields)


async def log(store: StoreHarness, job_id: str) -> list[tuple[object, ...]]:
    rows = await store.rows("SELECT * FROM job_status_log WHERE job_id = :id ORDER BY id", id=job_id)
    return [(row["from_status"], row["to_status"], row["attempt_id"], row["actor"], row["reason"]) for row in rows]


async def attempts(store: StoreHarness, job_id: str) -> list[tuple[object, ...]]:
    rows = await store.rows("SELECT * FROM job_attempts WHERE job_id = :id ORDER BY attempt_id", id=job_id)
    return [(row["attempt_id"], row["lease_owner"], row["outcome"], row["reason"]) for row in rows]


async def test_idempotent_enqueue_single_job(store: StoreHarness) -> None:
    """OJ-spec §7: the same submission enqueued twice has one job, one message and one terminal verdict."""
    first, second = (NewJob(id=new_id(), kind="judge", dedupe_key="submission-1") for _ in range(2))
    ids = [
        *await store.transact(lambda tx: store.jobs.enqueue(tx, [first])),
        *await store.transact(lambda tx: store.jobs.enqueue(tx, [second])),
    ]
    assert ids == [first.id, first.id]
    third, fourth = (NewJob(id=new_id(), kind="judge", dedupe_key="submission-2") for _ in range(2))
    assert await store.transact(lambda tx: store.jobs.enqueue(tx, [third, fourth])) == [third.id, third.id]
    assert (await store.row("SELECT count(*) AS n FROM jobs"))["n"] == 2
    assert (await store.row("SELECT count(*) AS n FROM outbox"))["n"] == 2
    (job,) = (await store.claim(*ids)).done
    assert [str(done.status) for done in (await finish(store, fence_of(job))).done] == ["succeeded"]
    assert reasons(await finish(store, fence_of(job))) == ["already_finished"]


async def test_guarded_transition_blocks_illegal_update(store: StoreHarness) -> None:
    """OJ-spec §7: a terminal write to a job that is not running changes no row and no state."""
    job_id = await store.enqueue()
    before = await store.job(job_id)
    assert reasons(await finish(store, Fence(job_id, 0, "w1"))) == ["not_in_expected_state"]
    with pytest.raises(InvalidTransition):
        await store.write("UPDATE jobs SET status = 'succeeded', finished_at = 1 WHERE id = :id", id=job_id)
    assert await store.job(job_id) == before
    assert await log(store, job_id) == []


async def test_job_from_enqueue_to_finish_is_logged_completely(store: StoreHarness) -> None:
    fence = await store.claimed()
    assert fence.attempt_id == 1
    await store.clock.advance(ms=1_234)
    outcome = await finish(store, fence, result={"ok": True}, reason="done")
    assert [job.id for job in outcome.done] == [fence.job_id]
    row = await store.job(fence.job_id)
    assert (row["status"], row["lease_owner"], row["lease_until"]) == ("succeeded", None, None)
    assert row["finished_at"] - row["started_at"] == 1_234_000
    assert await log(store, fence.job_id) == [
        ("pending", "running", 1, "w1", "claimed"),
        ("running", "succeeded", 1, "w1", "done"),
    ]
    assert await attempts(store, fence.job_id) == [(1, "w1", "succeeded", "done")]


async def test_a_claim_is_refused_with_its_reason(store: StoreHarness) -> None:
    later = await store.enqueue(delay_ms=1_000)
    running = await store.claimed()
    ended = await store.claimed()
    await finish(store, ended)
    outcome = await store.claim(GONE, later, running.job_id, ended.job_id, worker="w2")
    assert {item.job_id: item.reason for item in outcome.refused} == {
        GONE: RefusalReason.NOT_FOUND,
        later: RefusalReason.NOT_DUE,
        running.job_id: RefusalReason.LEASE_STILL_VALID,
        ended.job_id: RefusalReason.ALREADY_FINISHED,
    }
    await store.clock.advance(ms=1_000)
    assert [job.id for job in (await store.claim(later)).done] == [later]
    await store.clock.advance(ms=LEASE_MS)
    assert [job.prior_status for job in (await store.claim(later, worker="w2")).done] == [JobStatus.RUNNING]


async def test_job_requested_twice_in_a_claim_is_claimed_once(store: StoreHarness) -> None:
    job_id = await store.enqueue()
    outcome = await store.claim(job_id, job_id, GONE, GONE)
    assert ([job.id for job in outcome.done], [item.job_id for item in outcome.refused]) == ([job_id], [GONE])


async def test_write_after_the_lease_expired_is_refused(store: StoreHarness) -> None:
    fence = await store.claimed()
    await store.clock.advance(ms=LEASE_MS)
    assert reasons(await finish(store, fence)) == ["lease_lost_or_owner_mismatch"]
    renewed = await store.transact(lambda tx: store.jobs.renew(tx, [fence], lease_ms=LEASE_MS))
    assert reasons(renewed) == ["lease_lost_or_owner_mismatch"]
    released = await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [retry(fence, "late")]))
    assert reasons(released) == ["lease_lost_or_owner_mismatch"]
    assert (await store.job(fence.job_id))["status"] == "running"


async def test_renewal_extends_the_lease_without_a_log_row(store: StoreHarness) -> None:
    fence = await store.claimed()
    for _ in range(3):
        await store.clock.advance(ms=LEASE_MS - 1)
        outcome = await store.transact(lambda tx: store.jobs.renew(tx, [fence], lease_ms=LEASE_MS))
        assert outcome == BatchResult((fence,))
    assert len(await log(store, fence.job_id)) == 1
    assert len((await finish(store, fence)).done) == 1


async def test_a_fence_must_name_owner_and_attempt(store: StoreHarness) -> None:
    fence = await store.claimed()
    assert reasons(await finish(store, Fence(fence.job_id, 1, "thief"))) == ["lease_lost_or_owner_mismatch"]
    assert reasons(await finish(store, Fence(GONE, 1, "w1"))) == ["not_found"]


async def test_reclaim_makes_the_old_claim_stale(store: StoreHarness) -> None:
    old = await store.claimed()

    async def reclaim() -> BatchResult[Job]:
        return await store.transact(lambda tx: store.jobs.claim(tx, [old.job_id], worker="w2", lease_ms=LEASE_MS))

    assert reasons(await reclaim()) == ["lease_still_valid"]
    await store.clock.advance(ms=LEASE_MS)
    (job,) = (await reclaim()).done
    assert (job.attempt_id, job.prior_status) == (2, JobStatus.RUNNING)
    assert reasons(await finish(store, old)) == ["stale_attempt"]
    assert len((await finish(store, fence_of(job))).done) == 1
    assert [item[2] for item in await attempts(store, old.job_id)] == ["reclaimed", "succeeded"]
    assert reasons(await reclaim()) == ["already_finished"]


async def confirm(store: StoreHarness, fence: Fence) -> None:
    """What a worker does before it calls the handler of a last attempt."""
    assert (await store.transact(lambda tx: store.jobs.renew(tx, [fence], lease_ms=LEASE_MS))).done


async def test_expired_last_attempt_is_left_to_the_watchdog(store: StoreHarness) -> None:
    fence = await store.claimed(max_attempts=1)
    await confirm(store, fence)
    await store.clock.advance(ms=LEASE_MS)
    outcome = await store.transact(lambda tx: store.jobs.claim(tx, [fence.job_id], worker="w2", lease_ms=LEASE_MS))
    assert reasons(outcome) == ["attempts_exhausted"]
    await store.transact(lambda tx: store.jobs.release_expired(tx, actor="watchdog"))
    row = await store.job(fence.job_id)
    assert (row["status"], row["error_code"]) == ("failed", "WORKER_LOST")
    letter = await store.row("SELECT * FROM dead_letters")
    assert (letter["job_id"], letter["state"], letter["attempt_id"]) == (fence.job_id, "open", 1)


async def test_released_job_is_published_again_after_its_delay(store: StoreHarness) -> None:
    fence = await store.claimed()
    outcome = await store.transact(
        lambda tx: store.jobs.finish_and_claim_next(
            tx, [retry(fence, "sandbox_away", delay_ms=2_000, error_code="SANDBOX")]
        )
    )
    assert [job.status for job in outcome.done] == [JobStatus.PENDING]
    assert [str(item.reason) for item in (await store.claim(fence.job_id)).refused] == ["not_due"]
    assert (await store.row("SELECT next_attempt_at AS at FROM outbox"))["at"] == store.clock.now_us + 2_000_000
    await store.clock.advance(ms=2_000)
    assert [job.attempt_id for job in (await store.claim(fence.job_id, worker="w2")).done] == [2]
    assert await attempts(store, fence.job_id) == [(1, "w1", "released", "sandbox_away")]


async def test_retry_of_the_last_attempt_creates_a_dead_letter(store: StoreHarness) -> None:
    fence = await store.claimed(max_attempts=1)
    outcome = await store.transact(
        lambda tx: store.jobs.finish_and_claim_next(tx, [retry(fence, "sandbox_away", error="no box")])
    )
    assert [job.status for job in outcome.done] == [JobStatus.FAILED]
    letter = await store.row("SELECT * FROM dead_letters")
    assert (letter["error_code"], letter["error"]) == ("RETRIES_EXHAUSTED", "no box")
    assert await store.transact(lambda tx: outbox.take_due(tx, limit=10)) == []
    assert (await store.row("SELECT state FROM outbox"))["state"] == "dropped"


async def test_attempt_of_a_drained_worker_is_refunded(store: StoreHarness) -> None:
    fence = await store.claimed(max_attempts=1)
    release = retry(fence, "drain", refund=True)
    assert [
        job.status for job in (await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [release]))).done
    ] == ["pending"]
    assert len((await store.claim(fence.job_id)).done) == 1


async def test_batch_has_a_result_for_every_fence_even_two_of_one_job(store: StoreHarness) -> None:
    old = await store.claimed()
    await store.clock.advance(ms=LEASE_MS)
    (job,) = (await store.transact(lambda tx: store.jobs.claim(tx, [old.job_id], worker="w1", lease_ms=LEASE_MS))).done
    new = fence_of(job)
    outcome = await finish(store, old, new, new)
    assert len(outcome.done) == 1
    assert reasons(outcome) == ["already_finished", "stale_attempt"]


async def test_batch_of_releases_records_each_worker_as_the_actor(store: StoreHarness) -> None:
    fences = [await store.claimed(worker=worker) for worker in ("w1", "w2")]
    await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [retry(fence, "again") for fence in fences]))
    assert [(await store.job(fence.job_id))["actor"] for fence in fences] == ["w1", "w2"]


async def test_cancel_finishes_waiting_and_running_jobs_and_notifies_workers(store: StoreHarness) -> None:
    fence = await store.claimed()
    waiting = await store.enqueue()
    asked = [fence.job_id, waiting, GONE]

    async def cancel() -> BatchResult[Job]:
        return await store.transact(lambda tx: store.jobs.cancel(tx, asked, actor="ada", reason="unwanted"))

    outcome = await cancel()
    assert {job.id for job in outcome.done} == {fence.job_id, waiting}
    assert reasons(outcome) == ["not_found"]
    renewed = await store.transact(lambda tx: store.jobs.renew(tx, [fence], lease_ms=LEASE_MS))
    assert reasons(renewed) == ["already_finished"]
    assert sorted(reasons(await cancel())) == ["already_finished", "already_finished", "not_found"]
    assert await store.transact(lambda tx: outbox.take_due(tx, limit=10)) == []
    assert {row["state"] for row in await store.rows("SELECT state FROM outbox")} == {"dropped"}


async def test_only_waiting_jobs_are_dead_lettered_without_a_claim(store: StoreHarness) -> None:
    fence = await store.claimed()
    waiting = await store.enqueue()
    poison_jobs = [PoisonJob(job_id, "UNKNOWN_KIND", "nobody knows it") for job_id in (fence.job_id, waiting)]
    outcome = await store.transact(lambda tx: store.jobs.dead_letter(tx, poison_jobs, actor="relay"))
    assert [job.id for job in outcome.done] == [waiting]
    assert reasons(outcome) == ["lease_still_valid"]
    assert (await store.row("SELECT error_code FROM dead_letters"))["error_code"] == "UNKNOWN_KIND"


async def test_failed_finish_is_fenced_like_any_other(store: StoreHarness) -> None:
    fence = await store.claimed()
    thief = Fence(fence.job_id, 1, "thief")
    poison_jobs = [
        JobResult(item, JobStatus.FAILED, reason="broken", error_code="BROKEN", error="why") for item in (thief, fence)
    ]
    outcome = await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, poison_jobs))
    assert [job.error_code for job in outcome.done] == ["BROKEN"]
    assert reasons(outcome) == ["already_finished"]


async def test_expired_jobs_are_released_with_backoff_or_dead_lettered_after_the_last_attempt(
    store: StoreHarness,
) -> None:
    lost, spent, alive = await store.claimed(), await store.claimed(max_attempts=1), None
    await confirm(store, spent)
    await store.clock.advance(ms=LEASE_MS)
    alive = await store.claimed()
    freed = await store.transact(lambda tx: store.jobs.release_expired(tx, actor="watchdog"))
    assert {job.id: str(job.status) for job in freed} == {lost.job_id: "pending", spent.job_id: "failed"}
    row = await store.job(lost.job_id)
    assert (row["reason"], row["available_at"]) == ("no_heartbeat", store.clock.now_us + 2_000_000)
    assert row["max_attempts"] == 5, "it is refunded"
    assert (await store.job(alive.job_id))["status"] == "running"
    assert await store.transact(lambda tx: store.jobs.release_expired(tx, actor="watchdog")) == ()


async def test_last_attempt_that_never_started_is_refunded_a_few_times(store: StoreHarness) -> None:
    fence = await store.claimed(max_attempts=1)
    for given_back in range(1, 4):
        await store.clock.advance(ms=LEASE_MS)
        reclaim = await store.transact(lambda tx: store.jobs.claim(tx, [fence.job_id], worker="w2", lease_ms=LEASE_MS))
        assert reasons(reclaim) == ["attempts_exhausted"], "the attempt is the watchdog's to give back"
        (job,) = await store.transact(lambda tx: store.jobs.release_expired(tx, actor="watchdog"))
        assert (job.status, job.attempt_id, job.max_attempts) == (JobStatus.PENDING, given_back, given_back + 1)
        await store.clock.advance(ms=60_000)
        assert len((await store.claim(fence.job_id)).done) == 1
    assert [item[3] for item in await attempts(store, fence.job_id)] == ["never_started"] * 3
    await store.clock.advance(ms=LEASE_MS)
    (job,) = await store.transact(lambda tx: store.jobs.release_expired(tx, actor="watchdog"))
    assert (job.status, job.error_code) == (JobStatus.FAILED, "WORKER_LOST")


async def test_replay_creates_a_new_job_with_a_reference_to_the_old_one(store: StoreHarness) -> None:
    job_id = await store.enqueue(payload={"x": 1}, priority=0)
    await store.transact(lambda tx: store.jobs.dead_letter(tx, [PoisonJob(job_id, "POISON", "bad")], actor="relay"))
    letter_id = (await store.row("SELECT id FROM dead_letters"))["id"]

    async def replay() -> dict[str, str | None]:
        return await store.transact(lambda tx: store.jobs.replay(tx, [letter_id, GONE], actor="ops", note="fixed"))

    made = await replay()
    row = await store.job(made[letter_id] or "")
    assert (row["origin_job_id"], row["status"], row["attempt_id"], row["priority"]) == (job_id, "pending", 0, 0)
    assert (await store.job(job_id))["status"] == "failed"
    letter = await store.row("SELECT * FROM dead_letters")
    assert (letter["state"], letter["replayed_by_job_id"], letter["resolved_by"]) == ("replayed", row["id"], "ops")
    assert await replay() == {}
    assert await store.transact(lambda tx: store.jobs.discard(tx, [letter_id], actor="ops", note="")) == []


async def test_discard_closes_a_letter(store: StoreHarness) -> None:
    job_id = await store.enqueue()
    await store.transact(lambda tx: store.jobs.dead_letter(tx, [PoisonJob(job_id, "POISON", "bad")], actor="relay"))
    letter_id = (await store.row("SELECT id FROM dead_letters"))["id"]
    assert await store.transact(lambda tx: store.jobs.discard(tx, [letter_id], actor="ops", note="junk")) == [letter_id]
    assert await store.transact(lambda tx: store.jobs.replay(tx, [letter_id], actor="ops", note="")) == {}


async def test_finish_accepts_only_succeeded_failed_or_pending(store: StoreHarness) -> None:
    fence = await store.claimed()
    with pytest.raises(InvalidTransition):
        await finish(store, fence, status=JobStatus.CANCELED)
    assert [job.status for job in (await finish(store, fence, status=JobStatus.FAILED)).done] == ["failed"]


async def test_empty_batches_change_nothing(store: StoreHarness) -> None:
    jobs = store.jobs
    assert await store.transact(lambda tx: jobs.enqueue(tx, [])) == []
    assert await store.claim() == BatchResult(())
    assert await store.transact(lambda tx: jobs.finish_and_claim_next(tx, [])) == FinishReport(())
    assert await store.transact(lambda tx: jobs.renew(tx, [], lease_ms=1)) == BatchResult(())


async def test_transitions_durations_and_conflicts_of_judge_runs_are_counted(store: StoreHarness) -> None:
    labels = {"from": "pending", "to": "running"}
    before = metric_value("judge_run_status_transitions_total", **labels)
    ended = metric_value("judge_run_duration_seconds_count", status="succeeded")
    conflicts = metric_value("judge_run_conflicts_total")
    fence = await store.claimed(kind="judge")
    assert metric_value("judge_run_status_transitions_total", **labels) == before + 1
    await finish(store, fence)
    assert metric_value("judge_run_duration_seconds_count", status="succeeded") == ended + 1
    await finish(store, fence)
    assert metric_value("judge_run_conflicts_total") == conflicts + 1


async def test_durations_are_never_negative_and_a_waiting_run_has_none(store: StoreHarness) -> None:
    """The clock of SQLite is that of the machine, which can be set back; a canceled retry does not run."""
    sums = {name: metric_value(f"{name}_sum", **labels) for name, labels in _TIMES.items()}
    await store.clock.advance(10_000)
    fence = await store.claimed(kind="judge")
    await store.clock.advance(-9_000)
    await finish(store, fence)
    assert {name: metric_value(f"{name}_sum", **labels) for name, labels in _TIMES.items()} == sums
    retried = await store.claimed(kind="judge")
    await finish(store, retried, status=JobStatus.PENDING, error_code="X")
    await store.clock.advance(60_000)
    canceled = metric_value("judge_run_duration_seconds_count", status="canceled")
    await store.transact(lambda tx: store.jobs.cancel(tx, [retried.job_id], actor="ann", reason="mistake"))
    assert metric_value("judge_run_duration_seconds_count", status="canceled") == canceled


async def test_maximum_attempts_of_the_policy_apply_unless_the_job_sets_its_own(store: StoreHarness) -> None:
    jobs = JobCommands({}, policy=RetryPolicy(max_retries=6))
    new = [NewJob(id=new_id(), kind="node"), NewJob(id=new_id(), kind="node", max_attempts=2)]
    await store.transact(lambda tx: jobs.enqueue(tx, new))
    assert [(await store.job(job.id))["max_attempts"] for job in new] == [7, 2]
