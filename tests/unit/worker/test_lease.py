"""The lease keeper, without jobs and a database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

from adjudge.domain.errors import InternalFault, RefusalReason
from adjudge.store import Database, Tx
from adjudge.store.engine.driver import Operation
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import BatchResult, Fence, RefusedWrite
from adjudge.worker.leases import LeaseKeeper


class RecordingDatabase:
    """A database that grants every renewal and records the fences."""

    def __init__(self) -> None:
        self.fences: list[Fence] = []

    async def transact(self, operation: Operation[Any]) -> Any:
        return await operation(cast("Any", None))

    async def renew(self, _: object, fences: list[Fence], *, lease_ms: int) -> BatchResult[Fence]:
        self.fences += fences
        return BatchResult(tuple(fences))


async def test_attempt_is_lost_when_its_worker_claims_the_job_again() -> None:
    """The lease had run out unnoticed, and the job came back to the same worker: the older attempt must not go on."""
    renewals, lost = RecordingDatabase(), list[tuple[int, RefusalReason]]()
    keeper = LeaseKeeper(
        cast("Database", renewals), cast("JobCommands", renewals), lease_ms=1_000, heartbeat_ms=100, clock=lambda: 0.0
    )
    older, newer = Fence("job", 1, "worker"), Fence("job", 2, "worker")
    keeper.add(older, lambda reason: lost.append((1, reason)), claimed_at=0, fields={})
    keeper.add(newer, lambda reason: lost.append((2, reason)), claimed_at=0, fields={})
    assert lost == [(1, RefusalReason.STALE_ATTEMPT)]
    keeper.remove(older)  # as its task ends
    await keeper.renew_all()
    assert renewals.fences == [newer]
    assert len(lost) == 1


async def test_refused_renewal_of_an_older_attempt_does_not_stop_the_next_one() -> None:
    """A beat is under way while the job, whose lease ran out, is won anew: its answer is about the older attempt."""
    lost = list[tuple[int, RefusalReason]]()
    older, newer = Fence("job", 1, "worker"), Fence("job", 2, "worker")

    class Overtaken(RecordingDatabase):
        async def renew(self, _: object, fences: list[Fence], *, lease_ms: int) -> BatchResult[Fence]:
            if fences == [newer]:
                return await super().renew(_, fences, lease_ms=lease_ms)
            keeper.add(newer, lambda reason: lost.append((2, reason)), claimed_at=0, fields={})
            return BatchResult((), (RefusedWrite("job", RefusalReason.STALE_ATTEMPT),))

    renewals = Overtaken()
    keeper = LeaseKeeper(
        cast("Database", renewals), cast("JobCommands", renewals), lease_ms=1_000, heartbeat_ms=100, clock=lambda: 0.0
    )
    keeper.add(older, lambda reason: lost.append((1, reason)), claimed_at=0, fields={})
    await keeper.renew_all()
    assert lost == [(1, RefusalReason.STALE_ATTEMPT)]
    await keeper.renew_all()
    assert renewals.fences == [newer]


class Clock:
    """Time that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def beating(renewals: RecordingDatabase, clock: Clock) -> AsyncIterator[asyncio.Queue[RefusalReason]]:
    """A keeper at work that holds one lease, half over, and what it says when that is lost."""
    keeper = LeaseKeeper(
        cast("Database", renewals), cast("JobCommands", renewals), lease_ms=1_000, heartbeat_ms=1, clock=clock
    )
    lost: asyncio.Queue[RefusalReason] = asyncio.Queue()
    keeper.add(Fence("job", 1, "worker"), lost.put_nowait, claimed_at=-0.5, fields={})
    running = asyncio.create_task(keeper.run())
    try:
        yield lost
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_job_is_stopped_if_the_database_does_not_respond_before_the_lease_expires() -> None:
    """A database that is frozen refuses nothing: the renewal waits, and the lease runs out meanwhile."""
    asked = asyncio.Event()

    class Silent(RecordingDatabase):
        async def transact(self, operation: Operation[Any]) -> Any:
            asked.set()
            await asyncio.Event().wait()

    clock = Clock()
    async with beating(Silent(), clock) as lost:
        await asyncio.wait_for(asked.wait(), 10)
        assert lost.empty()
        clock.now = 1.0
        assert await asyncio.wait_for(lost.get(), 10) is RefusalReason.LEASE_LOST_OR_OWNER_MISMATCH


async def test_failed_renewal_is_retried() -> None:
    class Troubled(RecordingDatabase):
        async def transact(self, operation: Operation[Any]) -> Any:
            if not self.tried:
                self.tried = True
                raise InternalFault("PostgreSQL refused a statement: read-only transaction.")
            renewed.set()
            return await super().transact(operation)

        tried = False

    renewed = asyncio.Event()
    async with beating(Troubled(), Clock()) as lost:
        await asyncio.wait_for(renewed.wait(), 10)
        assert lost.empty()


async def test_notification_checks_for_canceled_jobs_and_renews_nothing() -> None:
    """Every worker gets every notification: a renewal each time would contend with finishing writes."""
    canceled, kept = Fence("canceled", 1, "worker"), Fence("kept", 1, "worker")
    lost: asyncio.Queue[tuple[str, RefusalReason]] = asyncio.Queue()

    class Asked(RecordingDatabase):
        async def read(self, operation: Operation[Any]) -> Any:
            return await operation(cast("Tx", None))

        async def find_canceled(self, _: Tx, job_ids: Sequence[str]) -> set[str]:
            return {"canceled"} & {*job_ids}

        async def transact(self, operation: Operation[Any]) -> Any:
            raise AssertionError("a renewal")

    asked = Asked()
    keeper = LeaseKeeper(
        cast("Database", asked),
        cast("JobCommands", asked),
        lease_ms=7_200_000,
        heartbeat_ms=3_600_000,
        clock=lambda: 0.0,
    )
    for fence in (canceled, kept):
        keeper.add(fence, partial(_tell, lost, fence), claimed_at=0, fields={})
    running = asyncio.create_task(keeper.run())
    await asyncio.sleep(0)
    await asyncio.to_thread(keeper.request_cancel_check)
    assert await asyncio.wait_for(lost.get(), 60) == ("canceled", RefusalReason.ALREADY_FINISHED)
    keeper.request_cancel_check()
    await asyncio.sleep(0)
    assert lost.empty()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def _tell(lost: asyncio.Queue[tuple[str, RefusalReason]], fence: Fence, reason: RefusalReason) -> None:
    lost.put_nowait((fence.job_id, reason))
