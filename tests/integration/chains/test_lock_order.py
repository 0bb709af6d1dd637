"""Runs of chains and the submissions they wait for are locked in one order, on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from adjudge.chains.housekeeping import ChainHousekeeping, HousekeepingOptions
from adjudge.cli.wiring.chains import make_engine
from adjudge.cli.wiring.jobs import make_job_listeners
from adjudge.domain.errors import Conflict
from adjudge.domain.verdict import Verdict
from adjudge.executors.judge import WAIT_SUBMISSION
from adjudge.settings import load
from adjudge.store import Tx
from adjudge.store.chains.models import NodeSuspended
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Job, JobResult
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import Judgement
from tests.integration.chains.harness import LEASE_MS, ChainHarness, dag, line, node
from tests.support.lock_order import LockOrder, record_lock_order
from tests.support.store_harness import StoreHarness, adhoc_statement, fence_of

_PATIENCE_SEC = 60


class AllKinds(ChainHarness):
    """An engine whose nodes wait for submissions, with everything that owns jobs."""

    @property
    def jobs(self) -> JobCommands:
        return JobCommands(make_job_listeners(self.engine, load(environ={})), random_unit=lambda: 0.0)

    async def judge_run(self) -> Job:
        """A submission whose judge run has been claimed."""
        (made,) = await self.store.submit()
        outcome = await self.store.transact(
            lambda tx: self.jobs.claim(tx, [made.job_id], worker="judge", lease_ms=LEASE_MS)
        )
        return outcome.done[0]


@pytest.fixture
def harness(postgres_store: StoreHarness) -> AllKinds:
    return AllKinds(postgres_store, make_engine(load(environ={})))


@pytest.fixture
def lock_order() -> Iterator[LockOrder]:
    with record_lock_order() as recorder:
        yield recorder
    assert recorder.violations == {}


def judged(job: Job) -> JobResult:
    return JobResult(fence_of(job), typed_result=Judgement(Verdict.AC, time_ms=1, mem_kb=1), job=job)


def counted(operation: Callable[[Tx], Awaitable[Any]], tries: list[int]) -> Callable[[Tx], Awaitable[Any]]:
    """Count how often an operation is begun: one that met a deadlock is begun again."""

    async def once(tx: Tx) -> Any:
        tries.append(1)
        return await operation(tx)

    return once


async def test_a_verdict_and_a_wait_for_it_in_the_same_run_do_not_deadlock(harness: AllKinds) -> None:
    """The verdict holds the submission and wants the run, where a node that begins to wait wants both as well."""
    judge = await harness.judge_run()
    wait = NodeSuspended(WAIT_SUBMISSION, judge.submission_id or "")
    run_id = await harness.start(dag(node("a"), node("b"), node("end", "a", "b")))
    nodes = await harness.claim()
    await harness.finish(nodes["a"], outcome=wait)
    tries: list[int] = []
    suspending: list[asyncio.Task[Any]] = []

    async def end(tx: Tx) -> None:
        await tx.fetch(
            adhoc_statement("SELECT id FROM submissions WHERE id = :id FOR NO KEY UPDATE"), id=judge.submission_id
        )
        finish = JobResult(fence_of(nodes["b"]), typed_result=wait, job=nodes["b"])
        suspend = counted(lambda other: harness.jobs.finish_and_claim_next(other, [finish]), tries)
        suspending.append(asyncio.create_task(harness.store.transact(suspend)))
        await until_somebody_waits(harness, suspending[0])
        await harness.jobs.finish_and_claim_next(tx, [judged(judge)])

    await harness.store.transact(counted(end, tries))
    await suspending[0]
    assert (len(tries), len(suspending)) == (2, 1)
    states = await harness.states(run_id)
    assert (states["a"], states["b"]) == ("success", "success")
    assert await harness.drain(run_id) == ["end"]


async def until_somebody_waits(harness: ChainHarness, task: asyncio.Task[Any]) -> None:
    sql = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(_PATIENCE_SEC):
        while not await harness.store.rows(sql):
            assert not task.done(), task
            await asyncio.sleep(0.01)


@pytest.mark.usefixtures("lock_order")
async def test_waits_verdicts_cancels_and_people_lock_rows_in_the_documented_order(harness: AllKinds) -> None:
    housekeeping = ChainHousekeeping(
        harness.store.database, harness.jobs, harness.engine, name="p", settings=HousekeepingOptions(0)
    )
    for canceled in (False, True):
        judges = [await harness.judge_run() for _ in range(3)]
        runs = [await harness.start({**line(2), "concurrency": 2}) for _ in judges]
        claimed = {job.chain_run_id: job for job in (await harness.claim_all()).values()}
        waits = [NodeSuspended(WAIT_SUBMISSION, job.submission_id or "") for job in judges]
        waiting = [harness.finish(claimed[run_id], outcome=wait) for run_id, wait in zip(runs, waits, strict=True)]
        await asyncio.gather(*waiting, *(_ended(harness, job, canceled=canceled) for job in judges))
        await housekeeping.run_once()
        await asyncio.gather(*(_manually(harness, run_id) for run_id in runs[:2]))
        while jobs := await harness.claim_all():
            await harness.finish(*jobs.values())
        assert [(await harness.run(run_id)).finished_at is not None for run_id in runs] == [True] * 3


async def _ended(harness: AllKinds, job: Job, *, canceled: bool) -> None:
    async def cancel(tx: Tx) -> None:
        submissions = SubmissionCommands(harness.jobs)
        await submissions.cancel(tx, submission_id=job.submission_id or "", actor="ada", reason="no")

    await harness.store.transact(
        cancel if canceled else (lambda tx: harness.jobs.finish_and_claim_next(tx, [judged(job)]))
    )


async def _manually(harness: ChainHarness, run_id: str) -> None:
    for act in (harness.stop(run_id), harness.retry(run_id, "n0"), harness.complete(run_id, "n1")):
        with suppress(Conflict):
            await act
