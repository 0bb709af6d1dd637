"""Orders to a worker: paused it finishes its jobs and starts no more; drained it ends. Deadlines of all jobs."""

from __future__ import annotations

import asyncio

from adjudge.domain.retry import RetryPolicy
from adjudge.store.jobs.models import Job
from adjudge.store.ops import worker_controls
from adjudge.worker.control import WorkerControl
from adjudge.worker.handler import HandlerResult
from tests.integration.queue.conftest import QueueHarness


async def order(queue: QueueHarness, mode: worker_controls.WorkerMode) -> None:
    await queue.database.transact(
        lambda tx: worker_controls.set_mode(tx, "worker", mode, actor="ops", reason="maintenance")
    )


async def test_paused_worker_finishes_its_jobs_and_starts_no_more(queue: QueueHarness) -> None:
    may_end = asyncio.Event()

    async def waits(job: Job) -> HandlerResult:
        await may_end.wait()
        return await queue.handler._accept(job)

    queue.handler.act = waits
    async with queue.scheduler(), queue.worker(slots=1) as worker:
        control = asyncio.create_task(WorkerControl(queue.database, worker, name="worker", interval_ms=50).run())
        first = await queue.submit()
        await queue.until_running()
        await order(queue, "pause")

        async def paused() -> bool:
            return worker.is_paused

        await queue.until(paused, "the worker is paused")
        second = await queue.submit()
        may_end.set()

        async def first_is_decided() -> bool:
            rows = await queue.rows("SELECT id FROM submissions WHERE finished_at IS NOT NULL")
            return [row["id"] for row in rows] == first

        await queue.until(first_is_decided, "the running job is finished")
        assert len(queue.handler.runs) == 1
        async with queue.worker("other") as other:
            assert set((await queue.until_decided(first + second)).values()) == {("accepted", "AC")}
            other.drain()
        await queue.database.transact(lambda tx: worker_controls.delete(tx, "worker"))
        third = await queue.submit()
        assert (await queue.until_decided(third))[third[0]] == ("accepted", "AC")
        control.cancel()


async def test_drained_worker_ends_and_its_successor_works(queue: QueueHarness) -> None:
    async with queue.scheduler():
        async with queue.worker() as worker:
            await order(queue, "drain")
            await WorkerControl(queue.database, worker, name="worker", interval_ms=50).run()
            assert worker.is_draining
        assert await queue.database.read(worker_controls.list_all) == []
        async with queue.worker() as successor:
            await WorkerControl(queue.database, successor, name="worker", interval_ms=50).run_once()
            submissions = await queue.submit()
            assert set((await queue.until_decided(submissions)).values()) == {("accepted", "AC")}


async def test_job_without_a_deadline_ends_at_that_of_all_jobs(queue: QueueHarness) -> None:
    async def hangs(_: Job) -> HandlerResult:
        await asyncio.Event().wait()
        raise AssertionError

    queue.handler.act = hangs
    async with queue.scheduler(), queue.worker(deadline_ms=50, retry=RetryPolicy(max_retries=0)):
        submissions = await queue.submit()
        await queue.until_decided(submissions)
    rows = await queue.rows("SELECT error FROM dead_letters")
    assert "deadline of 50 ms" in rows[0]["error"]
