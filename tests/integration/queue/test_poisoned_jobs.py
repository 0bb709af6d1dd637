"""A job whose claim, handler or finish fails stops neither its worker nor other jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from adjudge.domain.failure_class import JURY_FAULT
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.store import Tx
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Job
from adjudge.store.judging.commands import JOB_KIND_JUDGE, JudgeRunListener
from adjudge.store.judging.models import Judgement
from adjudge.worker.handler import HandlerResult
from tests.integration.queue.conftest import QUICK, QueueHarness

_ONE_ATTEMPT = Statement("test.one_attempt", "Leave jobs one attempt.", "UPDATE jobs SET max_attempts = 1")
_DEADLINE = Statement("test.deadline", "Give jobs a short deadline.", "UPDATE jobs SET timeout_ms = 20")


class FailsOnClaim(JudgeRunListener):
    """Fails when certain jobs are claimed."""

    def __init__(self) -> None:
        super().__init__()
        self.poison: set[str] = set()

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        if self.poison.intersection(job.id for job in jobs):
            raise KeyError("a bug")
        await super().on_started(tx, jobs)


async def test_a_job_that_cannot_be_claimed_is_set_aside_and_the_others_run(queue: QueueHarness) -> None:
    owner = FailsOnClaim()
    queue.jobs = JobCommands({JOB_KIND_JUDGE: owner}, policy=QUICK)
    submissions = await queue.submit(5)
    rows = await queue.rows("SELECT id, submission_id FROM jobs ORDER BY id")
    owner.poison = {rows[0]["id"]}
    async with queue.worker(slots=8), queue.scheduler():

        async def given_up() -> bool:
            return bool(await queue.rows("SELECT id FROM jobs WHERE error_code = 'LISTENER_FAILED'"))

        await queue.until(given_up, "the poisoned job is a dead letter")

        async def others() -> bool:
            done = await queue.rows("SELECT id FROM submissions WHERE status = 'accepted'")
            return len(done) == len(submissions) - 1

        await queue.until(others, "its neighbours are judged")
        (letter,) = await queue.database.read(dead_letters.page)
        assert letter.job_id == rows[0]["id"]
        owner.poison = set()  # the bug is fixed, and the dead letter replayed
        await queue.database.transact(
            lambda tx: dead_letters.replay(tx, queue.jobs, [letter.id], actor="ops", reason="fixed")
        )
        decided = await queue.until_decided(submissions)
    assert set(decided.values()) == {("accepted", "AC")}


async def test_a_broken_checker_fails_the_run_with_a_dead_letter_and_its_own_code(queue: QueueHarness) -> None:
    """Only infrastructure failures are retried; a jury failure has its own error code."""

    async def broken(_: Job) -> HandlerResult:
        return HandlerResult(JobStatus.FAILED, {}, Judgement(Verdict.SE), JURY_FAULT, "its checker crashed")

    queue.handler.act = broken
    async with queue.scheduler(), queue.worker():
        (submission,) = await queue.submit()
        assert await queue.until_decided([submission]) == {submission: ("error", "SE")}
        (job,) = await queue.rows("SELECT status, attempt_id, reason, error_code, error FROM jobs")
        assert (job["status"], job["attempt_id"], job["reason"]) == ("failed", 1, "failed")
        assert (job["error_code"], job["error"]) == ("JURY_FAULT", "its checker crashed")
        (letter,) = await queue.database.read(dead_letters.page)
        queue.handler.act = queue.handler._accept
        await queue.database.transact(
            lambda tx: dead_letters.replay(tx, queue.jobs, [letter.id], actor="ops", reason="fixed")
        )

        async def accepted() -> bool:
            return bool(await queue.rows("SELECT id FROM submissions WHERE verdict = 'AC'"))

        await queue.until(accepted, "the replay gives the verdict")


async def test_a_timeout_of_the_handler_itself_is_kept_as_it_was_raised(queue: QueueHarness) -> None:
    async def times_out(_: Job) -> HandlerResult:
        raise TimeoutError("the storage did not answer")

    queue.handler.act = times_out
    (submission,) = await queue.submit()
    await queue.database.transact(lambda tx: tx.execute(_ONE_ATTEMPT))
    async with queue.scheduler(), queue.worker():
        assert await queue.until_decided([submission]) == {submission: ("error", "SE")}
    (letter,) = await queue.database.read(dead_letters.page)
    assert letter.error == "TimeoutError: the storage did not answer"


async def test_a_job_that_outlives_its_deadline_is_killed_and_ends(queue: QueueHarness) -> None:
    """Its worker lives and renews its lease: without the deadline the job would run for ever."""
    killed = 0

    async def hangs(_: Job) -> HandlerResult:
        nonlocal killed
        try:
            await asyncio.Event().wait()
        finally:
            killed += 1
        return HandlerResult()

    queue.handler.act = hangs
    (submission,) = await queue.submit()
    await queue.database.transact(lambda tx: tx.execute(_DEADLINE))
    async with queue.scheduler(), queue.worker():
        assert await queue.until_decided([submission]) == {submission: ("error", "SE")}
    assert killed == 4, "every attempt was killed"
    (letter,) = await queue.database.read(dead_letters.page)
    assert "outlived its deadline of 20 ms" in (letter.error or "")
