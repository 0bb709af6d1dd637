"""The retention: what it deletes and when, what it leaves, its bounds and its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from adjudge.domain.ids import new_id
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.relay import retention as module
from adjudge.relay.retention import Retention, RetentionOptions
from adjudge.store import Tx
from adjudge.store.accounts import api_tokens, sessions, users
from adjudge.store.jobs import dead_letters, retention
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging.models import Judgement
from adjudge.store.ops import audit_log
from tests.support.store_harness import StoreHarness, fence_of, metric_value

DAY_MS = 86_400_000
ALL = RetentionOptions(
    deliveries_ms=DAY_MS,
    history_ms=90 * DAY_MS,
    audit_ms=90 * DAY_MS,
    imports_ms=90 * DAY_MS,
    tokens_ms=90 * DAY_MS,
    dead_letters_ms=90 * DAY_MS,
)
HISTORY = ("outbox", "job_status_log", "job_attempts")


async def _finish(store: StoreHarness, job_id: str, **fields: Any) -> None:
    claimed = await store.claim(job_id)
    status = fields.pop("status", JobStatus.SUCCEEDED)
    result = JobResult(fence_of(claimed.done[0]), status, **fields)
    await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [result]))
    await store.write("UPDATE outbox SET state = 'delivered' WHERE job_id = :id", id=job_id)


async def _judged(store: StoreHarness) -> tuple[str, str]:
    """The submission and the job of one that was judged."""
    (ids,) = await store.submit()
    await _finish(store, ids.job_id, typed_result=Judgement(Verdict.AC, time_ms=1, mem_kb=1))
    return ids.submission_id, ids.job_id


async def _jobs_in(store: StoreHarness) -> dict[str, set[str]]:
    return {table: {row["job_id"] for row in await store.rows(f"SELECT job_id FROM {table}")} for table in HISTORY}


async def test_history_of_jobs_is_deleted_and_the_submission_is_kept(store: StoreHarness) -> None:
    submission, judged = await _judged(store)
    (waiting,) = await store.submit()
    failed = await store.enqueue("sturdy")
    await _finish(store, failed, status=JobStatus.FAILED, error_code="DEFECT")
    sweeper = Retention(store.database, ALL)
    await sweeper.run_once()
    assert all(judged in found for found in (await _jobs_in(store)).values())

    await store.clock.advance(2 * DAY_MS)
    await sweeper.run_once()
    found = await _jobs_in(store)
    assert found["outbox"] == {waiting.job_id, failed}, "of an unfinished job, and of one with an open dead letter"
    assert judged in found["job_status_log"] & found["job_attempts"]

    await store.clock.advance(90 * DAY_MS)
    await sweeper.run_once()
    found = await _jobs_in(store)
    assert (found["job_attempts"], found["job_status_log"]) == ({failed}, {failed})
    kept = await store.row("SELECT verdict FROM submissions WHERE id = :id", id=submission)
    assert kept["verdict"] == "AC"
    assert await store.rows("SELECT id FROM submission_status_log WHERE submission_id = :id", id=submission)
    assert {row["id"] for row in await store.rows("SELECT id FROM jobs")} == {judged, waiting.job_id, failed}


async def test_resolved_dead_letters_are_deleted_and_open_ones_kept(store: StoreHarness) -> None:
    for _ in range(2):
        await _finish(store, await store.enqueue("sturdy"), status=JobStatus.FAILED, error_code="DEFECT")
    first, second = await store.database.read(dead_letters.page)
    await store.transact(lambda tx: dead_letters.discard(tx, store.jobs, [first.id], actor="ops", reason="seen"))
    await store.clock.advance(91 * DAY_MS)
    await Retention(store.database, ALL).run_once()
    assert [row["id"] for row in await store.rows("SELECT id FROM dead_letters")] == [second.id]


async def test_jobs_of_callbacks_are_deleted(store: StoreHarness) -> None:
    job_id = await store.enqueue("callback")
    await _finish(store, job_id)
    await store.clock.advance(2 * DAY_MS)
    await Retention(store.database, ALL).run_once()
    assert await store.rows("SELECT id FROM jobs") == []


async def test_jobs_are_looked_at_page_by_page(store: StoreHarness) -> None:
    """Of jobs that ended in one transaction, too: the id continues where the time is equal."""
    needed = await store.enqueue_many(3, kind="callback")
    claimed = await store.claim(*needed)
    failed = [JobResult(fence_of(job), JobStatus.FAILED, error_code="DEFECT") for job in claimed.done]
    await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, failed))  # their dead letters are open
    await store.clock.advance(1)
    orphan = await store.enqueue("callback")
    await _finish(store, orphan)
    await store.clock.advance(2 * DAY_MS)
    pages, position = [], None
    while True:
        deleted, position = await store.transact(
            partial(retention.delete_orphaned, position=position, older_than_ms=DAY_MS, limit=2)
        )
        pages.append(deleted)
        if position is None:
            break
    assert pages == [0, 1, 0]
    assert {row["id"] for row in await store.rows("SELECT id FROM jobs")} == {*needed}


async def test_sessions_tokens_and_audit_log(store: StoreHarness) -> None:
    user, hour_us = new_id(), 3_600_000_000

    async def create(tx: Tx) -> None:
        await users.insert(tx, users.NewUser(user, "person"))
        await sessions.insert(tx, sessions.NewSession(new_id(), user, "short", idle_timeout_us=hour_us, ttl_us=hour_us))
        long_us = 8_760 * hour_us
        await sessions.insert(tx, sessions.NewSession(new_id(), user, "long", idle_timeout_us=long_us, ttl_us=long_us))
        await api_tokens.insert(tx, api_tokens.NewApiToken(new_id(), user, "short", "a", ttl_us=hour_us))
        await api_tokens.insert(tx, api_tokens.NewApiToken(new_id(), user, "long", "b", ttl_us=long_us))
        await audit_log.record(tx, actor=user, action="old", object_kind="user", objects=[user], reason="")

    await store.transact(create)
    await store.clock.advance(91 * DAY_MS)
    await store.transact(
        lambda tx: audit_log.record(tx, actor=user, action="new", object_kind="user", objects=[user], reason="")
    )
    await Retention(store.database, ALL).run_once()
    assert len(await store.rows("SELECT id FROM sessions")) == 1
    assert [row["name"] for row in await store.rows("SELECT name FROM api_tokens")] == ["long"]
    assert [row["action"] for row in await store.rows("SELECT action FROM audit_log")] == ["new"]


async def _add_import(store: StoreHarness, owner: str, revision: str | None, jury: str | None) -> str:
    import_id, job_id = new_id(), await store.enqueue("sturdy")
    await _finish(store, job_id)
    await store.write(
        "INSERT INTO problem_imports (id, purpose, created_by, job_id, file_name, requested, state, revision_id, jury, "
        "created_at, updated_at, finished_at) VALUES (:id, 'import', :owner, :job, 'a.zip', '{}', 'succeeded', "
        ":revision, :jury, {now}, {now}, {now})",
        id=import_id,
        owner=owner,
        job=job_id,
        revision=revision,
        jury=jury,
    )
    return import_id


async def test_imports_are_deleted_except_the_last_of_a_revision_and_its_verification(store: StoreHarness) -> None:
    await store.submit()
    (row,) = await store.rows("SELECT id, created_by FROM problem_revisions")
    revision, owner = row["id"], row["created_by"]
    jobs_before = len(await store.rows("SELECT id FROM jobs"))
    made = [
        await _add_import(store, owner, *fields)
        for fields in ((None, None), (revision, "[]"), (revision, "[1]"), (revision, None), (revision, None))
    ]
    await store.clock.advance(91 * DAY_MS)
    await Retention(store.database, ALL).run_once()
    kept = {row["id"] for row in await store.rows("SELECT id FROM problem_imports")}
    assert kept == {made[2], made[4]}
    assert len(await store.rows("SELECT id FROM jobs")) == jobs_before + len(kept)


async def test_a_pass_is_bounded_and_reports_that_it_is_behind(
    store: StoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCHES", 2)
    jobs = await store.enqueue_many(1_200, kind="sturdy")
    for start in range(0, 1_200, 400):
        claimed = await store.claim(*jobs[start : start + 400])
        results = [JobResult(fence_of(job), JobStatus.SUCCEEDED) for job in claimed.done]
        await store.transact(lambda tx, results=results: store.jobs.finish_and_claim_next(tx, results))  # type: ignore[misc]
    await store.write("UPDATE outbox SET state = 'delivered'")
    await store.clock.advance(2 * DAY_MS)
    sweeper = Retention(store.database, ALL)
    before = metric_value("retention_deleted_total", table="outbox")

    async def behind_and_left() -> tuple[float, int]:
        await sweeper.run_once()
        left = (await store.row("SELECT count(*) AS n FROM outbox"))["n"]
        return metric_value("retention_behind", table="outbox"), left

    assert await behind_and_left() == (1, 200)
    assert await behind_and_left() == (0, 0)
    assert metric_value("retention_deleted_total", table="outbox") - before == 1_200
    assert metric_value("retention_last_run_timestamp_seconds") > 0


class FailingSweep:
    """A table whose rows cannot be deleted."""

    async def run(self, _: object) -> tuple[int, bool]:
        raise RuntimeError("defect")


async def test_a_table_that_fails_does_not_stop_the_others(
    sqlite_store: StoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeper = Retention(sqlite_store.database, ALL)
    sweeps: Mapping[str, Any] = {"first": FailingSweep(), **sweeper.sweeps}
    monkeypatch.setattr(sweeper, "sweeps", sweeps)
    await _finish(sqlite_store, await sqlite_store.enqueue("callback"))
    await sqlite_store.clock.advance(2 * DAY_MS)
    assert await sweeper.run_once() >= 1
