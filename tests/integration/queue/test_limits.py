"""Jobs over a worker's limits wait without going round through the outbox and the stream."""

from __future__ import annotations

import asyncio
import io
from collections import Counter
from collections.abc import Mapping

import pytest

from adjudge.observe import logs
from adjudge.store.jobs.models import Job
from adjudge.store.judging.commands import JOB_KIND_JUDGE
from adjudge.stream.driver import Message
from adjudge.worker import claimer
from adjudge.worker.handler import HandlerResult
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions
from tests.integration.queue.conftest import QueueHarness


async def logged_transitions(queue: QueueHarness) -> Counter[tuple[str, str]]:
    rows = await queue.rows("SELECT from_status, to_status FROM job_status_log")
    return Counter((row["from_status"], row["to_status"]) for row in rows)


async def test_jobs_over_the_limit_are_read_once_and_others_pass_them(queue: QueueHarness) -> None:
    most, at_once, gate = 0, 0, asyncio.Event()

    async def counted(job: Job) -> HandlerResult:
        nonlocal most, at_once
        if job.payload["language"] == "java":
            at_once += 1
            most = max(most, at_once)
            await gate.wait()
            at_once -= 1
        return await queue.handler._accept(job)

    queue.handler.act = counted
    async with queue.scheduler(), queue.worker(slots=4, limits={"language:java": 1}):
        java = await queue.submit(40, "java")
        cpp = await queue.submit(10, "cpp")

        async def passed() -> bool:
            rows = await queue.rows("SELECT id FROM submissions WHERE language = 'cpp' AND status = 'accepted'")
            return len(rows) == len(cpp)

        await queue.until(passed, "the others pass what waits")
        gate.set()
        await queue.until_decided([*java, *cpp])
    assert most == 1
    found = await logged_transitions(queue)
    assert found["queued", "pending"] == 0, "nothing went back to the outbox"
    assert found["running", "succeeded"] == 50


async def test_what_is_beyond_the_bound_goes_back_and_is_judged(
    queue: QueueHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claimer, "PARKED_MAX", 2)
    monkeypatch.setattr(claimer, "_DELAY_MS", (20, 50))
    async with queue.scheduler(), queue.worker(slots=4, limits={"kind:judge": 1}):
        decided = await queue.until_decided(await queue.submit(12))
    assert set(decided.values()) == {("accepted", "AC")}


async def test_a_drained_worker_gives_back_what_it_parked(queue: QueueHarness) -> None:
    hold = asyncio.Event()

    async def held(job: Job) -> HandlerResult:
        await hold.wait()
        return await queue.handler._accept(job)

    queue.handler.act = held
    async with queue.scheduler(), queue.worker("first", slots=4, limits={"kind:judge": 1}) as worker:
        submissions = await queue.submit(5)

        async def parked() -> bool:
            return len(worker.claimer.parked) == 4

        await queue.until(parked, "the others are parked")
        worker.drain()

        async def given_back() -> bool:
            return len(worker.claimer.parked) == 0

        await queue.until(given_back, "they are given back")
        hold.set()
        async with queue.worker("second", slots=4):
            await queue.until_decided(submissions)
    rows = await queue.rows("SELECT actor FROM jobs WHERE status = 'succeeded'")
    assert Counter(row["actor"] for row in rows) == {"first": 1, "second": 4}


async def test_a_takeover_keeps_to_the_limits(queue: QueueHarness) -> None:
    """Messages of a dead reader are taken over one at a time where one at a time may run."""
    most, at_once = 0, 0

    async def counted(job: Job) -> HandlerResult:
        nonlocal most, at_once
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        return await queue.handler._accept(job)

    queue.handler.act = counted
    submissions = await queue.submit(6)
    async with queue.scheduler():

        async def read_by_the_dead() -> bool:
            await queue.stream.read(consumer="dead", limit=8, wait_ms=50)
            return sum((await queue.stream.pending_counts()).values()) == 6

        await queue.until(read_by_the_dead, "a reader that died has every message")
        async with queue.worker(slots=4, limits={"kind:judge": 1}):
            decided = await queue.until_decided(submissions)
    assert set(decided.values()) == {("accepted", "AC")}
    assert most == 1


async def test_an_error_while_parked_jobs_are_claimed_ends_the_worker(
    queue: QueueHarness, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    hold = asyncio.Event()

    async def held(job: Job) -> HandlerResult:
        await hold.wait()
        return await queue.handler._accept(job)

    queue.handler.act = held
    logged = io.StringIO()
    logs.configure("warning", "json", logged)
    request.addfinalizer(lambda: logs.configure("warning"))
    settings = WorkerOptions("broken", slots=4, read_wait_ms=100, limits={"kind:judge": 1})
    worker = Worker(queue.database, queue.jobs, queue.stream, {JOB_KIND_JUDGE: queue.handler}, settings)
    claim = worker.claimer.claim

    async def poisoned(messages: Mapping[str, Message]) -> claimer.ClaimReport:
        task = asyncio.current_task()
        if task is not None and task.get_name() == "unpark":
            raise KeyError("a bug in admission")
        return await claim(messages)

    monkeypatch.setattr(worker.claimer, "claim", poisoned)
    async with queue.scheduler():
        running = asyncio.create_task(worker.run())
        await queue.submit(5)

        async def parked() -> bool:
            return len(worker.claimer.parked) == 4

        await queue.until(parked, "the others are parked")
        hold.set()
        with pytest.raises(KeyError, match="a bug in admission"):
            async with asyncio.timeout(120):
                await running
    assert "unpark_failed" in logged.getvalue()
