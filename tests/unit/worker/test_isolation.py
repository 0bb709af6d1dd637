"""A job whose owner fails, and a database that goes away meanwhile, cost the jobs beside it nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

import pytest

from adjudge.domain.errors import OutcomeUnknown, Unavailable
from adjudge.store import Database, Tx
from adjudge.store.engine.driver import Operation
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.isolation import TRIES
from adjudge.store.jobs.models import FinishedJob, Job
from adjudge.stream.driver import Message, MessageBody
from adjudge.worker.claimer import Claimer
from adjudge.worker.handler import Handler
from adjudge.worker.reader import MessageValidator
from adjudge.worker.slots import Slots
from adjudge.worker.worker_settings import WorkerOptions
from tests.support.store_harness import StoreHarness, adhoc_statement

T = TypeVar("T")


class FailingOwner:
    """A listener that fails whenever it is called for certain jobs."""

    def __init__(self) -> None:
        self.failing: set[str] = set()

    def _check(self, jobs: Sequence[Job]) -> None:
        if found := self.failing.intersection(job.id for job in jobs):
            raise KeyError(f"a bug in {sorted(found)}")

    async def on_started(self, _tx: Tx, jobs: Sequence[Job]) -> None:
        self._check(jobs)

    async def on_released(self, _tx: Tx, jobs: Sequence[Job]) -> None:
        self._check(jobs)

    async def on_finished(self, _tx: Tx, ended: Sequence[FinishedJob]) -> None:
        self._check([item.job for item in ended])


class NoLimits:
    """A handler that is never called."""

    def limit_keys(self, _: object) -> tuple[str, ...]:
        return ()


class UnavailableOnce:
    """A database whose answer to the n-th transaction is lost, before or after the commit."""

    def __init__(self, store: StoreHarness, nth: int, *, commits: bool, reads: bool = True) -> None:
        self._inner, self._left, self._commits, self.reads = store.database, nth, commits, reads
        self.dialect = store.database.dialect

    async def transact(self, operation: Operation[T]) -> T:
        self._left -= 1
        if self._left == 0 and not self._commits:
            raise Unavailable("the database is away")
        result = await self._inner.transact(operation)
        if self._left == 0:
            raise OutcomeUnknown
        return result

    async def read(self, operation: Operation[T]) -> T:
        if not self.reads:
            raise Unavailable("the database is away")
        return await self._inner.read(operation)


@pytest.fixture
def owner(store: StoreHarness) -> FailingOwner:
    owner = FailingOwner()
    store.jobs = JobCommands({"fragile": owner}, random_unit=lambda: 0.0)
    return owner


def messages(job_ids: Sequence[str], kind: str = "fragile") -> dict[str, Message]:
    hints = [MessageBody(job_id, 2, kind) for job_id in job_ids]
    return {hint.job_id: Message(f"{number}-0", 2, hint, None, hint.job_id, 1) for number, hint in enumerate(hints, 1)}


def claimer_of(store: StoreHarness, database: UnavailableOnce | None = None) -> Claimer:
    reached = store.database if database is None else cast("Database", database)
    handlers = {"fragile": cast("Handler", NoLimits())}
    return Claimer(reached, store.jobs, handlers, WorkerOptions("w1", 8), Slots(8), clock=lambda: 0.0)


async def claimed(claimer: Claimer, job_ids: Sequence[str]) -> list[str]:
    return [claim.job.id for claim in (await claimer.claim(messages(job_ids))).claimed]


@pytest.mark.parametrize("commits", [False, True])
async def test_claims_with_a_lost_answer_are_refunded_once_their_leases_expire(
    store: StoreHarness, owner: FailingOwner, *, commits: bool
) -> None:
    bad, *good = job_ids = sorted(await store.enqueue_many(3, "fragile"))
    owner.failing = {bad}
    # The batch is the first transaction, then each job has one.
    with pytest.raises(Unavailable):
        await claimed(claimer_of(store, UnavailableOnce(store, 4, commits=commits)), job_ids)
    owner.failing = set()
    await store.clock.advance(ms=15_000)
    await store.transact(lambda tx: store.jobs.release_expired(tx, actor="watchdog"))
    rows = {row["id"]: row for row in await store.rows("SELECT id, status, attempt_id, max_attempts FROM jobs")}
    assert {row["status"] for row in rows.values()} == {"pending"}
    assert {row["max_attempts"] - row["attempt_id"] for row in rows.values()} == {4}, "no attempt is lost"
    assert [rows[job_id]["attempt_id"] for job_id in good] == ([1, 1] if commits else [1, 0])


async def test_failing_claims_raise_nothing_and_lose_no_job(store: StoreHarness, owner: FailingOwner) -> None:
    """An error here would end the worker; its messages stay pending and come back."""
    job_ids = await store.enqueue_many(2, "fragile")
    owner.failing = set(job_ids)
    claimer = claimer_of(store)
    for _ in range(TRIES + 1):
        assert await claimed(claimer, job_ids) == []
    assert await store.rows("SELECT id FROM dead_letters") == []
    owner.failing = set()
    assert sorted(await claimed(claimer, job_ids)) == sorted(job_ids)


async def test_failing_listener_does_not_block_other_dead_letters(store: StoreHarness, owner: FailingOwner) -> None:
    bad, good = await store.enqueue_many(2, "fragile")
    await store.database.transact(lambda tx: tx.execute(adhoc_statement("UPDATE jobs SET payload = '[1]'")))
    owner.failing = {bad}
    validator = MessageValidator(store.database, store.jobs, ["fragile"], actor="w1")
    unreadable = [
        Message(f"{number}-0", 2, None, "payload_missing_or_invalid", job_id, 1)
        for number, job_id in enumerate([bad, good], 1)
    ]
    assert [message.job_id for message in (await validator.validate(unreadable)).to_acknowledge] == [good]
    assert (await store.job(good))["error_code"] == "PAYLOAD_MISSING_OR_INVALID"
    for _ in range(TRIES - 1):
        await validator.validate(unreadable)
    assert (await store.job(bad))["error_code"] == "LISTENER_FAILED"
    assert [message.job_id for message in (await validator.validate(unreadable)).to_acknowledge] == [bad, good]
