"""What the constraints of the database refuse, for manual SQL as well."""

from __future__ import annotations

import pytest

from adjudge.domain.errors import AdjudgeError, InternalFault, InvalidTransition
from adjudge.domain.states import JOB, JobStatus
from adjudge.store.jobs.models import Fence, JobResult
from tests.support.store_harness import StoreHarness, adhoc_statement

CLAIMED = {JobStatus.RUNNING: "attempt_id = attempt_id + 1, lease_owner = 'w', lease_until = 1, started_at = 0"}
NOT_LEASED = "lease_owner = NULL, lease_until = NULL"


def move(target: JobStatus) -> str:
    """Legal SQL for a move to ``target``, were the edge legal."""
    fields = CLAIMED.get(target, NOT_LEASED)
    ends = "1" if target in JOB.terminal else "NULL"
    return f"UPDATE jobs SET status = '{target}', {fields}, finished_at = {ends}, updated_at = 1"


PATHS: dict[JobStatus, list[JobStatus]] = {
    JobStatus.PENDING: [],
    JobStatus.QUEUED: [JobStatus.QUEUED],
    JobStatus.RUNNING: [JobStatus.RUNNING],
    JobStatus.SUCCEEDED: [JobStatus.RUNNING, JobStatus.SUCCEEDED],
    JobStatus.FAILED: [JobStatus.FAILED],
    JobStatus.CANCELED: [JobStatus.CANCELED],
}


@pytest.mark.parametrize("source", JobStatus)
async def test_the_database_knows_the_table_of_edges(store: StoreHarness, source: JobStatus) -> None:
    for target in JobStatus:
        job_id = await store.enqueue()
        for step in PATHS[source]:
            await store.write(move(step) + " WHERE id = :id", id=job_id)
        if JOB.allows(source, target):
            await store.write(move(target) + " WHERE id = :id", id=job_id)
        else:
            with pytest.raises(InvalidTransition):
                await store.write(move(target) + " WHERE id = :id", id=job_id)
        expected = target if JOB.allows(source, target) else source
        assert (await store.job(job_id))["status"] == expected


async def test_what_has_ended_is_final_in_every_column(store: StoreHarness) -> None:
    fence = await store.claimed()
    await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [JobResult(fence, result={"ok": 1})]))
    before = await store.job(fence.job_id)
    for column, value in [("result", "'{}'"), ("attempt_id", "2"), ("reason", "'x'"), ("finished_at", "9")]:
        with pytest.raises(InvalidTransition):
            await store.write(f"UPDATE jobs SET {column} = {value}")
    assert await store.job(fence.job_id) == before


BROKEN = {
    "an attempt that shrinks": ("UPDATE jobs SET attempt_id = 0", InvalidTransition),
    "an attempt beyond its bound": ("UPDATE jobs SET max_attempts = 0", InternalFault),
    "a running job with no owner": ("UPDATE jobs SET lease_owner = NULL", InternalFault),
    "a running job with no lease": ("UPDATE jobs SET lease_until = NULL", InternalFault),
    "an end that has not come": ("UPDATE jobs SET finished_at = 1", InternalFault),
    "a status that does not exist": ("UPDATE jobs SET status = 'lost'", AdjudgeError),
}


@pytest.mark.parametrize(("sql", "error"), BROKEN.values(), ids=BROKEN.keys())
async def test_rows_that_make_no_sense_are_refused(store: StoreHarness, sql: str, error: type[AdjudgeError]) -> None:
    fence: Fence = await store.claimed()
    before = await store.job(fence.job_id)
    with pytest.raises(error):
        await store.write(sql)
    assert await store.job(fence.job_id) == before


async def test_transition_by_manual_sql_is_logged(store: StoreHarness) -> None:
    job_id = await store.enqueue()
    await store.transact(lambda tx: tx.execute(adhoc_statement(move(JobStatus.CANCELED))))
    row = await store.row("SELECT * FROM job_status_log")
    assert (row["job_id"], row["from_status"], row["to_status"]) == (job_id, "pending", "canceled")


async def test_each_row_of_a_batch_is_guarded_and_logged(store: StoreHarness) -> None:
    job_ids = [await store.enqueue() for _ in range(3)]
    await store.write(move(JobStatus.CANCELED) + " WHERE id = :id", id=job_ids[1])
    with pytest.raises(InvalidTransition):
        await store.write(move(JobStatus.FAILED))
    await store.write(move(JobStatus.FAILED) + " WHERE status = 'pending'")
    log = await store.rows("SELECT job_id, to_status FROM job_status_log ORDER BY id")
    assert sorted((row["job_id"], row["to_status"]) for row in log) == sorted(
        zip(job_ids, ("failed", "canceled", "failed"), strict=True)
    )


async def test_postgres_keeps_the_keys_of_jobs(postgres_store: StoreHarness) -> None:
    """Its guards match rows before and after by their keys: one without its match could slip past them."""
    job_id = await postgres_store.enqueue()
    await postgres_store.write("DELETE FROM outbox")
    with pytest.raises(InvalidTransition):
        await postgres_store.write("UPDATE jobs SET id = 'another', status = 'queued'")
    assert (await postgres_store.job(job_id))["status"] == "pending"
