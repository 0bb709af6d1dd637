"""A worker that is stopped between a claim and the start of its jobs loses none of their attempts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from adjudge.domain.errors import OutcomeUnknown, Unavailable
from adjudge.store.engine.driver import Operation
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs.models import Job
from adjudge.store.judging.commands import JOB_KIND_JUDGE
from adjudge.worker.handler import HandlerResult
from adjudge.worker.reader import MessageReader
from adjudge.worker.runner import Runner
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions
from tests.integration.queue.conftest import QUICK, QueueHarness

_ONE_ATTEMPT = Statement("test.one_attempt", "Leave jobs one attempt.", "UPDATE jobs SET max_attempts = 1")


class Intercepted:
    """A database whose transactions are followed by what the test says, after their commit."""

    def __init__(self, queue: QueueHarness) -> None:
        self._inner = queue.database
        self.dialect = queue.database.dialect
        self.listen = queue.database.listen
        self.after_commit: Callable[[Any], Awaitable[None]] | None = None

    async def transact(self, operation: Operation[Any]) -> Any:
        result = await self._inner.transact(operation)
        if self.after_commit is not None:
            await self.after_commit(result)
        return result

    async def read(self, operation: Operation[Any]) -> Any:
        return await self._inner.read(operation)

    async def close(self) -> None:
        """The test closes its own."""


@asynccontextmanager
async def working(queue: QueueHarness, database: Intercepted, **settings: Any) -> AsyncIterator[Worker]:
    options = WorkerOptions(
        "drained", **{"slots": 2, "lease_ms": 60_000, "read_wait_ms": 100, "retry": QUICK, **settings}
    )
    worker = Worker(database, queue.jobs, queue.stream, {JOB_KIND_JUDGE: queue.handler}, options)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.drain()
        worker.drain()
        async with asyncio.timeout(120):
            await task


def hold_the_claim(database: Intercepted) -> tuple[asyncio.Event, asyncio.Event]:
    """The answer to the next claim waits: an event says that it committed, the other lets it through."""
    committed, let_through = asyncio.Event(), asyncio.Event()

    async def hold(result: Any) -> None:
        if getattr(result, "done", None):
            database.after_commit = None
            committed.set()
            await let_through.wait()

    database.after_commit = hold
    return committed, let_through


async def test_drain_between_claim_and_start_lets_the_job_run(queue: QueueHarness) -> None:
    database = Intercepted(queue)
    committed, let_through = hold_the_claim(database)
    async with queue.scheduler():
        (submission,) = await queue.submit()
        async with working(queue, database) as worker:
            async with asyncio.timeout(120):
                await committed.wait()
            worker.drain()
            let_through.set()
            assert await queue.until_decided([submission]) == {submission: ("accepted", "AC")}
    assert [attempt for _, attempt in queue.handler.runs] == [1]


async def test_second_drain_between_claim_and_start_costs_no_attempt(queue: QueueHarness) -> None:
    async def never_ends(_: Job) -> HandlerResult:
        await asyncio.Event().wait()
        return HandlerResult()

    queue.handler.act = never_ends
    database = Intercepted(queue)
    committed, let_through = hold_the_claim(database)
    await queue.submit()
    async with queue.scheduler():
        async with working(queue, database) as worker:
            async with asyncio.timeout(120):
                await committed.wait()
            worker.drain()
            worker.drain()
            let_through.set()
        (job,) = await queue.rows("SELECT status, attempt_id, max_attempts, lease_owner FROM jobs")
    assert job["status"] in ("pending", "queued")
    assert (job["attempt_id"], job["max_attempts"], job["lease_owner"]) == (1, 5, None)


async def test_waiting_for_a_claim_and_for_jobs_share_one_grace(
    queue: QueueHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grace is over once: a claim that used it up leaves no second one to the jobs that run."""
    deadlines: list[float] = []
    stop_reading, finish_running = MessageReader.stop, Runner.drain

    async def stop(self: MessageReader, deadline: float) -> None:
        deadlines.append(deadline)
        await stop_reading(self, deadline)

    async def finish(self: Runner, deadline: float) -> None:
        deadlines.append(deadline)
        await finish_running(self, deadline)

    monkeypatch.setattr(MessageReader, "stop", stop)
    monkeypatch.setattr(Runner, "drain", finish)
    async with working(queue, Intercepted(queue)):
        pass
    assert len(deadlines) == 2
    assert deadlines[0] == deadlines[1]


async def test_many_drains_leave_no_job_behind(queue: QueueHarness) -> None:
    """However the drain falls, a worker that has stopped holds nothing, and no attempt was lost."""

    async def brief(job: Job) -> HandlerResult:
        await asyncio.sleep(0.002)
        return await queue.handler._accept(job)

    queue.handler.act = brief
    submissions: list[str] = []
    async with queue.scheduler():
        for drained in range(12):
            submissions += await queue.submit(6)
            async with working(queue, Intercepted(queue)):
                await asyncio.sleep(drained * 0.003)  # at another point each time
            held = await queue.rows("SELECT id FROM jobs WHERE status = 'running'")
            assert held == []
        async with queue.worker("last", slots=8):
            await queue.until_decided(submissions)
    spent = await queue.rows("SELECT reason FROM job_attempts WHERE reason IN ('lease_expired', 'reclaimed')")
    assert spent == []


async def test_claims_whose_answer_was_lost_are_released_without_cost(queue: QueueHarness) -> None:
    """The commit happened, its answer was lost: the lease expires without a heartbeat, and the attempt is refunded."""
    database = Intercepted(queue)

    async def lose(result: Any) -> None:
        if getattr(result, "done", None):
            database.after_commit = None
            raise OutcomeUnknown

    database.after_commit = lose
    async with queue.scheduler(), working(queue, database, lease_ms=1_000, heartbeat_ms=300):
        (submission,) = await queue.submit()
        assert await queue.until_decided([submission]) == {submission: ("accepted", "AC")}
    (job,) = await queue.rows("SELECT attempt_id, max_attempts FROM jobs")
    assert (job["attempt_id"], job["max_attempts"]) == (2, 5)
    assert [row["reason"] for row in await queue.rows("SELECT reason FROM job_attempts ORDER BY attempt_id")] == [
        "no_heartbeat",
        "finished",
    ]


@pytest.mark.parametrize("fails", [False, True])
async def test_last_attempt_is_confirmed_before_its_handler_is_called(queue: QueueHarness, *, fails: bool) -> None:
    """Where the start cannot be written, nothing runs and the attempt is given back."""
    database = Intercepted(queue)
    seen: list[Any] = []

    async def look(job: Job) -> HandlerResult:
        seen.extend(await queue.rows("SELECT heartbeat_at FROM jobs"))
        return await queue.handler._accept(job)

    async def lose(result: Any) -> None:
        if getattr(result, "done", None) and not isinstance(result.done[0], Job):
            database.after_commit = None
            raise Unavailable("the database is away")

    queue.handler.act = look
    if fails:
        database.after_commit = lose
    (submission,) = await queue.submit()
    await queue.database.transact(lambda tx: tx.execute(_ONE_ATTEMPT))
    async with queue.scheduler(), working(queue, database):
        assert await queue.until_decided([submission]) == {submission: ("accepted", "AC")}
    assert [attempt for _, attempt in queue.handler.runs] == ([2] if fails else [1])
    assert [row["heartbeat_at"] is not None for row in seen] == [True]
