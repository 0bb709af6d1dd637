"""Ends of several kinds in one transaction take their jobs in the same order as a renewal of the leases does."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any, cast

import pytest

from adjudge.domain.errors import InvalidTransition
from adjudge.domain.ids import new_id
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.store import Database, Tx
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs.models import Fence, Job, JobResult
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import Judgement, NewRejudgeBatch, RejudgeSelection, RevisionChoice, VerdictPolicy
from adjudge.store.judging.rejudge import RejudgeCommands
from adjudge.worker.finisher import Finisher, FinishOutcome
from adjudge.worker.handler import HandlerResult
from adjudge.worker.slots import Slots
from adjudge.worker.worker_settings import WorkerOptions
from tests.integration.queue.conftest import QUICK, QueueHarness
from tests.support.lock_order import LockOrder, record_lock_order

_GIVEN = {"given_id": "text"}


class CountingDatabase:
    """A database that counts how often operations were begun: one that met a deadlock is begun again."""

    def __init__(self, queue: QueueHarness) -> None:
        self._inner, self.tries = queue.database, 0

    async def transact(self, operation: Any) -> Any:
        async def counted(tx: Tx) -> Any:
            self.tries += 1
            return await operation(tx)

        return await self._inner.transact(counted)


@pytest.mark.parametrize("queue", ["distributed"], indirect=True)  # SQLite has one writer
async def test_ends_and_a_renewal_of_the_same_jobs_never_wait_for_each_other(queue: QueueHarness) -> None:
    """The later job succeeded and the earlier is to be retried, while a renewal that has the one wants the other."""
    await queue.submit(2)
    ids = sorted(row["id"] for row in await queue.rows("SELECT id FROM jobs"))
    claimed = await queue.database.transact(lambda tx: queue.jobs.claim(tx, ids, worker="w", lease_ms=60_000))
    jobs = {job.id: job for job in claimed.done}
    fences = [Fence(job_id, jobs[job_id].attempt_id, "w") for job_id in ids]
    counted, options = CountingDatabase(queue), WorkerOptions("w", slots=2, retry=QUICK)
    finisher = Finisher(
        cast("Database", counted), queue.jobs, {}, options, Slots(2), clock=lambda: 0.0, random_unit=lambda: 0.5
    )
    renewals = 0

    async def renew(tx: Tx) -> None:
        nonlocal renewals
        renewals += 1
        for number, fence in enumerate(fences):
            assert not (await queue.jobs.renew(tx, [fence], lease_ms=60_000)).refused
            if number == 0:
                finishing.append(asyncio.gather(*(finisher.finish(job, end) for job, end in _ends(jobs, fences))))
                await queue.until(waits, "the ends wait for the renewal")

    async def waits() -> bool:
        assert not finishing[0].done(), finishing[0]
        sql = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        return bool(await queue.rows(sql))

    finishing: list[asyncio.Future[list[FinishOutcome]]] = []
    await queue.database.transact(renew)
    assert [outcome._replace(status=None) for outcome in await finishing[0]] == [FinishOutcome(), FinishOutcome()]
    assert (renewals, counted.tries) == (1, 1)


def _ends(jobs: dict[str, Job], fences: list[Fence]) -> list[tuple[Job, JobResult]]:
    earlier, later = jobs[fences[0].job_id], jobs[fences[1].job_id]
    done = JobResult(fences[1], result={}, typed_result=Judgement(Verdict.AC, time_ms=1, mem_kb=1), job=later)
    return [(later, done), (earlier, JobResult(fences[0], JobStatus.PENDING, reason="retry", job=earlier))]


@pytest.mark.parametrize("queue", ["distributed"], indirect=True)  # SQLite has one writer
async def test_transactions_of_jobs_lock_their_rows_in_the_documented_order(queue: QueueHarness) -> None:
    """Judged, retried, canceled, drained, delivered twice and given up: every transaction keeps to the order."""

    async def mixed(job: Job) -> HandlerResult:
        if job.attempt_id == 1 and job.id > middle:
            raise RuntimeError("once")
        return await queue.handler._accept(job)

    queue.handler.act = mixed
    with record_lock_order() as recorder:
        submissions = await queue.submit(12)
        ids = sorted(row["id"] for row in await queue.rows("SELECT id FROM jobs"))
        middle = ids[6]
        rejudging, batch_id = RejudgeCommands(queue.jobs), new_id()
        async with queue.scheduler(), queue.worker(limits={"kind:judge": 1}):
            for submission in submissions[:3]:
                with suppress(InvalidTransition):
                    await queue.database.transact(
                        partial(
                            SubmissionCommands(queue.jobs).cancel, submission_id=submission, actor="ada", reason="no"
                        )
                    )
            await queue.until_decided(submissions)
            batch = NewRejudgeBatch(
                batch_id, queue.person, RejudgeSelection(), VerdictPolicy.LATEST, RevisionChoice.PINNED, "again"
            )
            await queue.database.transact(lambda tx: rejudging.create(tx, batch))
            await queue.database.transact(lambda tx: rejudging.cancel(tx, batch_id, actor=queue.person, reason="no"))
    assert recorder.violations == {}


def test_the_watch_notices_rows_that_are_locked_out_of_order() -> None:
    jobs = Statement("test.jobs", "Lock jobs.", "UPDATE jobs SET actor = 'x' FROM {given} WHERE id = given_id", _GIVEN)
    runs = Statement("test.runs", "Lock runs.", "SELECT id FROM chain_runs FOR NO KEY UPDATE")
    alone = Statement("test.outbox", "Lock outbox rows.", "UPDATE outbox SET state = 'dropped'")
    recorder, good, bad = LockOrder(), object(), object()
    recorder.note(good, jobs, [("1",)])
    recorder.note(good, alone, None)
    recorder.note(good, runs, None)
    assert recorder.violations == {}
    recorder.note(bad, alone, None)
    recorder.note(bad, runs, None)
    recorder.note(bad, jobs, [("1",)])
    assert list(recorder.violations) == ["test.outbox", "test.runs > test.jobs"]
