"""Ends of several kinds in one transaction take their jobs in the same order as a renewal of the leases does."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from adjudge.domain.errors import Unavailable
from adjudge.domain.verdict import Verdict
from adjudge.store import Database, Tx
from adjudge.store.job_values import Fence, Job
from adjudge.store.submissions import Judgement
from adjudge.worker.finisher import End, Finisher, Places
from adjudge.worker.handler import Completion
from tests.integration.drive.conftest import QUICK, Drive


class Nowhere:
    """No place for jobs that follow."""

    def offer(self, _: End) -> None:
        return None

    def now(self) -> float:
        return 0.0


class Counted:
    """A database that counts how often operations were begun: one that met a deadlock is begun again."""

    def __init__(self, drive: Drive) -> None:
        self._inner, self.tries = drive.database, 0

    async def transact(self, operation: Any) -> Any:
        async def counted(tx: Tx) -> Any:
            self.tries += 1
            return await operation(tx)

        return await self._inner.transact(counted)


@pytest.mark.parametrize("drive", ["distributed"], indirect=True)  # SQLite has one writer
async def test_ends_and_a_renewal_of_the_same_jobs_never_wait_for_each_other(drive: Drive) -> None:
    """The later job succeeded and the earlier is to be retried, while a renewal that has the one wants the other."""
    await drive.submit(2)
    ids = sorted(row["id"] for row in await drive.rows("SELECT id FROM jobs"))
    claimed = await drive.database.transact(lambda tx: drive.jobs.claim(tx, ids, worker="w", lease_ms=60_000))
    jobs = {job.id: job for job in claimed.done}
    fences = [Fence(job_id, jobs[job_id].attempt_id, "w") for job_id in ids]
    counted, nowhere = Counted(drive), cast("Places", Nowhere())
    finisher = Finisher(cast("Database", counted), drive.jobs, policy=QUICK, random_unit=lambda: 0.5, places=nowhere)
    ends = asyncio.gather(*(finisher.write(end) for end in _ends(jobs, fences)))
    renewals = 0

    async def renew(tx: Tx) -> None:
        nonlocal renewals
        renewals += 1
        for number, fence in enumerate(fences):
            assert not (await drive.jobs.renew(tx, [fence], lease_ms=60_000)).refused
            if number == 0:
                finishing.append(asyncio.create_task(finisher.run()))
                await drive.until(waits, "the ends wait for the renewal")

    async def waits() -> bool:
        assert not finishing[0].done(), finishing[0]
        sql = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        return bool(await drive.rows(sql))

    finishing: list[asyncio.Task[None]] = []
    try:
        await drive.database.transact(renew)
        assert await ends == [None, None]
    finally:
        for task in finishing:
            task.cancel()
        await asyncio.gather(*finishing, return_exceptions=True)
    assert (renewals, counted.tries) == (1, 1)


def _ends(jobs: dict[str, Job], fences: list[Fence]) -> list[End]:
    earlier, later = fences
    done = Completion(result={}, outcome=Judgement(Verdict.AC, time_ms=1, mem_kb=1))
    return [
        End(jobs[later.job_id], later, completion=done),
        End(jobs[earlier.job_id], earlier, error=Unavailable("again")),
    ]
