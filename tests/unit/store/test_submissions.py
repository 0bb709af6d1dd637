"""Submissions: written by version, in step with their judge runs, on both databases."""

from __future__ import annotations

import pytest

from adjudge.domain.errors import Conflict, InvalidInput, InvalidStatus, InvalidTransition, NotFound
from adjudge.domain.states import JobStatus, SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.store.jobs.models import JobResult, PoisonJob
from adjudge.store.judging import commands as submission_commands
from adjudge.store.judging.models import CaseResultRow, Judgement, SubmissionIds, SubmissionUpdate
from tests.support.store_harness import StoreHarness, fence_of, metric_value


async def current(store: StoreHarness, item: SubmissionIds) -> tuple[object, ...]:
    row = await store.row("SELECT * FROM submissions WHERE id = :id", id=item.submission_id)
    return row["status"], row["verdict"], row["version"]


async def judge(store: StoreHarness, item: SubmissionIds, verdict: Verdict = Verdict.AC) -> None:
    (job,) = (await store.claim(item.job_id)).done
    cases = tuple(CaseResultRow(f"test {n}", verdict, 10, 12, 1_024, score=0.5) for n in (1, 2))
    outcome = Judgement(verdict, score=0.5, time_ms=10, mem_kb=1_024, cases=cases)
    await store.transact(
        lambda tx: store.jobs.finish_and_claim_next(tx, [JobResult(fence_of(job), typed_result=outcome)])
    )


async def set_status(
    store: StoreHarness, item: SubmissionIds, version: int, status: str, verdict: str | None = None
) -> int:
    return await store.transact(
        lambda tx: store.submissions.change_status(
            tx, item.submission_id, version=version, status=status, actor="ops", reason="by hand", verdict=verdict
        )
    )


async def test_submission_job_and_outbox_row_appear_together(store: StoreHarness) -> None:
    items = await store.submit(3)
    jobs = await store.rows("SELECT id, submission_id, status FROM jobs")
    assert {(row["submission_id"], row["id"]) for row in jobs} == {(i.submission_id, i.job_id) for i in items}
    assert (await store.row("SELECT count(*) AS n FROM outbox WHERE state = 'pending'"))["n"] == 3


@pytest.mark.parametrize("verdict", list(Verdict))
async def test_a_verdict_its_tests_and_the_status_appear_together(store: StoreHarness, verdict: Verdict) -> None:
    (item,) = await store.submit()
    await judge(store, item, verdict)
    assert await current(store, item) == (verdict.status, verdict, 3)
    cases = await store.rows("SELECT * FROM case_results ORDER BY ordinal")
    assert [(case["name"], case["verdict"]) for case in cases] == [("test 1", verdict), ("test 2", verdict)]
    log = await store.rows("SELECT * FROM submission_status_log ORDER BY id")
    assert [(row["from_status"], row["to_status"], row["version"], row["actor"]) for row in log] == [
        ("pending", "judging", 2, "w1"),
        ("judging", verdict.status, 3, "w1"),
    ]


async def test_a_submission_stays_judging_while_its_run_is_retried(store: StoreHarness) -> None:
    (item,) = await store.submit()
    (job,) = (await store.claim(item.job_id)).done
    await store.transact(
        lambda tx: store.jobs.finish_and_claim_next(tx, [JobResult(fence_of(job), JobStatus.PENDING, reason="again")])
    )
    assert await current(store, item) == ("judging", None, 2)
    await judge(store, item)
    assert await current(store, item) == ("accepted", "AC", 3)


async def test_dead_letter_of_an_unclaimed_run_gives_a_system_error(store: StoreHarness) -> None:
    (item,) = await store.submit()
    await store.transact(
        lambda tx: store.jobs.dead_letter(tx, [PoisonJob(item.job_id, "POISON", "bad")], actor="relay")
    )
    assert await current(store, item) == ("error", "SE", 3)


async def test_replayed_run_gives_the_verdict_of_the_dead_lettered_one(store: StoreHarness) -> None:
    (item,) = await store.submit()
    await store.transact(
        lambda tx: store.jobs.dead_letter(tx, [PoisonJob(item.job_id, "POISON", "bad")], actor="relay")
    )
    letter = (await store.row("SELECT id FROM dead_letters"))["id"]
    made = await store.transact(lambda tx: store.jobs.replay(tx, [letter], actor="ops", note="fixed"))
    await judge(store, SubmissionIds(item.submission_id, made[letter] or "", item.number))
    assert await current(store, item) == ("accepted", "AC", 4)


async def test_canceling_a_submission_cancels_its_run(store: StoreHarness) -> None:
    (item,) = await store.submit()
    await store.transact(lambda tx: store.submissions.cancel(tx, item.submission_id, actor="ada", reason="typo"))
    assert await current(store, item) == ("canceled", None, 2)
    assert (await store.job(item.job_id))["status"] == JobStatus.CANCELED
    with pytest.raises(InvalidTransition):
        await store.transact(lambda tx: store.submissions.cancel(tx, item.submission_id, actor="ada", reason="again"))
    with pytest.raises(NotFound) as missing:
        await store.transact(lambda tx: store.submissions.cancel(tx, "nobody", actor="ada", reason="typo"))
    assert missing.value.code == "SUBMISSION_NOT_FOUND"


async def test_manual_change_is_rejected_with_a_code_for_each_mistake(store: StoreHarness) -> None:
    (item,) = await store.submit()
    conflicts = metric_value("submission_conflicts_total")
    with pytest.raises(InvalidStatus):
        await set_status(store, item, 1, "done")
    with pytest.raises(InvalidTransition):
        await set_status(store, item, 1, "accepted", "AC")
    with pytest.raises(Conflict):
        await set_status(store, item, 7, "judging")
    assert metric_value("submission_conflicts_total") == conflicts + 1
    with pytest.raises(InvalidInput, match="leave it out"):
        await set_status(store, item, 1, "judging", "AC")
    assert await set_status(store, item, 1, "judging") == 2
    with pytest.raises(InvalidInput, match="give one of PA, WA"):
        await set_status(store, item, 2, "wrong_answer", "AC")
    assert await current(store, item) == ("judging", None, 2)


async def test_manual_verdict_finishes_the_run_and_is_kept(store: StoreHarness) -> None:
    (item,) = await store.submit()
    await set_status(store, item, 1, "judging")
    assert await set_status(store, item, 2, "error", "RE") == 3
    assert await current(store, item) == ("error", "RE", 3)
    assert (await store.job(item.job_id))["status"] == "canceled"


async def test_two_changes_of_one_version_are_one_conflict(store: StoreHarness) -> None:
    (item,) = await store.submit()
    change = SubmissionUpdate(item.submission_id, 1, SubmissionStatus.JUDGING, "a", "first")
    await store.transact(lambda tx: submission_commands.update(tx, [change]))
    with pytest.raises(Conflict):
        await store.transact(lambda tx: submission_commands.update(tx, [change]))
    assert await current(store, item) == ("judging", None, 2)


async def test_transitions_of_submissions_are_counted_once_committed(store: StoreHarness) -> None:
    (item,) = await store.submit()
    labels = {"from": "pending", "to": "judging"}
    before = metric_value("submission_status_transitions_total", **labels)
    await store.claim(item.job_id)
    assert metric_value("submission_status_transitions_total", **labels) == before + 1


RAW_CHANGES = {
    "no version": "UPDATE submissions SET reason = 'x'",
    "version jumps": "UPDATE submissions SET version = version + 2, reason = 'x'",
    "version falls": "UPDATE submissions SET version = version - 1",
    "verdict rewritten": "UPDATE submissions SET verdict = 'AC', version = version + 1",
    "back to judging": (
        "UPDATE submissions SET status = 'judging', verdict = NULL, finished_at = NULL, version = version + 1"
    ),
}


@pytest.mark.parametrize("sql", RAW_CHANGES.values(), ids=RAW_CHANGES.keys())
async def test_terminal_submission_rejects_manual_sql(store: StoreHarness, sql: str) -> None:
    (item,) = await store.submit()
    await judge(store, item, Verdict.WA)
    with pytest.raises(InvalidTransition):
        await store.write(sql)
    assert await current(store, item) == ("wrong_answer", "WA", 3)
