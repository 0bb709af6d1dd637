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
from adjudge.relay.dispatcher import Dispatcher, dispatch_inline
from adjudge.relay.reconciler import Reconciler
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Job, NewJob
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import Judgement
from adjudge.stream import MemoryStream, MessageBody, PublishResult
from adjudge.stream.redis import RedisStream
from adjudge.worker.handler import HandlerResult
from adjudge.worker.slots import StartRateLimiter, parse_limits
from tests.integration.queue.conftest import LOST_AFTER_MS, QueueHarness
from tests.support.store_harness import metric_value


async def test_two_hundred_submissions_are_each_judged_once(queue: QueueHarness) -> None:
    async with queue.scheduler("one"), queue.scheduler("two"), queue.worker("a", slots=8), queue.worker("b", slots=8):
        submissions = await queue.submit(200)
        decided = await queue.until_decided(submissions)
        await queue.until_acknowledged()
    assert set(decided.values()) == {("accepted", "AC")}
    assert len(queue.handler.runs) == 200
    assert await queue.rows("SELECT 1 AS one FROM job_status_log WHERE to_status = 'succeeded' LIMIT 1")


async def test_retryable_errors_backoff_and_cap(queue: QueueHarness) -> None:
    async def broken(_: Job) -> HandlerResult:
        raise RuntimeError("the sandbox would not start")

    queue.handler.act = broken
    async with queue.scheduler(), queue.worker():
        (submission,) = await queue.submit()
        assert await queue.until_decided([submission]) == {submission: ("error", "SE")}
    assert [attempt for _, attempt in queue.handler.runs] == [1, 2, 3, 4]
    (letter,) = await queue.database.read(dead_letters.page)
    found, attempts = await queue.database.read(lambda tx: dead_letters.find(tx, letter.id))
    assert found.error_code == "RuntimeError"
    assert [item.outcome for item in attempts] == ["released", "released", "released", "failed"]
    waits = await queue.rows("SELECT from_status, to_status, at FROM job_status_log ORDER BY id")
    released = [row["at"] for row in waits if (row["from_status"], row["to_status"]) == ("running", "pending")]
    again = [row["at"] for row in waits if row["to_status"] == "running"][1:]
    least_us = [10_000, 20_000, 40_000]
    assert all(back - gone >= least for gone, back, least in zip(released, again, least_us, strict=True))


async def test_an_end_that_cannot_be_written_is_kept_with_its_reason(queue: QueueHarness) -> None:
    """Its worker is well: a dead letter that says otherwise, a lease later, would send the operator the wrong way."""

    async def unwritable(_: Job) -> HandlerResult:
        return HandlerResult(result={"figures": object()}, typed_result=Judgement(Verdict.AC, time_ms=1, mem_kb=1))

    queue.handler.act = unwritable
    stalled = metric_value("stalled_total")
    async with queue.scheduler(), queue.worker():
        await queue.until_decided(await queue.submit())
    (letter,) = await queue.rows("SELECT attempt_id, error_code, error FROM dead_letters")
    assert (letter["attempt_id"], letter["error_code"]) == (4, "TypeError")
    assert letter["error"] == "TypeError: Object of type object is not JSON serializable"
    reasons = {row["reason"] for row in await queue.rows("SELECT reason FROM job_attempts")}
    assert "lease_expired" not in reasons
    assert metric_value("stalled_total") == stalled


async def test_an_error_is_kept_whatever_it_says(queue: QueueHarness) -> None:
    async def fails(_: Job) -> HandlerResult:
        raise InvalidInput("a zero \0 and half a letter \ud800")

    queue.handler.act = fails
    async with queue.scheduler(), queue.worker():
        await queue.until_decided(await queue.submit())
    (letter,) = await queue.rows("SELECT error_code, error FROM dead_letters")
    assert (letter["error_code"], letter["error"]) == ("INVALID_INPUT", "InvalidInput: a zero ␀ and half a letter ?")


async def test_what_was_put_off_is_delivered_when_it_is_due_not_when_the_next_poll_comes_round(
    queue: QueueHarness,
) -> None:
    async def fails_once(job: Job) -> HandlerResult:
        if job.attempt_id == 1:
            raise RuntimeError("the sandbox would not start")
        return await queue.handler._accept(job)

    queue.handler.act = fails_once
    dispatcher = Dispatcher(queue.database, queue.jobs, queue.stream, name="dispatcher", poll_ms=3_600_000)
    async with dispatch_inline(dispatcher), queue.worker():
        decided = await queue.until_decided(await queue.submit(3))
    assert set(decided.values()) == {("accepted", "AC")}


async def test_a_dead_letter_is_replayed_and_its_verdict_replaces_the_error(queue: QueueHarness) -> None:
    async def refused(_: Job) -> HandlerResult:
        raise InvalidInput("language: no such thing")

    queue.handler.act = refused
    async with queue.scheduler(), queue.worker():
        (submission,) = await queue.submit()
        assert await queue.until_decided([submission]) == {submission: ("error", "SE")}
        assert len(queue.handler.runs) == 1, "what is final is not tried again"
        (letter,) = await queue.database.read(dead_letters.page)
        queue.handler.act = queue.handler._accept
        replayed = await queue.database.transact(
            lambda tx: dead_letters.replay(tx, queue.jobs, [letter.id], actor="ops", reason="fixed")
        )

        async def accepted() -> bool:
            return bool(await queue.rows("SELECT id FROM submissions WHERE status = 'accepted'"))

        await queue.until(accepted, "the replay decides")
    assert set(replayed) == {letter.id}
    (old,) = await queue.rows("SELECT status FROM jobs WHERE id = :id", id=letter.job_id)
    assert old["status"] == "failed"
    with pytest.raises(Conflict):
        await queue.database.transact(
            lambda tx: dead_letters.discard(tx, queue.jobs, [letter.id], actor="ops", reason="again")
        )
    (audited,) = await queue.rows("SELECT actor, action, reason FROM audit_log")
    assert (audited["actor"], audited["action"], audited["reason"]) == ("ops", "replay", "fixed")


async def test_a_wiped_stream_loses_no_job(queue: QueueHarness) -> None:
    async with queue.scheduler():
        submissions = await queue.submit(20)

        async def delivered() -> bool:
            return not await queue.rows("SELECT id FROM jobs WHERE status <> 'queued'")

        await queue.until(delivered, "all are in the stream")
        await _wipe(queue)
        async with queue.worker(slots=4):
            decided = await queue.until_decided(submissions)
    assert set(decided.values()) == {("accepted", "AC")}


async def test_wiped_stream_gets_all_messages_again_in_one_round(queue: QueueHarness) -> None:
    await queue.submit(1_200)
    dispatcher = Dispatcher(queue.database, queue.jobs, queue.stream, name="dispatcher", least_ahead=4_000)
    while await dispatcher.dispatch_batch():
        pass
    reconciler = Reconciler(queue.database, queue.jobs, queue.stream, name="reconciler", older_than_ms=0)
    assert await reconciler.run_once() == 0, "nothing is missing yet"
    await _wipe(queue)
    assert await reconciler.run_once() == 1_200
    assert not await queue.rows("SELECT id FROM jobs WHERE status <> 'pending'")


async def test_a_lost_message_is_found_behind_many_that_wait(queue: QueueHarness) -> None:
    await queue.submit(20)
    await Dispatcher(queue.database, queue.jobs, queue.stream, name="dispatcher", least_ahead=20).dispatch_batch()
    messages = {message.job_id: message for message in await queue.stream.read(consumer="x", limit=20, wait_ms=500)}
    queued = [row["id"] for row in await queue.rows("SELECT id FROM jobs ORDER BY queued_at, id")]
    reconciler = Reconciler(queue.database, queue.jobs, queue.stream, name="reconciler", older_than_ms=0, batch=4)
    await queue.stream.ack([messages[queued[13]]])
    assert [await reconciler.run_once() for _ in range(5)] == [0, 0, 1, 0, 0]
    await queue.stream.ack([messages[queued[0]], messages[queued[19]]])
    found = [await reconciler.run_once() for _ in range(5)]
    assert (found[0], sum(found)) == (1, 2), "the front is looked at every time, the rest part by part"


@pytest.mark.slow
async def test_stalled_job_recovered_by_watchdog(queue: QueueHarness) -> None:
    never = asyncio.Event()

    async def stuck(_: Job) -> HandlerResult:
        await never.wait()
        return HandlerResult()

    queue.handler.act = stuck
    async with queue.scheduler():
        (submission,) = await queue.submit()
        async with queue.worker("dies", slots=1, lease_ms=LOST_AFTER_MS, heartbeat_ms=60_000):

            async def started() -> bool:
                return bool(queue.handler.runs)

            await queue.until(started, "it runs")
        # The worker is gone without a word: its lease runs out, and nobody acknowledged its message.
        queue.handler.act = queue.handler._accept
        async with queue.worker("lives"):
            assert await queue.until_decided([submission]) == {submission: ("accepted", "AC")}
    assert [attempt for _, attempt in queue.handler.runs] == [1, 2]


@pytest.mark.slow
async def test_a_late_writer_is_refused(queue: QueueHarness) -> None:
    """C5: a worker that lost its lease and does not know it changes nothing."""
    go_on = asyncio.Event()

    async def slow_first(job: Job) -> HandlerResult:
        if job.attempt_id == 1:
            await asyncio.shield(go_on.wait())
            return HandlerResult(result={}, typed_result=Judgement(Verdict.WA))
        return await queue.handler._accept(job)

    queue.handler.act = slow_first
    async with queue.scheduler(), queue.worker("zombie", slots=1, lease_ms=LOST_AFTER_MS, heartbeat_ms=60_000):
        (submission,) = await queue.submit()
        await queue.until_running()
        async with queue.worker("fresh"):
            assert await queue.until_decided([submission]) == {submission: ("accepted", "AC")}
        rejected = metric_value("worker_finalize_rejected_total", reason="stale_attempt")
        go_on.set()

        async def refused() -> bool:
            return metric_value("worker_finalize_rejected_total", reason="stale_attempt") > rejected

        await queue.until(refused, "the zombie is refused")
        rows = await queue.rows("SELECT verdict FROM submissions")
    assert [row["verdict"] for row in rows] == ["AC"]


async def test_canceling_kills_the_run_before_the_next_heartbeat_and_acknowledges_its_message(
    queue: QueueHarness,
) -> None:
    stopped = asyncio.Event()

    async def long(_: Job) -> HandlerResult:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return HandlerResult()

    queue.handler.act = long
    async with queue.scheduler(), queue.worker(heartbeat_ms=3_600_000, lease_ms=7_200_000):
        (submission,) = await queue.submit()

        await queue.until_running()
        await queue.database.transact(
            lambda tx: SubmissionCommands(queue.jobs).cancel(tx, submission, actor=queue.person, reason="no")
        )
        async with asyncio.timeout(120):
            await stopped.wait()
        await queue.until_acknowledged()
    assert await queue.until_decided([submission]) == {submission: ("canceled", None)}


async def test_a_worker_that_is_canceled_leaves_nothing_at_work_and_writes_nothing(queue: QueueHarness) -> None:
    ended = asyncio.Event()

    async def long(_: Job) -> HandlerResult:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # cleaning up takes its time
            ended.set()
        return HandlerResult()

    queue.handler.act = long
    async with queue.scheduler():
        await queue.submit()
        async with queue.worker("canceled"):
            await queue.until_running()
        assert ended.is_set()
        (job,) = await queue.rows("SELECT status, attempt_id, lease_owner FROM jobs")
    assert (job["status"], job["attempt_id"], job["lease_owner"]) == ("running", 1, "canceled")


async def test_draining_hands_back_what_it_cannot_finish_without_costing_an_attempt(queue: QueueHarness) -> None:
    async def long(_: Job) -> HandlerResult:
        await asyncio.Event().wait()
        return HandlerResult()

    queue.handler.act = long
    async with queue.scheduler():
        (submission,) = await queue.submit()
        async with queue.worker("drained", drain_grace_ms=20) as worker:

            async def running() -> bool:
                return worker.running == 1

            await queue.until(running, "it runs")
            worker.drain()

            async def released() -> bool:
                return bool(await queue.rows("SELECT id FROM jobs WHERE status IN ('pending', 'queued')"))

            await queue.until(released, "it is released")
        (job,) = await queue.rows("SELECT attempt_id, max_attempts, reason FROM jobs")
        assert (job["attempt_id"], job["max_attempts"]) == (1, 5)
        queue.handler.act = queue.handler._accept
        async with queue.worker("next"):
            assert await queue.until_decided([submission]) == {submission: ("accepted", "AC")}


async def test_poison_job_is_dead_lettered_and_acknowledged(queue: QueueHarness) -> None:
    new = NewJob(id=new_id(), kind="no-such-kind")
    await queue.database.transact(lambda tx: queue.jobs.enqueue(tx, [new]))
    async with queue.scheduler(), queue.worker():

        async def quiet() -> bool:
            ended = await queue.rows("SELECT id FROM jobs WHERE finished_at IS NOT NULL")
            return bool(ended) and sum((await queue.stream.depths()).values()) == 0

        await queue.until(quiet, "the poison is gone")
    (letter,) = await queue.database.read(dead_letters.page)
    assert (letter.job_id, letter.error_code) == (new.id, "UNKNOWN_KIND")
    (row,) = await queue.rows("SELECT status FROM jobs")
    assert JobStatus(row["status"]) is JobStatus.FAILED


async def test_a_message_that_names_the_wrong_kind_does_no_harm(queue: QueueHarness) -> None:
    (submission,) = await queue.submit()
    (job,) = await queue.rows("SELECT id FROM jobs")
    await queue.stream.publish([MessageBody(job["id"], 2, "no-such-kind")])
    async with queue.worker():
        assert await queue.until_decided([submission]) == {submission: ("accepted", "AC")}


@pytest.mark.slow
async def test_a_limited_language_never_runs_more_than_it_may(queue: QueueHarness) -> None:
    at_once, most = 0, 0

    async def counted(job: Job) -> HandlerResult:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.005)
        at_once -= 1
        return await queue.handler._accept(job)

    queue.handler.act = counted
    async with queue.scheduler(), queue.worker(slots=4, limits={"kind:judge": 1}):
        submissions = await queue.submit(6)
        decided = await queue.until_decided(submissions)
    assert set(decided.values()) == {("accepted", "AC")}
    assert most == 1


@pytest.mark.slow
async def test_all_workers_together_start_no_more_jobs_than_the_rate_allows(queue: QueueHarness) -> None:
    rate, slots, jobs = 2, 2, 7
    async with queue.scheduler(), queue.buckets() as buckets:
        rates = [StartRateLimiter(opened, rate_per_sec=rate) for opened in buckets]
        async with queue.worker("a", slots=1, rate=rates[0]), queue.worker("b", slots=1, rate=rates[1]):
            await queue.until_decided(await queue.submit(jobs))
    started = sorted(row["started_at"] for row in await queue.rows("SELECT started_at FROM jobs"))
    # A burst is a second's worth, and each slot may hold a permit besides; all others come at the rate.
    assert started[-1] - started[0] >= (jobs - rate - slots) / rate * 1_000_000
    assert metric_value("worker_throttled_total") > 0


async def test_a_language_is_limited_by_its_name_in_the_settings(queue: QueueHarness) -> None:
    at_once: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def counted(job: Job) -> HandlerResult:
        language = job.payload["language"]
        at_once[language] += 1
        most[language] = max(most[language], at_once[language])
        await asyncio.sleep(0.02)
        at_once[language] -= 1
        return await queue.handler._accept(job)

    queue.handler.act = counted
    async with queue.scheduler(), queue.worker(slots=4, limits=parse_limits("language:java=1, language:cpp = 2")):
        submissions = await queue.submit(4, "java") + await queue.submit(6, "cpp") + await queue.submit(6, "python3")
        await queue.until_decided(submissions)
    assert most["java"] == 1
    assert most["cpp"] <= 2


async def test_d1_3_without_the_outbox_the_process_that_creates_jobs_delivers(queue: QueueHarness) -> None:
    """``OUTBOX_ENABLED=false``: no scheduler is there, and it is judged all the same, even by a second attempt."""

    async def fails_once(job: Job) -> HandlerResult:
        if job.attempt_id == 1:
            raise RuntimeError("the sandbox broke")
        return await queue.handler._accept(job)

    queue.handler.act = fails_once
    async with (
        queue.worker(slots=4),
        dispatch_inline(Dispatcher(queue.database, JobCommands({}), queue.stream, name="direct")),
    ):
        submissions = await queue.submit(10)
        decided = await queue.until_decided(submissions)

        async def noted() -> bool:
            rows = await queue.rows("SELECT state FROM outbox")
            return {row["state"] for row in rows} == {"delivered"}

        await queue.until(noted, "each delivery is noted")
    assert set(decided.values()) == {("accepted", "AC")}
    assert len(queue.handler.runs) == 20


@pytest.mark.slow
async def test_what_could_not_be_delivered_directly_waits_in_the_outbox(queue: QueueHarness) -> None:
    class Deaf(MemoryStream):
        async def publish(self, hints: Sequence[MessageBody]) -> list[PublishResult]:
            raise Unavailable("the stream is away")

    async def refused() -> bool:
        (row,) = await queue.rows("SELECT state, last_error FROM outbox")
        return (row["state"], row["last_error"]) == ("pending", "the stream is away")

    async with dispatch_inline(Dispatcher(queue.database, JobCommands({}), Deaf(), name="direct")):
        submissions = await queue.submit()
        await queue.until(refused, "the row remembers why")
    async with queue.scheduler(), queue.worker():
        assert await queue.until_decided(submissions) == {submissions[0]: ("accepted", "AC")}


async def test_two_who_deliver_the_same_job_send_one_message(queue: QueueHarness) -> None:
    dispatcher = Dispatcher(queue.database, queue.jobs, queue.stream, name="dispatcher")
    await queue.submit(5)
    taken = await asyncio.gather(
        dispatcher.dispatch_batch(),
        Dispatcher(queue.database, JobCommands({}), queue.stream, name="direct").dispatch_batch(),
    )
    assert sum(taken) == 5
    assert sum((await queue.stream.depths()).values()) == 5


async def _wipe(queue: QueueHarness) -> None:
    if isinstance(queue.stream, MemoryStream):
        queue.stream.flush()
    elif isinstance(queue.stream, RedisStream):
        await queue.stream._client.flushall()
