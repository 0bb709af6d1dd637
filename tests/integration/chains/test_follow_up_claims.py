"""A worker that goes on: the next node is claimed in the transaction that ended the last, like by any other claim."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.chains.executor import Executor, NodeContext, NodeResult, NodeWaiting
from adjudge.domain.errors import OutcomeUnknown
from adjudge.relay.dispatcher import Dispatcher
from adjudge.store.chains.models import JOB_KIND_NODE
from adjudge.store.engine.driver import Operation
from adjudge.store.jobs.models import Capacity, Job, JobResult
from adjudge.stream import MemoryStream
from adjudge.worker.handlers.node import NodeHandler
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions
from tests.integration.chains.harness import LEASE_MS, ChainHarness, dag, done, line, node
from tests.integration.chains.test_handler import HandlerHarness, ScriptedExecutor
from tests.support.store_harness import fence_of, metric_value


def one_each(jobs: int) -> Capacity:
    """A worker with one slot for a follow-up of each job that it finishes, and one for other jobs."""
    return Capacity("w1", LEASE_MS, slots=jobs + 1)


async def hand_on(harness: ChainHarness, *jobs: Job, capacity: Capacity | None = None) -> list[Job]:
    """Finish jobs, with a slot for one follow-up of each; return what was claimed."""
    ends = [JobResult(fence_of(job), typed_result=done(), job=job) for job in jobs]
    report = await harness.store.transact(
        lambda tx: harness.jobs.finish_and_claim_next(tx, ends, capacity or one_each(len(jobs)))
    )
    return [job for claimed in report.claimed.values() for job in claimed]


async def test_what_follows_is_claimed_as_it_is_created(harness: ChainHarness) -> None:
    run_id = await harness.start(line(3))
    (taken,) = await hand_on(harness, (await harness.claim())["n0"])
    assert (taken.node_id, taken.attempt_id, taken.actor) == ("n1", 1, "w1")
    assert await harness.states(run_id) == {"n0": "success", "n1": "running", "n2": "pending"}
    assert await harness.waiting_jobs() == []
    row = await harness.store.job(taken.id)
    assert (row["status"], row["lease_owner"]) == ("running", "w1")
    assert row["lease_until"] > row["started_at"]
    log = await harness.store.rows("SELECT from_status, to_status FROM job_status_log WHERE job_id = :id", id=taken.id)
    assert [(item["from_status"], item["to_status"]) for item in log] == [("pending", "running")]
    (taken,) = await hand_on(harness, taken)
    assert (await hand_on(harness, taken), (await harness.run(run_id)).status) == ([], "success")


async def test_a_place_is_for_one_job_and_only_for_one_that_fits(harness: ChainHarness) -> None:
    fan = dag(node("root"), *(node(f"leaf{number}", "root") for number in range(3)))
    await harness.start(fan)
    taken = await hand_on(harness, (await harness.claim())["root"])
    assert (len(taken), len(await harness.waiting_jobs())) == (1, 2)
    run_id = await harness.start(line(2))
    assert await hand_on(harness, (await harness.claim("n0"))["n0"], capacity=Capacity("w1", LEASE_MS, 1)) == []
    assert [job["node_id"] for job in await harness.waiting_jobs(run_id)] == ["n1"]


async def test_an_end_that_the_fence_refuses_hands_nothing_on(harness: ChainHarness) -> None:
    run_id = await harness.start(line(2))
    job = (await harness.claim())["n0"]
    await harness.finish(job)
    assert await hand_on(harness, job) == []
    assert [job["node_id"] for job in await harness.waiting_jobs(run_id)] == ["n1"]


async def test_a_worker_lost_with_what_it_went_on_to_is_found_out(harness: ChainHarness) -> None:
    run_id = await harness.start(line(2))
    (taken,) = await hand_on(harness, (await harness.claim())["n0"])
    await harness.store.clock.advance(LEASE_MS + 1)
    (freed,) = await harness.store.transact(lambda tx: harness.jobs.release_expired(tx, actor="watchdog"))
    assert freed.id == taken.id
    assert (await harness.states(run_id))["n1"] == "retrying"
    outbox = await harness.store.row("SELECT state FROM outbox WHERE job_id = :id", id=taken.id)
    assert outbox["state"] == "pending"  # announced like any other
    assert (await harness.finish(taken)).done == ()


@asynccontextmanager
async def working(
    harness: ChainHarness,
    folder: Path,
    *,
    slots: int,
    executor: Executor | None = None,
    limits: Mapping[str, int] | None = None,
) -> AsyncIterator[tuple[HandlerHarness, Worker]]:
    """A worker and a dispatcher, which publishes the jobs that the worker did not claim itself."""
    stream, handler_harness, blobs = MemoryStream(), HandlerHarness(harness), DirectoryBlobStore(folder)
    handler = NodeHandler(
        harness.store.database, blobs, {ScriptedExecutor.type: executor or handler_harness.script}, harness.engine.dags
    )
    settings = WorkerOptions("w1", slots=slots, heartbeat_ms=20, read_wait_ms=20, limits=limits or {})
    worker = Worker(harness.store.database, harness.jobs, stream, {JOB_KIND_NODE: handler}, settings)
    dispatcher = asyncio.create_task(
        Dispatcher(harness.store.database, harness.jobs, stream, name="dispatcher", poll_ms=20).run()
    )
    running = asyncio.create_task(worker.run())
    try:
        yield handler_harness, worker
    finally:
        worker.drain()
        await running
        dispatcher.cancel()
        await asyncio.gather(dispatcher, return_exceptions=True)
        await blobs.close()


@pytest.mark.parametrize(("slots", "messages"), [(2, 1), (1, 6)])
async def test_a_line_needs_one_message_where_another_slot_is_free(
    harness: ChainHarness, tmp_path: Path, slots: int, messages: int
) -> None:
    before = metric_value("worker_claim_total", status="won", reason="handed_on")
    async with working(harness, tmp_path, slots=slots) as (handler_harness, _):
        run_id = await harness.start(line(6))
        assert await handler_harness.ends(run_id) == "success"
        async with asyncio.timeout(240):  # a message may be read before its sender has noted that it is sent
            while await harness.store.rows("SELECT 1 AS n FROM outbox WHERE state = 'pending'"):
                await asyncio.sleep(0.01)
    assert [context.node_id for context in handler_harness.script.seen] == [f"n{number}" for number in range(6)]
    assert len(await harness.store.rows("SELECT 1 AS n FROM outbox WHERE stream_entry_id IS NOT NULL")) == messages
    assert metric_value("worker_claim_total", status="won", reason="handed_on") - before == 6 - messages


async def test_follow_up_claimed_by_a_lost_commit_is_refunded_once_its_lease_expires(
    harness: ChainHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, lost = harness.store.database, list[bool]()
    transact = database.transact

    async def forgetful(operation: Operation[object]) -> object:
        """Commit, and once lose the answer to the commit that claimed a follow-up job."""
        result = await transact(operation)
        if getattr(result, "claimed", None) and not lost:
            lost.append(True)
            raise OutcomeUnknown
        return result

    monkeypatch.setattr(database, "transact", forgetful)
    async with working(harness, tmp_path, slots=2) as (handler_harness, _):
        run_id = await harness.start(line(3, retry={"max_attempts": 1}))
        await handler_harness.until(run_id, "n1", "running")
        await harness.store.clock.advance(ms=20_000)
        await harness.store.transact(lambda tx: harness.jobs.release_expired(tx, actor="watchdog"))
        await harness.store.clock.advance(ms=10_000)
        assert await handler_harness.ends(run_id) == "success"
    assert lost
    assert [context.node_id for context in handler_harness.script.seen] == ["n0", "n1", "n2"]


async def test_a_worker_that_drains_takes_nothing_on(harness: ChainHarness, tmp_path: Path) -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    async with working(harness, tmp_path, slots=2) as (handler_harness, worker):

        async def wait(context: NodeContext) -> NodeResult:
            begun.set()
            await go.wait()
            return NodeResult(context.node_id)

        handler_harness.script.acts["n0"] = wait
        run_id = await harness.start(line(2))
        await begun.wait()
        worker.drain()
        go.set()
        await handler_harness.until(run_id, "n0", "success")
    assert [context.node_id for context in handler_harness.script.seen] == ["n0"]
    assert (await harness.states(run_id))["n1"] == "pending"


@pytest.mark.parametrize("is_instant", [False, True])
async def test_a_limit_of_a_node_type_holds_for_what_is_read_and_for_what_is_gone_on_to(
    harness: ChainHarness, tmp_path: Path, is_instant: bool
) -> None:
    """``node:noop=2`` in ``worker.limits``: two runs, each with a fan of nodes and a mapped node."""
    at_once, most = 0, 0

    class Counted(ScriptedExecutor):
        async def execute(self, context: NodeContext) -> NodeResult | NodeWaiting:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            try:
                await asyncio.sleep(0.005)
                return await super().execute(context)
            finally:
                at_once -= 1

    executor = Counted()
    executor.is_instant = is_instant  # type: ignore[attr-defined]  # an executor may say so
    fan = dag(
        node("root", cfg={"out": [1, 2, 3, 4]}),
        *(node(f"leaf{number}", "root") for number in range(4)),
        node("each", "root", map={"over": "{{ artifacts.root }}", "as": "item"}),
        node("end", "each", *(f"leaf{number}" for number in range(4))),
    )
    async with working(harness, tmp_path, slots=4, executor=executor, limits={"node:noop": 2}) as (handler_harness, _):
        for run_id in [await harness.start(fan), await harness.start(fan)]:
            assert await handler_harness.ends(run_id) == "success"
    assert len(executor.seen) == 2 * 10
    assert most == 2
