"""What is deleted takes along what the logs say of it, and nothing else: SQL typed by hand included."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import asyncpg
import pytest
from sqlalchemy.engine import URL
from sqlalchemy.schema import CreateTable

from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import new_id
from adjudge.store import Tx
from adjudge.store.engine.db_triggers import LOG_CLEANUPS, TABLE_TRIGGERS
from adjudge.store.jobs.models import JobResult, PoisonJob
from adjudge.store.schema import METADATA
from tests.support.store_harness import StoreHarness, adhoc_statement, fence_of

Logs = dict[str, list[dict[str, Any]]]


async def make_jobs(store: StoreHarness, count: int) -> list[str]:
    """Jobs that ran twice, and then well."""
    job_ids = await store.enqueue_many(count)
    await store.claim(*job_ids)
    await store.clock.advance(ms=20_000)
    again = await store.transact(lambda tx: store.jobs.claim(tx, job_ids, worker="w2", lease_ms=15_000))
    await store.transact(
        lambda tx: store.jobs.finish_and_claim_next(tx, [JobResult(fence_of(job)) for job in again.done])
    )
    return job_ids


async def make_submissions(store: StoreHarness, count: int) -> list[str]:
    """Submissions whose runs are gone already: they would hold them."""
    items = await store.submit(count)
    await store.claim(*(item.job_id for item in items))
    await store.write("DELETE FROM jobs")
    return [item.submission_id for item in items]


RUN = """
    INSERT INTO chain_runs (id, number, chain_id, chain_version, dag, created_at, updated_at)
    VALUES (:id, :number, 'chain', 1, '{}', 0, 0)
"""
NODE = "INSERT INTO chain_nodes (run_id, node_id, type, updated_at) VALUES (:run_id, 'node', 'noop', 0)"


async def make_runs(store: StoreHarness, count: int) -> list[str]:
    """Runs that go, each with a node that does."""
    await store.write("INSERT INTO chains (id, name, dag, created_at, updated_at) VALUES ('chain', 'c', '{}', 0, 0)")
    run_ids = [new_id() for _ in range(count)]
    for number, run_id in enumerate(run_ids, 1):
        await store.write(RUN, id=run_id, number=number)
        await store.write(NODE, run_id=run_id)
    await store.write("UPDATE chain_runs SET status = 'running'")
    await store.write("UPDATE chain_nodes SET status = 'running'")
    return run_ids


async def make_contests(store: StoreHarness, count: int) -> list[str]:
    """Published contests."""
    contest_ids = [new_id() for _ in range(count)]
    for contest_id in contest_ids:
        await store.write(
            "INSERT INTO contests (id, slug, title, starts_at, duration_us, created_at, updated_at)"
            " VALUES (:id, :id, 'Contest', 1, 1, 0, 0)",
            id=contest_id,
        )
    await store.write("UPDATE contests SET state = 'published', version = version + 1")
    return contest_ids


async def replay(store: StoreHarness, job_id: str) -> None:
    """A job that was made to do it again holds the one it was made for."""
    await store.enqueue(origin_job_id=job_id)


async def judge(store: StoreHarness, submission_id: str) -> None:
    """A run of a submission holds it."""
    await store.enqueue(submission_id=submission_id)


async def submit_to(store: StoreHarness, contest_id: str) -> None:
    """A submission to a contest holds it."""
    (item,) = await store.submit()
    await store.write(
        "UPDATE submissions SET contest_id = :contest_id, version = version + 1 WHERE id = :id",
        contest_id=contest_id,
        id=item.submission_id,
    )


async def work_on(store: StoreHarness, run_id: str) -> None:
    """A job of a run holds it."""
    await store.enqueue(chain_run_id=run_id)


MAKERS: dict[str, Callable[[StoreHarness, int], Awaitable[list[str]]]] = {
    "jobs": make_jobs,
    "submissions": make_submissions,
    "chain_runs": make_runs,
    "contests": make_contests,
}
HOLDERS = {"jobs": replay, "submissions": judge, "chain_runs": work_on, "contests": submit_to}
LOGS = {sweep.table: sweep.logs for sweep in LOG_CLEANUPS}


async def read(store: StoreHarness, table: str, *, without: tuple[str, ...] = ()) -> Logs:
    """All that is said of rows of ``table``, or of all but a few."""
    found = {}
    for log, key in LOGS[table]:
        order = ", ".join(METADATA.tables[log].primary_key.columns.keys())
        rows = await store.rows(f"SELECT * FROM {log} ORDER BY {order}")
        found[log] = [row for row in rows if row[key] not in without]
    return found


def test_every_log_is_swept() -> None:
    assert MAKERS.keys() == LOGS.keys()


@pytest.mark.parametrize("table", MAKERS)
async def test_logs_go_with_the_rows_they_speak_of(store: StoreHarness, table: str) -> None:
    one, two, three, kept = await MAKERS[table](store, 4)
    everything = await read(store, table)
    for log, key in LOGS[table]:
        assert {row[key] for row in everything[log]} == {one, two, three, kept}
        assert len(everything[log]) >= 4
    without_one = await read(store, table, without=(one,))
    assert await store.write(f"DELETE FROM {table} WHERE id = :id", id=one) == 1
    assert await read(store, table) == without_one
    assert await store.write(f"DELETE FROM {table} WHERE id = 'nobody'") == 0
    assert await read(store, table) == without_one
    without_three = await read(store, table, without=(one, two, three))
    assert await store.write(f"DELETE FROM {table} WHERE id <> :id", id=kept) == 2
    assert await read(store, table) == without_three


@pytest.mark.parametrize("table", MAKERS)
async def test_a_refused_delete_takes_nothing_along(store: StoreHarness, table: str) -> None:
    free, held = await MAKERS[table](store, 2)
    await HOLDERS[table](store, held)
    before = await read(store, table)
    with pytest.raises(InvalidInput):
        await store.write(f"DELETE FROM {table} WHERE id IN (:free, :held)", free=free, held=held)
    assert await read(store, table) == before


async def test_the_replay_of_a_dead_letter_cannot_be_deleted_with_its_log(store: StoreHarness) -> None:
    job_id = await store.enqueue()
    await store.transact(lambda tx: store.jobs.dead_letter(tx, [PoisonJob(job_id, "POISON", "bad")], actor="relay"))
    letter = (await store.row("SELECT id FROM dead_letters"))["id"]
    made = await store.transact(lambda tx: store.jobs.replay(tx, [letter], actor="ops", note="fixed"))
    await store.claim(made[letter] or "")
    before = await read(store, "jobs")
    with pytest.raises(InvalidInput):
        await store.write("DELETE FROM jobs WHERE id = :id", id=made[letter])
    assert await read(store, "jobs") == before


async def test_what_is_logged_while_a_run_is_being_deleted_is_swept_too(postgres_store: StoreHarness) -> None:
    """Who moves a node holds the node alone; who deletes its run waits for it, and reads the log after that."""
    (run_id,) = await make_runs(postgres_store, 1)
    mover, deleter = [await asyncpg.connect(postgres_store.url) for _ in range(2)]
    try:
        moving = mover.transaction()
        await moving.start()
        await mover.execute("UPDATE chain_nodes SET status = 'success', ended_at = 1 WHERE run_id = $1", run_id)
        deleting = asyncio.create_task(deleter.execute("DELETE FROM chain_runs"))
        waits = "SELECT 1 FROM pg_locks WHERE pid = $1 AND NOT granted"
        async with asyncio.timeout(120):
            while not await mover.fetchval(waits, deleter.get_server_pid()):
                await asyncio.sleep(0)
        await moving.commit()
        assert await deleting == "DELETE 1"
    finally:
        await mover.close()
        await deleter.close()
    assert await read(postgres_store, "chain_runs") == {"chain_status_log": []}


@pytest.mark.parametrize("table", MAKERS)
async def test_a_sweep_goes_by_key_however_short_the_log_seems(postgres_store: StoreHarness, table: str) -> None:
    """A session keeps the plan, and the log grows under it."""
    thing, _ = await MAKERS[table](postgres_store, 2)
    scans = adhoc_statement("SELECT relname, seq_scan, idx_scan FROM pg_stat_xact_user_tables")

    async def count(tx: Tx) -> dict[str, tuple[int, int]]:
        return {row["relname"]: (row["seq_scan"], row["idx_scan"]) for row in await tx.fetch(scans)}

    async def delete(tx: Tx) -> None:
        for log, _ in LOGS[table]:
            await tx.execute(adhoc_statement(f"ANALYZE {log}"))
        before = await count(tx)
        await tx.execute(adhoc_statement(f"DELETE FROM {table} WHERE id = :id"), id=thing)
        after = await count(tx)
        for log, _ in LOGS[table]:
            sequential, by_key = (now - then for now, then in zip(after[log], before[log], strict=True))
            assert (sequential, by_key > 0) == (0, True), log

    await postgres_store.transact(delete)


@pytest.mark.parametrize("table", ["jobs", "chain_runs"])
def test_what_refers_to_what_is_deleted_for_age_is_found_by_key(sqlite_url: str, table: str) -> None:
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN DELETE FROM {table} WHERE id = 'x'")]
    assert len(plan) > 5
    assert [step for step in plan if step.startswith("SCAN")] == []


def test_postgres_lacks_those_foreign_keys_that_a_sweep_stands_for() -> None:
    """Who adds a log says so in both places: a log without its sweep would outlive what it speaks of."""

    def keys(dialect: str) -> set[tuple[str, ...]]:
        named = re.compile(r"FOREIGN KEY\((\w+)\) REFERENCES (\w+)")
        speaks = URL.create(dialect).get_dialect()()
        return {
            (table.name, *found)
            for table in METADATA.sorted_tables
            for found in named.findall(str(CreateTable(table).compile(dialect=speaks)))
        }

    logs = {(log.into, log.key, log.of) for watch in TABLE_TRIGGERS for log in watch.logs}
    assert keys("sqlite") - keys("postgresql") == logs
    assert keys("postgresql") <= keys("sqlite")
