"""Jobs that fail for good have a dead letter; what replays and cancels mean for what jobs belong to."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from adjudge.domain.errors import Conflict, InvalidTransition
from adjudge.domain.ids import new_id
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.store.accounts import users
from adjudge.store.jobs import dead_letters, retention
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging import executions
from adjudge.store.judging.models import Judgement, NewRejudgeBatch, RejudgeSelection, RevisionChoice, VerdictPolicy
from adjudge.store.judging.rejudge import RejudgeCommands
from adjudge.store.problems import imports
from adjudge.store.problems.imports import ImportResult, NewImport
from adjudge.store.problems.models import NewProblem, NewRevision
from tests.support.store_harness import StoreHarness, adhoc_statement, fence_of, metric_value

AC = Judgement(Verdict.AC, time_ms=1, mem_kb=1)


async def judge(store: StoreHarness, *job_ids: str, **fields: Any) -> None:
    claimed = await store.claim(*job_ids)
    finishes = [JobResult(fence_of(job), typed_result=AC)._replace(**fields) for job in claimed.done]
    assert len((await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, finishes))).done) == len(job_ids)


async def test_a_job_that_is_finished_as_failed_has_a_dead_letter_with_its_code(store: StoreHarness) -> None:
    (item,) = await store.submit()
    fields: dict[str, Any] = {"status": JobStatus.FAILED, "typed_result": Judgement(Verdict.SE), "reason": "failed"}
    await judge(store, item.job_id, **fields, error_code="JURY_FAULT", error="its checker crashed")
    (letter,) = await store.database.read(dead_letters.page)
    assert (letter.job_id, letter.error_code, letter.error) == (item.job_id, "JURY_FAULT", "its checker crashed")
    again = await store.transact(
        lambda tx: dead_letters.replay(tx, store.jobs, [letter.id], actor="ops", reason="fixed")
    )
    await judge(store, again[letter.id] or "")
    row = await store.row("SELECT status, verdict FROM submissions")
    assert (row["status"], row["verdict"]) == ("accepted", "AC")


async def batch_of(store: StoreHarness, count: int) -> tuple[RejudgeCommands, str, list[str]]:
    items = await store.submit(count)
    await judge(store, *(item.job_id for item in items))
    owner = (await store.row("SELECT DISTINCT user_id FROM submissions"))["user_id"]
    rejudging, batch_id = RejudgeCommands(store.jobs), new_id()
    batch = NewRejudgeBatch(batch_id, owner, RejudgeSelection(), VerdictPolicy.LATEST, RevisionChoice.PINNED, "again")
    await store.transact(lambda tx: rejudging.create(tx, batch))
    rows = await store.rows("SELECT id FROM jobs WHERE rejudge_batch_id = :id ORDER BY id", id=batch_id)
    return rejudging, batch_id, [row["id"] for row in rows]


async def state(store: StoreHarness) -> str:
    return str((await store.row("SELECT state FROM rejudge_batches"))["state"])


async def test_a_canceled_batch_is_never_ready(store: StoreHarness) -> None:
    """Its runs end while it is canceled: what its listeners see is a canceled batch."""
    seen: list[str] = []
    rejudging, batch_id, runs = await batch_of(store, 2)
    owner = store.jobs._listeners["judge"]

    class Watching:
        on_started, on_released = owner.on_started, owner.on_released

        async def on_finished(self, tx: object, ended: object) -> None:
            await owner.on_finished(tx, ended)  # type: ignore[arg-type]
            rows = await tx.fetch(rejudge_state)  # type: ignore[attr-defined]
            seen.extend(row["state"] for row in rows)

    rejudge_state = adhoc_statement("SELECT state FROM rejudge_batches")
    store.jobs._listeners = {**store.jobs._listeners, "judge": Watching()}
    await store.transact(lambda tx: rejudging.cancel(tx, batch_id, actor="ops", reason="no"))
    assert seen == ["canceled"]
    assert await state(store) == "canceled"
    assert {(await store.job(run))["status"] for run in runs} == {"canceled"}


async def test_an_applied_batch_cannot_be_canceled_while_a_replay_runs(store: StoreHarness) -> None:
    rejudging, batch_id, runs = await batch_of(store, 2)
    await judge(store, runs[0])
    await judge(store, runs[1], status=JobStatus.FAILED, typed_result=Judgement(Verdict.SE), error_code="JURY_FAULT")
    (letter,) = await store.database.read(dead_letters.page)
    await store.transact(lambda tx: rejudging.apply(tx, batch_id, actor="ops"))
    await store.transact(lambda tx: dead_letters.replay(tx, store.jobs, [letter.id], actor="ops", reason="fixed"))
    with pytest.raises(InvalidTransition):
        await store.transact(lambda tx: rejudging.cancel(tx, batch_id, actor="ops", reason="no"))
    assert await state(store) == "applied"


async def test_conflicts_met_when_a_batch_is_applied_are_counted(store: StoreHarness) -> None:
    rejudging, batch_id, runs = await batch_of(store, 2)
    await judge(store, *runs)
    await store.write(
        "UPDATE rejudge_items SET old_version = old_version - 1 "
        "WHERE submission_id = (SELECT min(submission_id) FROM rejudge_items)"
    )
    before = metric_value("submission_conflicts_total")
    with pytest.raises(Conflict):
        await store.transact(lambda tx: rejudging.apply(tx, batch_id, actor="ops"))
    assert metric_value("submission_conflicts_total") - before == 1
    done = await store.transact(lambda tx: rejudging.apply(tx, batch_id, actor="ops", skip_changed=True))
    assert (done.changed, done.skipped) == (1, 1)
    assert metric_value("submission_conflicts_total") - before == 2


async def failed_import(store: StoreHarness) -> tuple[str, str, str]:
    """An import that was given up; its id, its owner and its dead letter."""
    owner, import_id = new_id(), new_id()
    await store.transact(lambda tx: users.insert(tx, users.NewUser(owner, "setter")))
    new = NewImport(import_id, owner, archive_digest="0" * 64, file_name="sum.zip", requested={"publish": True})
    job_id = await store.transact(lambda tx: imports.insert(tx, store.jobs, new, timeout_ms=1_000))
    claimed = await store.claim(job_id)
    poison_job = JobResult(fence_of(claimed.done[0]), JobStatus.FAILED, error_code="STORAGE", error="away")
    await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [poison_job]))
    assert (await store.row("SELECT state FROM problem_imports"))["state"] == "failed"
    (letter,) = await store.database.read(dead_letters.page)
    return import_id, owner, letter.id


def imported(owner: str) -> ImportResult:
    problem, revision = new_id(), new_id()
    return ImportResult(
        problem=NewProblem(problem, "sum", "Sum", owner),
        revision=NewRevision(revision, problem, "plain", "0" * 64, owner),
        publish_after_import=True,
    )


async def test_replaying_an_import_opens_it_again_and_ends_it_with_its_revision(store: StoreHarness) -> None:
    import_id, owner, letter = await failed_import(store)
    made = await store.transact(lambda tx: dead_letters.replay(tx, store.jobs, [letter], actor="ops", reason="fixed"))
    row = await store.database.read(lambda tx: imports.find(tx, import_id))
    assert (row.state, row.job_id, row.error) == ("pending", made[letter], None)
    await judge(store, made[letter] or "", typed_result=imported(owner))
    row = await store.database.read(lambda tx: imports.find(tx, import_id))
    assert (row.state, row.slug, row.revision) == ("succeeded", "sum", 1)


async def test_a_job_of_an_import_that_was_decided_publishes_nothing(store: StoreHarness) -> None:
    import_id, owner, _ = await failed_import(store)
    late = await store.enqueue("import", payload={"import_id": import_id})
    await judge(store, late, typed_result=imported(owner))
    assert await store.rows("SELECT id FROM problem_revisions") == []
    assert (await store.row("SELECT state FROM problem_imports"))["state"] == "failed"


async def test_retention_deletes_the_jobs_of_executions_with_all_that_belongs_to_them(store: StoreHarness) -> None:
    owner, execution_id = new_id(), new_id()
    await store.transact(lambda tx: users.insert(tx, users.NewUser(owner, "person")))
    job_id = await store.enqueue("execute", payload={"execution_id": execution_id})
    await store.write(
        "INSERT INTO executions (id, user_id, job_id, language, source, limits, created_at, expires_at) "
        "VALUES (:id, :user, :job, 'cpp', 'x', '{}', 0, 1)",
        id=execution_id,
        user=owner,
        job=job_id,
    )
    kept, waiting = await store.enqueue("sturdy"), await store.enqueue("webhook")
    claimed = await store.claim(job_id)
    failed = JobResult(fence_of(claimed.done[0]), JobStatus.FAILED, error_code="EXECUTION_FAULT")
    await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [failed]))
    (letter,) = await store.database.read(dead_letters.page)
    made = await store.transact(lambda tx: store.jobs.replay(tx, [letter.id], actor="ops", note="again"))
    await judge(store, made[letter.id] or "", typed_result=None)
    assert await store.transact(executions.delete_expired) == 1
    await store.clock.advance(ms=10_000)
    delete = partial(retention.delete_orphaned, position=None, older_than_ms=60_000)
    assert await store.transact(delete) == (0, None)
    await store.clock.advance(ms=60_000)
    counts = [(await store.transact(delete))[0] for _ in range(3)]
    assert counts == [1, 1, 0], "the replay first, then what it replayed"
    assert {row["id"] for row in await store.rows("SELECT id FROM jobs")} == {kept, waiting}
    for table in ("outbox", "job_status_log", "job_attempts", "dead_letters"):
        rows = await store.rows(f"SELECT job_id FROM {table}")
        assert {row["job_id"] for row in rows} <= {kept, waiting}, table


async def test_an_old_version_is_a_conflict_even_if_the_submission_has_ended_meanwhile(store: StoreHarness) -> None:
    (item,) = await store.submit()
    row = await store.row("SELECT version FROM submissions")
    await judge(store, item.job_id)
    before = metric_value("submission_conflicts_total")
    with pytest.raises(Conflict):
        await store.transact(
            lambda tx: store.submissions.change_status(
                tx, item.submission_id, version=row["version"], status="judging", actor="ops", reason="late"
            )
        )
    assert metric_value("submission_conflicts_total") - before == 1
    now = (await store.row("SELECT version FROM submissions"))["version"]
    with pytest.raises(InvalidTransition):
        await store.transact(
            lambda tx: store.submissions.change_status(
                tx, item.submission_id, version=now, status="judging", actor="ops", reason="late"
            )
        )
