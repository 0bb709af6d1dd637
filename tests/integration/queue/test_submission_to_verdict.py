"""A committed submission is judged once, whatever happens to the messages, the workers and the work."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from adjudge.domain.errors import Conflict, InvalidInput, Unavailable
from adjudge.domain.ids import new_id
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.relay.direct import dispatch_inline
from adjudge.relay.dispatcher import Dispatcher
from adjudge.relay.watchdog import Reconciler
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Job, NewJob
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import Judgement
from adjudge.stream import MemoryStream, MessageBody, PublishResult
from adjudge.stream.redis import RedisStream
from adjudge.worker.handler import HandlerResult
from adjudge.worker.rate_limit import StartRateLimiter
from adjudge.worker.slots import parse_limits
from tests.integration.queue.conftest import LOST_AFTER_MS, QueueHarness
from tests.support.store_harness import metric_value


async def test_two_hundred_submissions_are_each_judged_once(drive: QueueHarness) -> None:
    async with drive.scheduler("one"), drive.scheduler("two"), drive.worker("a", slots=8), drive.worker("b", slots=8):
        submissions = await drive.submit(200)
        decided = await drive.until_decided(submissions)
        await drive.until_acknowledged()
    assert set(decided.values()) == {("accepted", "AC")}
    assert len(drive.handler.runs) == 200
    assert await drive.rows("SELECT 1 AS one FROM job_status_log WHERE to_status = 'succeeded' LIMIT 1")


async def test_retryable_errors_backoff_and_cap(drive: QueueHarness) -> None:
    async def broken(_: Job) -> HandlerResult:
        raise RuntimeError("the sandbox would not start")

    drive.handler.act = broken
    async with drive.scheduler(), drive.worker():
        (submission,) = await drive.submit()
        assert await drive.until_decided([submission]) == {submission: ("error", "SE")}
    assert [attempt for _, attempt in drive.handler.runs] == [1, 2, 3, 4]
    (letter,) = await drive.database.read(dead_letters.page)
    found, attempts = await drive.database.read(lambda tx: dead_letters.find(tx, letter.id))
    assert found.error_code == "RuntimeError"
    assert [item.outcome for item in attempts] == ["released", "released", "released", "failed"]
    waits = await drive.rows("SELECT from_status, to_status, at FROM job_status_log ORDER BY id")
    released = [row["at"] for row in waits if (row["from_status"], row["to_status"]) == ("running", "pending")]
    again = [row["at"] for row in waits if row["to_status"] == "running"][1:]
    least_us = [10_000, 20_000, 40_000]
    assert all(back - gone >= least for gone, back, least in zip(released, again, least_us, strict=True))


async def test_an_end_that_cannot_be_written_is_kept_with_its_reason(drive: QueueHarness) -> None:
    """Its worker is well: a dead letter that says otherwise, a lease later, would send the operator the wrong way."""

    async def unwritable(_: Job) -> HandlerResult:
        return HandlerResult(result={"figures": object()}, typed_result=Judgement(Verdict.AC, time_ms=1, mem_kb=1))

    drive.handler.act = unwritable
    stalled = metric_value("stalled_total")
    async with drive.scheduler(), drive.worker():
        await drive.until_decided(await drive.submit())
    (letter,) = await drive.rows("SELECT attempt_id, error_code, error FROM dead_letters")
    assert (letter["attempt_id"], letter["error_code"]) == (4, "TypeError")
    assert letter["error"] == "TypeError: Object of type object is not JSON serializable"
    reasons = {row["reason"] for row in await drive.rows("SELECT reason FROM job_attempts")}
    assert "lease_expired" not in reasons
    assert metric_value("stalled_total") == stalled


async def test_an_error_is_kept_whatever_it_says(drive: QueueHarness) -> None:
    async def fails(_: Job) -> HandlerResult:
        raise InvalidInput("a zero \0 and half a letter \ud800")

    drive.handler.act = fails
    async with drive.scheduler(), drive.worker():
        await drive.until_decided(await drive.submit())
    (letter,) = await drive.rows("SELECT error_code, error FROM dead_letters")
    assert (letter["error_code"], letter["error"]) == ("INVALID_INPUT", "InvalidInput: a zero ␀ and half a letter ?")


async def test_what_was_put_off_is_delivered_when_it_is_due_not_when_the_next_poll_comes_round(
    drive: QueueHarness,
) -> None:
    async def fails_once(job: Job) -> HandlerResult:
        if job.attempt_id == 1:
            raise RuntimeError("the sandbox would not start")
        return await drive.handler._accept(job)

    drive.handler.act = fails_once
    pump = Dispatcher(drive.database, drive.jobs, drive.stream, name="pump", poll_ms=3_600_000)
    async with dispatch_inline(pump), drive.worker():
        decided = await drive.until_decided(await drive.submit(3))
    assert set(decided.values()) == {("accepted", "AC")}


async def test_a_dead_letter_is_replayed_and_its_verdict_replaces_the_error(drive: QueueHarness) -> None:
    async def refused(_: Job) -> HandlerResult:
        raise InvalidInput("language: no such thing")

    drive.handler.act = refused
    async with drive.scheduler(), drive.worker():
        (submission,) = await drive.submit()
        assert await drive.until_decided([submission]) == {submission: ("error", "SE")}
        assert len(drive.handler.runs) == 1, "what is final is not tried again"
        (letter,) = await drive.database.read(dead_letters.page)
        drive.handler.act = drive.handler._accept
        replayed = await drive.database.transact(
            lambda tx: dead_letters.replay(tx, drive.jobs, [letter.id], actor="ops", reason="fixed")
        )

        async def accepted() -> bool:
            return bool(await drive.rows("SELECT id FROM submissions WHERE status = 'accepted'"))

        await drive.until(accepted, "the replay decides")
    assert set(replayed) == {letter.id}
    (old,) = await drive.rows("SELECT status FROM jobs WHERE id = :id", id=letter.job_id)
    assert old["status"] == "failed"
    with pytest.raises(Conflict):
        await drive.database.transact(
            lambda tx: dead_letters.discard(tx, drive.jobs, [letter.id], actor="ops", reason="again")
        )
    (audited,) = await drive.rows("SELECT actor, action, reason FROM audit_log")
    assert (audited["actor"], audited["action"], audited["reason"]) == ("ops", "replay", "fixed")


async def test_a_wiped_stream_loses_no_job(drive: QueueHarness) -> None:
    async with drive.scheduler():
        submissions = await drive.submit(20)

        async def delivered() -> bool:
            return not await drive.rows("SELECT id FROM jobs WHERE status <> 'queued'")

        await drive.until(delivered, "all are in the stream")
        await _wipe(drive)
        async with drive.worker(slots=4):
            decided = await drive.until_decided(submissions)
    assert set(decided.values()) == {("accepted", "AC")}


async def test_a_wiped_stream_is_told_of_everything_in_one_round(drive: QueueHarness) -> None:
    await drive.submit(1_200)
    pump = Dispatcher(drive.database, drive.jobs, drive.stream, name="pump")
    while await pump.dispatch_batch():
        pass
    reconciler = Reconciler(drive.database, drive.jobs, drive.stream, name="reconciler", older_than_ms=0)
    assert await reconciler.run_once() == 0, "nothing is missing yet"
    await _wipe(drive)
    assert await reconciler.run_once() == 1_200
    assert not await drive.rows("SELECT id FROM jobs WHERE status <> 'pending'")


async def test_a_lost_message_is_found_behind_many_that_wait(drive: QueueHarness) -> None:
    await drive.submit(20)
    await Dispatcher(drive.database, drive.jobs, drive.stream, name="pump").dispatch_batch()
    messages = {message.job_id: message for message in await drive.stream.read(consumer="x", limit=20, wait_ms=500)}
    queued = [row["id"] for row in await drive.rows("SELECT id FROM jobs ORDER BY queued_at, id")]
    reconciler = Reconciler(drive.database, drive.jobs, drive.stream, name="reconciler", older_than_ms=0, batch=4)
    await drive.stream.ack([messages[queued[13]]])
    assert [await reconciler.run_once() for _ in range(5)] == [0, 0, 1, 0, 0]
    await drive.stream.ack([messages[queued[0]], messages[queued[19]]])
    found = [await reconciler.run_once() for _ in range(5)]
    assert (found[0], sum(found)) == (1, 2), "the front is looked at every time, the rest part by part"


@pytest.mark.slow
async def test_stalled_job_recovered_by_watchdog(drive: QueueHarness) -> None:
    never = asyncio.Event()

    async def stuck(_: Job) -> HandlerResult:
        await never.wait()
        return HandlerResult()

    drive.handler.act = stuck
    async with drive.scheduler():
        (submission,) = await drive.submit()
        async with drive.worker("dies", slots=1, lease_ms=LOST_AFTER_MS, heartbeat_ms=60_000):

            async def started() -> bool:
                return bool(drive.handler.runs)

            await drive.until(started, "it runs")
        # The worker is gone without a word: its lease runs out, and nobody acknowledged its message.
        drive.handler.act = drive.handler._accept
        async with drive.worker("lives"):
            assert await drive.until_decided([submission]) == {submission: ("accepted", "AC")}
    assert [attempt for _, attempt in drive.handler.runs] == [1, 2]


@pytest.mark.slow
async def test_a_late_writer_is_refused(drive: QueueHarness) -> None:
    """C5: a worker that lost its lease and does not know it changes nothing."""
    go_on = asyncio.Event()

    async def slow_first(job: Job) -> HandlerResult:
        if job.attempt_id == 1:
            await asyncio.shield(go_on.wait())
            return HandlerResult(result={}, typed_result=Judgement(Verdict.WA))
        return await drive.handler._accept(job)

    drive.handler.act = slow_first
    async with drive.scheduler(), drive.worker("zombie", slots=1, lease_ms=LOST_AFTER_MS, heartbeat_ms=60_000):
        (submission,) = await drive.submit()
        await drive.until_running()
        async with drive.worker("fresh"):
            assert await drive.until_decided([submission]) == {submission: ("accepted", "AC")}
        rejected = metric_value("worker_finalize_rejected_total", reason="stale_attempt")
        go_on.set()

        async def refused() -> bool:
            return metric_value("worker_finalize_rejected_total", reason="stale_attempt") > rejected

        await drive.until(refused, "the zombie is refused")
        rows = await drive.rows("SELECT verdict FROM submissions")
    assert [row["verdict"] for row in rows] == ["AC"]


async def test_canceling_kills_the_run_before_the_next_heartbeat_and_acknowledges_its_message(
    drive: QueueHarness,
) -> None:
    stopped = asyncio.Event()

    async def long(_: Job) -> HandlerResult:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return HandlerResult()

    drive.handler.act = long
    async with drive.scheduler(), drive.worker(heartbeat_ms=3_600_000, lease_ms=7_200_000):
        (submission,) = await drive.submit()

        await drive.until_running()
        await drive.database.transact(
            lambda tx: SubmissionCommands(drive.jobs).cancel(tx, submission, actor=drive.person, reason="no")
        )
        async with asyncio.timeout(120):
            await stopped.wait()
        await drive.until_acknowledged()
    assert await drive.until_decided([submission]) == {submission: ("canceled", None)}


async def test_a_worker_that_is_canceled_leaves_nothing_at_work_and_writes_nothing(drive: QueueHarness) -> None:
    ended = asyncio.Event()

    async def long(_: Job) -> HandlerResult:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # cleaning up takes its time
            ended.set()
        return HandlerResult()

    drive.handler.act = long
    async with drive.scheduler():
        await drive.submit()
        async with drive.worker("canceled"):
            await drive.until_running()
        assert ended.is_set()
        (job,) = await drive.rows("SELECT status, attempt_id, lease_owner FROM jobs")
    assert (job["status"], job["attempt_id"], job["lease_owner"]) == ("running", 1, "canceled")


async def test_draining_hands_back_what_it_cannot_finish_without_costing_an_attempt(drive: QueueHarness) -> None:
    async def long(_: Job) -> HandlerResult:
        await asyncio.Event().wait()
        return HandlerResult()

    drive.handler.act = long
    async with drive.scheduler():
        (submission,) = await drive.submit()
        async with drive.worker("drained", drain_grace_ms=20) as worker:

            async def running() -> bool:
                return worker.running == 1

            await drive.until(running, "it runs")
            worker.drain()

            async def handed_back() -> bool:
                return bool(await drive.rows("SELECT id FROM jobs WHERE status IN ('pending', 'queued')"))

            await drive.until(handed_back, "it is handed back")
        (job,) = await drive.rows("SELECT attempt_id, max_attempts, reason FROM jobs")
        assert (job["attempt_id"], job["max_attempts"]) == (1, 5)
        drive.handler.act = drive.handler._accept
        async with drive.worker("next"):
            assert await drive.until_decided([submission]) == {submission: ("accepted", "AC")}


async def test_what_nobody_can_run_is_buried_and_acknowledged(drive: QueueHarness) -> None:
    new = NewJob(id=new_id(), kind="no-such-kind")
    await drive.database.transact(lambda tx: drive.jobs.enqueue(tx, [new]))
    async with drive.scheduler(), drive.worker():

        async def quiet() -> bool:
            ended = await drive.rows("SELECT id FROM jobs WHERE finished_at IS NOT NULL")
            return bool(ended) and sum((await drive.stream.depths()).values()) == 0

        await drive.until(quiet, "the poison is gone")
    (letter,) = await drive.database.read(dead_letters.page)
    assert (letter.job_id, letter.error_code) == (new.id, "UNKNOWN_KIND")
    (row,) = await drive.rows("SELECT status FROM jobs")
    assert JobStatus(row["status"]) is JobStatus.FAILED


async def test_a_message_that_names_the_wrong_kind_does_no_harm(drive: QueueHarness) -> None:
    (submission,) = await drive.submit()
    (job,) = await drive.rows("SELECT id FROM jobs")
    await drive.stream.publish([MessageBody(job["id"], 2, "no-such-kind")])
    async with drive.worker():
        assert await drive.until_decided([submission]) == {submission: ("accepted", "AC")}


@pytest.mark.slow
async def test_a_limited_language_never_runs_more_than_it_may(drive: QueueHarness) -> None:
    at_once, most = 0, 0

    async def counted(job: Job) -> HandlerResult:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.005)
        at_once -= 1
        return await drive.handler._accept(job)

    drive.handler.act = counted
    async with drive.scheduler(), drive.worker(slots=4, limits={"kind:judge": 1}):
        submissions = await drive.submit(6)
        decided = await drive.until_decided(submissions)
    assert set(decided.values()) == {("accepted", "AC")}
    assert most == 1


@pytest.mark.slow
async def test_all_workers_together_start_no_more_jobs_than_the_rate_allows(drive: QueueHarness) -> None:
    rate, slots, jobs = 2, 2, 7
    async with drive.scheduler(), drive.buckets() as buckets:
        paces = [StartRateLimiter(opened, rate_per_sec=rate) for opened in buckets]
        async with drive.worker("a", slots=1, pace=paces[0]), drive.worker("b", slots=1, pace=paces[1]):
            await drive.until_decided(await drive.submit(jobs))
    started = sorted(row["started_at"] for row in await drive.rows("SELECT started_at FROM jobs"))
    # A burst is a second's worth, and each slot may hold a permit besides; all others come at the rate.
    assert started[-1] - started[0] >= (jobs - rate - slots) / rate * 1_000_000
    assert metric_value("worker_throttled_total") > 0


async def test_a_language_is_limited_by_its_name_in_the_settings(drive: QueueHarness) -> None:
    at_once: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def counted(job: Job) -> HandlerResult:
        language = job.payload["language"]
        at_once[language] += 1
        most[language] = max(most[language], at_once[language])
        await asyncio.sleep(0.02)
        at_once[language] -= 1
        return await drive.handler._accept(job)

    drive.handler.act = counted
    async with drive.scheduler(), drive.worker(slots=4, limits=parse_limits("language:java=1, language:cpp = 2")):
        submissions = await drive.submit(4, "java") + await drive.submit(6, "cpp") + await drive.submit(6, "python3")
        await drive.until_decided(submissions)
    assert most["java"] == 1
    assert most["cpp"] <= 2


async def test_d1_3_with_the_outbox_switched_off_whoever_makes_jobs_delivers(drive: QueueHarness) -> None:
    """``OUTBOX_ENABLED=false``: no scheduler is there, and it is judged all the same, even by a second attempt."""

    async def fails_once(job: Job) -> HandlerResult:
        if job.attempt_id == 1:
            raise RuntimeError("the sandbox broke")
        return await drive.handler._accept(job)

    drive.handler.act = fails_once
    async with (
        drive.worker(slots=4),
        dispatch_inline(Dispatcher(drive.database, JobCommands({}), drive.stream, name="direct")),
    ):
        submissions = await drive.submit(10)
        decided = await drive.until_decided(submissions)

        async def noted() -> bool:
            rows = await drive.rows("SELECT state FROM outbox")
            return {row["state"] for row in rows} == {"delivered"}

        await drive.until(noted, "each delivery is noted")
    assert set(decided.values()) == {("accepted", "AC")}
    assert len(drive.handler.runs) == 20


@pytest.mark.slow
async def test_what_could_not_be_delivered_directly_waits_in_the_outbox(drive: QueueHarness) -> None:
    class Deaf(MemoryStream):
        async def publish(self, hints: Sequence[MessageBody]) -> list[PublishResult]:
            raise Unavailable("the stream is away")

    async def refused() -> bool:
        (row,) = await drive.rows("SELECT state, last_error FROM outbox")
        return (row["state"], row["last_error"]) == ("pending", "the stream is away")

    async with dispatch_inline(Dispatcher(drive.database, JobCommands({}), Deaf(), name="direct")):
        submissions = await drive.submit()
        await drive.until(refused, "the row remembers why")
    async with drive.scheduler(), drive.worker():
        assert await drive.until_decided(submissions) == {submissions[0]: ("accepted", "AC")}


async def test_two_who_deliver_the_same_job_send_one_message(drive: QueueHarness) -> None:
    pump = Dispatcher(drive.database, drive.jobs, drive.stream, name="pump")
    await drive.submit(5)
    taken = await asyncio.gather(
        pump.dispatch_batch(), Dispatcher(drive.database, JobCommands({}), drive.stream, name="direct").dispatch_batch()
    )
    assert sum(taken) == 5
    assert sum((await drive.stream.depths()).values()) == 5


async def _wipe(drive: QueueHarness) -> None:
    if isinstance(drive.stream, MemoryStream):
        drive.stream.flush()
    elif isinstance(drive.stream, RedisStream):
        await drive.stream._client.flushall()
