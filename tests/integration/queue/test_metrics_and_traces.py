"""Queue metrics change when they should, and all log lines of a job share one trace id."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from adjudge.domain.ids import new_id
from adjudge.observe import logs, metrics
from adjudge.observe.logs import get_logger
from adjudge.relay.dispatcher import Dispatcher
from adjudge.relay.housekeeping import QueueGauges
from adjudge.store.jobs.models import Job
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import NewSubmission
from adjudge.worker.handler import HandlerResult
from tests.integration.queue.conftest import LOST_AFTER_MS, QueueHarness
from tests.support.store_harness import metric_value

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    """What is logged, as JSON, one event a line."""
    root = logging.getLogger()
    before = (root.handlers, root.level)
    stream = io.StringIO()
    logs.configure("info", "json", stream)
    yield stream
    root.handlers, _ = before
    root.setLevel(before[1])


async def test_one_trace_runs_from_the_submission_to_the_verdict(queue: QueueHarness, log_lines: io.StringIO) -> None:
    async def speaks(job: Job) -> HandlerResult:
        get_logger("the.sandbox").info("program_ran")  # whatever is logged while the job runs
        return await queue.handler._accept(job)

    queue.handler.act = speaks
    new = NewSubmission(new_id(), queue.person, queue.problem, queue.revision, "cpp", "digest", 1, trace_id=TRACE)
    async with queue.scheduler(), queue.worker():
        await queue.database.transact(lambda tx: SubmissionCommands(queue.jobs).submit(tx, [new]))
        await queue.until_decided([new.id])

        async def ended() -> bool:
            return '"job_finished"' in log_lines.getvalue() and '"job_dispatched"' in log_lines.getvalue()

        await queue.until(ended, "the end is logged")
    (job,) = await queue.rows("SELECT id, trace_id FROM jobs")
    assert job["trace_id"] == TRACE
    said = [event for event in map(json.loads, log_lines.getvalue().splitlines()) if event.get("job_id") == job["id"]]
    assert {event["trace_id"] for event in said} == {TRACE}
    stages = {event["stage"]: event for event in said if "stage" in event}
    assert set(stages) == {"enqueued", "delivered", "started", "finished"}
    for event in stages.values():
        assert (event["submission_id"], event["user_id"], event["language"]) == (new.id, queue.person, "cpp")
    assert stages["finished"]["attempt_id"] == 1
    assert [event["attempt_id"] for event in said if event["event"] == "program_ran"] == [1]


async def test_what_goes_wrong_with_a_job_is_logged_with_its_ids(queue: QueueHarness, log_lines: io.StringIO) -> None:
    """A job that is lost, its late writes, an error, a burial: each line names job, attempt and trace."""
    woken = asyncio.Event()

    async def act(_: Job) -> HandlerResult:
        await woken.wait()
        raise RuntimeError("the sandbox broke")

    queue.handler.act = act
    async with queue.scheduler():
        (submission,) = await queue.submit()
        async with queue.worker("lost", slots=1, lease_ms=100, heartbeat_ms=400):
            await queue.until_running()

            async def lost() -> bool:
                return '"lease_lost"' in log_lines.getvalue()

            await queue.until(lost, "its lease is lost, and it notices")
        woken.set()
        async with queue.worker("sound"):
            assert await queue.until_decided([submission]) == {submission: ("error", "SE")}
    (job,) = await queue.rows("SELECT id, trace_id FROM jobs")
    said = [event for event in map(json.loads, log_lines.getvalue().splitlines()) if event.get("job_id") == job["id"]]
    assert {event["trace_id"] for event in said} == {job["trace_id"]}
    expected = {"lease_lost", "job_lease_expired", "job_attempt_failed", "job_finished"}
    of_attempts = [event for event in said if event["event"] in expected]
    assert {event["event"] for event in of_attempts} == expected
    assert all(event["attempt_id"] >= 1 and event["stage"] for event in of_attempts)
    assert {(event["submission_id"], event["user_id"]) for event in of_attempts} == {(submission, queue.person)}
    refused = [event for event in said if event["event"] == "job_write_refused" and event["attempt_id"]]
    assert refused, "the late renewal"
    asked = {"reason", "db_attempt_id", "db_status", "db_lease_owner", "db_lease_until"}
    assert all(asked <= event.keys() for event in refused)


async def test_a_job_that_nobody_traces_is_a_trace_of_its_own(queue: QueueHarness) -> None:
    await queue.submit()
    (job,) = await queue.rows("SELECT id, trace_id FROM jobs")
    assert job["trace_id"] == job["id"].replace("-", "")


MOVING = (
    'jobs_enqueued_total{kind="judge"}',
    'jobs_started_total{kind="judge"}',
    'api_outbox_dispatch_total{reason="ok",status="delivered"}',
    "api_outbox_dispatch_latency_seconds_count",
    'worker_claim_total{reason="ok",status="won"}',
    'worker_finalize_total{status="succeeded"}',
    'worker_finalize_total{status="pending"}',
    "worker_finalize_latency_seconds_count",
    "worker_reclaim_latency_seconds_count",
    "queue_wait_seconds_count",
    'judge_run_status_transitions_total{from="queued",to="running"}',
    'judge_run_status_transitions_total{from="running",to="succeeded"}',
    'judge_run_status_transitions_total{from="running",to="pending"}',
    'judge_run_duration_seconds_count{status="succeeded"}',
    'submission_status_transitions_total{from="judging",to="accepted"}',
    "stalled_total",
    "dead_letters",
)
"""What a run with a success, a retry, a lost worker and a burial must move; the rest has tests with its rules."""


def _all_figures() -> dict[str, float]:
    found = {}
    for line in metrics.render_metrics().decode().splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            found[name.removeprefix(metrics.PREFIX)] = float(value)
    return found


@pytest.mark.slow
async def test_each_queue_metric_changes(queue: QueueHarness) -> None:
    metrics.DEAD_LETTERS.set(0)
    before = _all_figures()
    fails = {"left": 1}

    async def act(job: Job) -> HandlerResult:
        if job.submission_id == poison or (fails["left"] and fails.pop("left")):
            fails.setdefault("left", 0)
            raise RuntimeError("the sandbox broke")
        return await queue.handler._accept(job)

    async def stuck(_: Job) -> HandlerResult:
        await asyncio.Event().wait()
        return HandlerResult()

    queue.handler.act = stuck
    async with queue.scheduler():
        (stalled,) = await queue.submit()
        async with queue.worker("lost", slots=1, lease_ms=LOST_AFTER_MS, heartbeat_ms=60_000):
            await queue.until_running()
        queue.handler.act = act
        poison, fine = await queue.submit(2)
        async with queue.worker():
            decided = await queue.until_decided([stalled, poison, fine])
            census = QueueGauges(queue.database, queue.stream)

            async def moved() -> bool:
                await census.run_once()
                after = _all_figures()
                return all(after.get(name, 0) > before.get(name, 0) for name in MOVING)

            await queue.until(moved, f"each of {MOVING} moves")
    assert decided == {stalled: ("accepted", "AC"), fine: ("accepted", "AC"), poison: ("error", "SE")}


def test_every_figure_that_was_asked_for_is_declared() -> None:
    declared = {metric.name.removeprefix(metrics.PREFIX): metric for metric in metrics.ALL_METRICS}
    asked = """judge_exec_duration_seconds judge_exec_inflight judge_exec_total judge_verdict_total
        judge_protocol_errors_total judge_output_truncated_total worker_claim_total worker_lease_heartbeat_total
        worker_stale_attempt_total worker_finalize_total worker_finalize_rejected_total worker_finalize_errors_total
        worker_finalize_latency_seconds worker_reclaim_total worker_reclaim_latency_seconds worker_reclaim_inflight
        api_outbox_dispatch_total api_outbox_dispatch_latency_seconds api_outbox_pending queue_depth queue_wait_seconds
        jobs_enqueued_total jobs_started_total judge_run_duration_seconds dead_letters stalled_total"""
    assert set(asked.split()) <= declared.keys()
    assert not [metric.name for metric in metrics.ALL_METRICS if {"job_id", "user_id", "trace_id"} & set(metric.labels)]


async def test_a_full_stream_holds_delivery_back_and_drops_nothing(queue: QueueHarness) -> None:
    """What workers have not read stays below the stream's bound: the rest waits in the outbox, and says why."""
    dispatcher = Dispatcher(queue.database, queue.jobs, queue.stream, name="dispatcher", batch=4, ahead=6)
    submissions = await queue.submit(20)
    while await dispatcher.dispatch_batch():
        pass
    depth = sum((await queue.stream.depths()).values())
    assert depth == 6
    assert metric_value("stream_full", band="2") == 1
    (waiting,) = await queue.rows("SELECT count(*) AS n FROM jobs WHERE status = 'pending'")
    assert waiting["n"] == 14
    running = asyncio.create_task(dispatcher.run())
    async with queue.worker(slots=4):
        decided = await queue.until_decided(submissions)

        async def has_capacity() -> bool:
            return metric_value("stream_full", band="2") == 0

        await queue.until(has_capacity, "the dispatcher has noticed the free capacity")
    running.cancel()
    assert set(decided.values()) == {("accepted", "AC")}
    assert len(queue.handler.runs) == 20, "each was announced once"
