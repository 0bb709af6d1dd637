"""Progress: the latest report of each job, in one transaction, by the worker that still holds the job."""

from __future__ import annotations

from adjudge.domain.errors import Unavailable
from adjudge.domain.problem import Case, Feedback, Group, PackageFormat, Problem
from adjudge.domain.verdict import Verdict
from adjudge.judge.case_results import CaseResult
from adjudge.judge.pipeline import CaseDone
from adjudge.store.jobs import progress
from adjudge.store.jobs.models import Job, JobResult
from adjudge.worker.handlers.judge import JudgeProgressReporter
from adjudge.worker.handlers.progress import MAX_STEPS, ProgressWriter
from tests.support.store_harness import StoreHarness, fence_of


async def test_latest_progress_of_all_jobs_is_written_in_one_batch(store: StoreHarness) -> None:
    ids = await store.enqueue_many(3)
    jobs = (await store.claim(*ids, worker="w1")).done
    board = ProgressWriter(store.database, worker="w1")
    for job in jobs:
        reporter = board.reporter(job)
        for number in range(1, MAX_STEPS + 9):
            reporter.report("testing", number, 100, step={"name": str(number)})
    await board.flush()
    found = await store.database.read(lambda tx: progress.find_by_jobs(tx, ids))
    assert {(item.stage, item.done, item.total) for item in found.values()} == {("testing", MAX_STEPS + 8, 100)}
    assert [case["name"] for case in found[ids[0]].cases][-1] == str(MAX_STEPS + 8)
    assert len(found[ids[0]].cases) == MAX_STEPS


async def test_finished_attempt_reports_no_progress(store: StoreHarness) -> None:
    (job_id,) = await store.enqueue_many(1)
    (job,) = (await store.claim(job_id, worker="w1")).done
    board = ProgressWriter(store.database, worker="w1")
    board.reporter(job).report("testing", 1, 2)
    await board.flush()
    await store.clock.advance(ms=16_000)
    (again,) = (await store.transact(lambda tx: store.jobs.claim(tx, [job_id], worker="w2", lease_ms=15_000))).done
    board.reporter(job).report("testing", 2, 2)
    await board.flush()
    found = await store.database.read(lambda tx: progress.find_by_jobs(tx, [job_id]))
    assert (found[job_id].attempt_id, found[job_id].done) == (1, 1)
    await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [JobResult(fence_of(again))]))
    await store.clock.advance(ms=60_000)
    assert await store.transact(lambda tx: progress.delete_old(tx, older_than_ms=1_000)) == 1


async def test_unavailable_database_loses_only_a_progress_report(sqlite_store: StoreHarness) -> None:
    fence_holder = await sqlite_store.enqueue_many(1)
    (job,) = (await sqlite_store.claim(*fence_holder, worker="w1")).done

    class Away:
        async def transact(self, _: object) -> None:
            raise Unavailable

    board = ProgressWriter(Away(), worker="w1")  # type: ignore[arg-type]  # it is away
    board.reporter(job).report("testing")
    await board.flush()


def test_progress_shows_authors_what_the_result_will_show() -> None:
    groups = (
        Group(""),
        Group("open", feedback=Feedback.COMPLETE),
        Group("shut", feedback=Feedback.NONE),
        Group("first"),
    )
    names = [
        ("s", "", True),
        ("o", "open", False),
        ("n", "shut", False),
        ("f1", "first", False),
        ("f2", "first", False),
    ]
    cases = tuple(Case(name, group, f"{name}.in", is_sample=sample) for name, group, sample in names)
    problem = Problem("p", PackageFormat("plain"), cases=cases, groups=groups)
    steps: list[tuple[str, bool]] = []

    class Reporter:
        def report(self, stage: str, done: int = 0, total: int = 0, *, step: object = None) -> None:
            assert isinstance(step, dict)
            steps.append((step["name"], step["shown"]))

    watched = JudgeProgressReporter(problem, Reporter(), Job(**dict.fromkeys(Job._fields)))  # type: ignore[arg-type]
    for index, case in enumerate(cases):
        watched(CaseDone(CaseResult(case.name, case.group, Verdict.WA, case.is_sample), index, len(cases)))
    assert steps == [("s", True), ("o", True), ("n", False), ("f1", True), ("f2", False)]
