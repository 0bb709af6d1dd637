"""All log lines of a job share one trace id, and a full stream is noticed."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from adjudge.domain.ids import new_id
from adjudge.observe import logs
from adjudge.observe.logs import get_logger
from adjudge.relay.dispatcher import Dispatcher
from adjudge.store.jobs.models import Job
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import NewSubmission
from adjudge.worker.handler import HandlerResult
from tests.integration.queue.conftest import QueueHarness
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
