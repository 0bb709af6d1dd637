"""Metrics of workers, the dispatcher and the watchdog."""

from __future__ import annotations

import asyncio

from adjudge.cache.token_buckets import MemoryTokenBuckets
from adjudge.domain.errors import RefusalReason
from adjudge.domain.failure_class import JURY_FAULT
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.relay.dispatcher import Dispatcher
from adjudge.relay.watchdog import Watchdog
from adjudge.store.jobs.models import Job, JobResult
from adjudge.store.judging.models import Judgement
from adjudge.stream import MessageBody, PublishResult
from adjudge.worker.finisher import Finisher
from adjudge.worker.handler import HandlerResult
from adjudge.worker.leases import LeaseKeeper
from adjudge.worker.slots import Slots, StartRateLimiter
from adjudge.worker.worker_settings import WorkerOptions
from tests.integration.metrics.bench import MetricsBench, moves
from tests.integration.queue.manual_worker import UnavailableDatabase

_ACCEPTED = "UPDATE jobs SET created_at = created_at - 20000000, available_at = available_at - 20000000"
_DUE = "UPDATE outbox SET due_at = due_at - 20000000, next_attempt_at = next_attempt_at - 20000000"


@moves(
    "jobs_enqueued_total",
    "jobs_started_total",
    "queue_wait_seconds",
    "verdict_latency_seconds",
    "judge_run_duration_seconds",
    "judge_run_status_transitions_total",
    "submission_status_transitions_total",
    "judge_verdict_total",
    "worker_claim_total",
    "worker_finalize_total",
    "worker_finalize_latency_seconds",
    "api_outbox_dispatch_total",
    "api_outbox_dispatch_latency_seconds",
)
async def accepted_submission(bench: MetricsBench) -> None:
    """It was accepted 20 seconds ago: waiting counts from then, judging from the claim."""
    queue = bench.queue
    (submission,) = await queue.submit()
    await bench.change(_ACCEPTED)
    await bench.change(_DUE)
    await Dispatcher(queue.database, queue.jobs, queue.stream, name="dispatcher").dispatch_batch()
    async with queue.worker():
        await queue.until_decided([submission])
        await bench.expect_all(
            {
                'jobs_enqueued_total{kind="judge"}': 1,
                'jobs_started_total{kind="judge"}': 1,
                'queue_wait_seconds_bucket{kind="judge",le="10.0"}': 0,
                'queue_wait_seconds_count{kind="judge"}': 1,
                'verdict_latency_seconds_bucket{le="10.0"}': 0,
                "verdict_latency_seconds_count": 1,
                'judge_run_duration_seconds_bucket{le="10.0",status="succeeded"}': 1,
                'judge_run_duration_seconds_count{status="succeeded"}': 1,
                'judge_run_status_transitions_total{from="pending",to="queued"}': 1,
                'judge_run_status_transitions_total{from="queued",to="running"}': 1,
                'judge_run_status_transitions_total{from="running",to="succeeded"}': 1,
                'submission_status_transitions_total{from="pending",to="judging"}': 1,
                'submission_status_transitions_total{from="judging",to="accepted"}': 1,
                'judge_verdict_total{verdict="AC"}': 1,
                'worker_claim_total{reason="ok",status="won"}': 1,
                'worker_finalize_total{status="succeeded"}': 1,
                "worker_finalize_latency_seconds_count": 1,
                'api_outbox_dispatch_total{reason="ok",status="delivered"}': 1,
                'api_outbox_dispatch_latency_seconds_bucket{le="10.0"}': 0,
                "api_outbox_dispatch_latency_seconds_count": 1,
            }
        )


@moves("job_failures_total", "job_attempt_failures_total", "worker_finalize_total", "judge_verdict_total")
async def failures_by_class(bench: MetricsBench) -> None:
    """Each class once; the dead job is counted as failed, its retries as pending."""
    queue, broken = bench.queue, HandlerResult(JobStatus.FAILED, {}, Judgement(Verdict.SE), JURY_FAULT, "checker")
    plans: list[Judgement | HandlerResult | None] = [Judgement(Verdict.CE), Judgement(Verdict.TLE), broken, None]
    submissions = await queue.submit(len(plans))
    by_submission = dict(zip(submissions, plans, strict=True))

    async def act(job: Job) -> HandlerResult:
        plan = by_submission[job.submission_id or ""]
        if plan is None:
            raise RuntimeError("the sandbox broke")
        return plan if isinstance(plan, HandlerResult) else HandlerResult(result={}, typed_result=plan)

    queue.handler.act = act
    async with queue.scheduler(), queue.worker():
        await queue.until_decided(submissions)
        await bench.expect_all(
            {
                'job_failures_total{class="compile",kind="judge"}': 1,
                'job_failures_total{class="contestant",kind="judge"}': 1,
                'job_failures_total{class="problem",kind="judge"}': 1,
                'job_failures_total{class="infrastructure",kind="judge"}': 1,
                'job_attempt_failures_total{code="RuntimeError",kind="judge"}': 4,
                'job_attempt_failures_total{code="JURY_FAULT",kind="judge"}': 1,
                'worker_finalize_total{status="succeeded"}': 2,
                'worker_finalize_total{status="failed"}': 2,
                'worker_finalize_total{status="pending"}': 3,
                'judge_verdict_total{verdict="CE"}': 1,
                'judge_verdict_total{verdict="TLE"}': 1,
                'judge_verdict_total{verdict="SE"}': 2,
                "dead_letters": 2,
            }
        )


@moves("worker_stale_attempt_total", "worker_finalize_rejected_total", "judge_run_conflicts_total")
async def stale_attempt(bench: MetricsBench) -> None:
    """Its verdict counts nowhere."""
    queue = bench.queue
    await queue.submit()
    job, fence = await bench.claim()
    await bench.change("UPDATE jobs SET attempt_id = attempt_id + 1")
    finisher = _finisher(bench)
    result = JobResult(fence, typed_result=Judgement(Verdict.AC), job=job)
    assert (await finisher.finish(job, result)).refused is RefusalReason.STALE_ATTEMPT
    await bench.expect_all(
        {
            "worker_stale_attempt_total": 1,
            'worker_finalize_rejected_total{reason="stale_attempt"}': 1,
            "judge_run_conflicts_total": 1,
            'judge_verdict_total{verdict="AC"}': 0,
            'worker_finalize_total{status="succeeded"}': 0,
        }
    )
    await finisher.close()


@moves("worker_finalize_errors_total")
async def database_away_while_finishing(bench: MetricsBench) -> None:
    await bench.queue.submit()
    job, fence = await bench.claim()
    database = UnavailableDatabase(bench.queue.database)
    database.is_away = True
    finisher = _finisher(bench, database)
    finishing = asyncio.create_task(finisher.finish(job, JobResult(fence, typed_result=Judgement(Verdict.AC), job=job)))
    await bench.expect(worker_finalize_errors_total=1)
    database.is_away = False
    await finishing
    await bench.expect_all({'worker_finalize_total{status="succeeded"}': 1})
    await finisher.close()


def _finisher(bench: MetricsBench, database: UnavailableDatabase | None = None) -> Finisher:
    """A finisher whose first retry is far away: until then one error is counted."""
    options = WorkerOptions("w1", slots=1)
    queue = bench.queue
    return Finisher(
        database or queue.database, queue.jobs, {}, options, Slots(1), clock=lambda: 0.0, random_unit=lambda: 1.0
    )


@moves("worker_lease_heartbeat_total")
async def renewed_and_lost_leases(bench: MetricsBench) -> None:
    queue = bench.queue
    await queue.submit()
    job, fence = await bench.claim()
    keeper = LeaseKeeper(queue.database, queue.jobs, lease_ms=60_000, heartbeat_ms=1_000, clock=lambda: 0.0)
    lost: list[RefusalReason] = []
    keeper.add(fence, lost.append, claimed_at=0.0, fields={"job_id": job.id})
    await keeper.renew_all()
    await queue.database.transact(lambda tx: queue.jobs.cancel(tx, [job.id], actor="ann", reason="mistake"))
    await keeper.renew_all()
    await bench.expect_all(
        {
            'worker_lease_heartbeat_total{reason="ok",status="renewed"}': 1,
            'worker_lease_heartbeat_total{reason="already_finished",status="refused"}': 1,
        }
    )
    assert lost == [RefusalReason.ALREADY_FINISHED]


@moves("worker_throttled_total")
async def throttled_worker(bench: MetricsBench) -> None:
    rate = StartRateLimiter(MemoryTokenBuckets(clock_us=lambda: 0), rate_per_sec=1)
    assert await rate.acquire(1, wait_sec=0.001) == 1
    rate.consume()
    assert await rate.acquire(1, wait_sec=0.001) == 0
    await bench.expect(worker_throttled_total=1)


@moves("worker_reclaim_total", "worker_reclaim_latency_seconds", "worker_reclaim_inflight")
async def message_of_a_lost_reader(bench: MetricsBench) -> None:
    queue, may_finish = bench.queue, asyncio.Event()
    (submission,) = await queue.submit()
    await Dispatcher(queue.database, queue.jobs, queue.stream, name="dispatcher").dispatch_batch()
    await queue.stream.read(consumer="lost", limit=1, wait_ms=1_000)
    await bench.claim("lost", lease_ms=1)

    async def act(job: Job) -> HandlerResult:
        await may_finish.wait()
        return await queue.handler._accept(job)

    queue.handler.act = act
    async with queue.worker():
        await bench.expect_all(
            {'worker_reclaim_total{reason="lease_expired",status="claimed"}': 1, "worker_reclaim_inflight": 1}
        )
        assert (await bench.scrape())["worker_reclaim_latency_seconds_count"] > bench.before.get(
            "worker_reclaim_latency_seconds_count", 0
        )
        bench.checked.add("worker_reclaim_latency_seconds")
        may_finish.set()
        await queue.until_decided([submission])
        await bench.expect(worker_reclaim_inflight=0)


@moves("stalled_total", "job_attempt_failures_total")
async def lost_worker(bench: MetricsBench) -> None:
    await bench.queue.submit()
    job, _ = await bench.claim("lost")
    await bench.change("UPDATE jobs SET lease_until = 1 WHERE id = :id", id=job.id)
    assert await Watchdog(bench.queue.database, bench.queue.jobs, name="watchdog").run_once() == 1
    await bench.expect_all({"stalled_total": 1, 'job_attempt_failures_total{code="WORKER_LOST",kind="judge"}': 1})


@moves("api_outbox_dispatch_total")
async def failed_deliveries(bench: MetricsBench) -> None:
    """One row, refused for each reason in turn."""
    queue, answers = bench.queue, iter([{"is_outage": True}, {"is_final": True}, {}])

    async def publish(hints: list[MessageBody]) -> list[PublishResult]:
        return [PublishResult(hint.job_id, None, "refused", **next(answers)) for hint in hints]

    await queue.submit()
    dispatcher = Dispatcher(queue.database, queue.jobs, queue.stream, name="dispatcher")
    queue.stream.publish = publish  # type: ignore[method-assign,assignment]
    for _ in range(3):
        await dispatcher.dispatch_batch()
        await bench.change("UPDATE outbox SET next_attempt_at = 1")
    await bench.expect_all(
        {
            f'api_outbox_dispatch_total{{reason="{reason}",status="failed"}}': 1
            for reason in ("stream_unavailable", "invalid_message", "stream_error")
        }
    )
