"""All log lines of a job share one trace id, and a full stream is noticed."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict
from adjudge.observe import logs, tracing
from adjudge.observe.logs import get_logger
from adjudge.observe.tracing import Span
from adjudge.relay.dispatcher import Dispatcher
from adjudge.relay.reconciler import Reconciler
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs.models import Fence, Job, JobResult
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import Judgement, NewSubmission
from adjudge.worker.acknowledger import Acknowledger
from adjudge.worker.finisher import Finisher
from adjudge.worker.handler import HandlerResult
from adjudge.worker.leases import LeaseKeeper
from adjudge.worker.slots import Slots
from adjudge.worker.worker_settings import WorkerOptions
from tests.integration.queue.conftest import QueueHarness
from tests.integration.queue.manual_worker import RecordingStream, UnavailableDatabase
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


async def test_a_dead_job_is_logged_as_failed_with_its_dead_letter(queue: QueueHarness, log_lines: io.StringIO) -> None:
    async def act(_: Job) -> HandlerResult:
        raise RuntimeError("the sandbox broke")

    queue.handler.act = act
    async with queue.scheduler(), queue.worker():
        (submission,) = await queue.submit()
        await queue.until_decided([submission])
        await queue.until_acknowledged()
    said = [json.loads(line) for line in log_lines.getvalue().splitlines()]
    ends = [event for event in said if event["event"] in ("job_finished", "job_retry_scheduled")]
    assert [(event["event"], event["attempt_id"]) for event in ends] == [
        ("job_retry_scheduled", 1),
        ("job_retry_scheduled", 2),
        ("job_retry_scheduled", 3),
        ("job_finished", 4),
    ]
    assert (ends[-1]["status"], ends[-1]["dead_lettered"], ends[-1]["level"]) == ("failed", True, "warning")


async def test_lines_about_outages_name_the_jobs(queue: QueueHarness, log_lines: io.StringIO) -> None:
    """A renewal, a finish and an acknowledgement that fail, a delivery that is put off, a message that is lost."""
    (submission,) = await queue.submit()
    (row,) = await queue.rows("SELECT id FROM jobs")
    stream = RecordingStream(queue.stream, queue)
    stream.publishes_fail = True
    dispatcher = Dispatcher(queue.database, queue.jobs, stream, name="dispatcher")
    await dispatcher.dispatch_batch()
    stream.publishes_fail = False
    statement = Statement("test.due", "Let deliveries be due.", "UPDATE outbox SET next_attempt_at = 1")
    await queue.database.transact(lambda tx: tx.execute(statement))
    await dispatcher.dispatch_batch()
    (message,) = await queue.stream.read(consumer="w1", limit=1, wait_ms=1_000)
    await queue.stream.ack([message])
    reconciler = Reconciler(queue.database, queue.jobs, queue.stream, name="reconciler", older_than_ms=0)
    assert await reconciler.run_once() == 1
    claimed = await queue.database.transact(lambda tx: queue.jobs.claim(tx, [row["id"]], worker="w1", lease_ms=60_000))
    database = UnavailableDatabase(queue.database)
    database.is_away = True
    job, fence = claimed.done[0], Fence(row["id"], 1, "w1")
    keeper = LeaseKeeper(database, queue.jobs, lease_ms=60_000, heartbeat_ms=1_000, clock=lambda: 0.0)
    keeper.add(fence, lambda _: None, claimed_at=0.0, fields={})
    await keeper.renew_all()
    finisher = Finisher(
        database, queue.jobs, {}, WorkerOptions("w1", slots=1), Slots(1), clock=lambda: 0.0, random_unit=lambda: 0.0
    )
    finishing = asyncio.create_task(finisher.finish(job, JobResult(fence, typed_result=Judgement(Verdict.AC), job=job)))

    async def tried() -> bool:
        return "finish_retrying" in log_lines.getvalue()

    await queue.until(tried, "the result could not be written")
    database.is_away = False
    await finishing
    stream.failing_acks = 2
    acknowledger = Acknowledger(stream)
    await acknowledger.ack([message])
    await acknowledger.close()
    await finisher.close()
    said = {event["event"]: event for event in map(json.loads, log_lines.getvalue().splitlines())}
    for event in ("dispatch_retrying", "stream_messages_lost", "heartbeat_failed", "finish_retrying", "ack_failed"):
        assert (said[event]["jobs"], said[event]["job_ids"]) == (1, [row["id"]]), event
    assert (await queue.until_decided([submission]))[submission] == ("accepted", "AC")


async def test_spans_of_a_job_with_a_retry(queue: QueueHarness) -> None:
    """In both modes; every process derives the same parents."""
    failures = [RuntimeError("the sandbox broke")]

    async def act(job: Job) -> HandlerResult:
        if failures:
            raise failures.pop()
        return await queue.handler._accept(job)

    queue.handler.act = act
    spans: list[Span] = []
    tracing.configure(spans.append)
    try:
        (submission,) = await queue.submit()
        async with queue.scheduler(), queue.worker():
            await queue.until_decided([submission])
            await queue.until_acknowledged()
    finally:
        tracing.configure(None)
    (row,) = await queue.rows("SELECT id, trace_id FROM jobs")
    assert {span.trace_id for span in spans} == {row["trace_id"]}
    found = Counter((span.name, span.parent_id, span.error) for span in spans)
    job = tracing.job_span_id(row["id"])
    assert found == {
        ("job judge", None, None): 1,
        ("dispatch", job, None): 2,
        ("claim", job, None): 1,
        ("attempt 1", job, "RuntimeError"): 1,
        ("attempt 2", job, None): 1,
        ("verdict", job, None): 1,
    }
    assert all(span.start_ns <= span.end_ns for span in spans)


async def test_a_job_that_nobody_traces_is_a_trace_of_its_own(queue: QueueHarness) -> None:
    await queue.submit()
    (job,) = await queue.rows("SELECT id, trace_id FROM jobs")
    assert job["trace_id"] == job["id"].replace("-", "")


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
