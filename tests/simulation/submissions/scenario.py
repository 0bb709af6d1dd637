"""A simulated contest: submissions arrive, workers judge."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from adjudge.domain.states import JobStatus
from adjudge.store.accounts import users
from adjudge.store.engine.driver import Tx
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import FinishedJob, Job
from adjudge.store.judging.commands import JOB_KIND_JUDGE, JudgeRunListener, SubmissionCommands
from adjudge.store.judging.models import Judgement, NewSubmission
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import models as problem_models
from adjudge.worker.handler import Handler, HandlerResult
from tests.simulation.checker import job_trace
from tests.simulation.scenario import Scenario, retry_until_known
from tests.simulation.submissions import checker
from tests.simulation.submissions.oracle import is_poison, oracle
from tests.simulation.world import Process, SimulatedDatabase

SUBMISSIONS = 24
_FAILING = 4
"""Which of the submissions has a job whose listener always fails, or the next one that can be judged."""
_PERSON, _PROBLEM, _REVISION = "person", "problem", "revision"


class OracleHandler:
    """Takes a while and is never wrong."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def run(self, job: Job) -> HandlerResult:
        world = self._process.world
        # Most are quick; one in three takes long enough for a zombie to wake while its successor is at work.
        await asyncio.sleep(world.random.random() * (4 if world.random.random() < 0.7 else 25))
        await self._process.still_here()
        submission_id = str(job.submission_id)
        if is_poison(submission_id) or world.should_fail(0.03):
            raise RuntimeError("the sandbox broke")
        verdict = oracle(submission_id)
        return HandlerResult(
            JobStatus.SUCCEEDED, {"attempt_id": job.attempt_id}, Judgement(verdict, time_ms=1, mem_kb=1)
        )

    def limit_keys(self, _: Mapping[str, Any]) -> tuple[str, ...]:
        return ()


class FailingListener(JudgeRunListener):
    """Fails whenever it is called for certain submissions: from the start of their jobs on, or later."""

    def __init__(self, failing: set[str], *, at_start: bool) -> None:
        super().__init__()
        self._failing = failing
        self._at_start = at_start

    def _check(self, jobs: Sequence[Job]) -> None:
        if found := self._failing.intersection(str(job.submission_id) for job in jobs):
            raise KeyError(f"the listener fails for {sorted(found)}")

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        if self._at_start:
            self._check(jobs)
        await super().on_started(tx, jobs)

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        self._check(jobs)
        await super().on_released(tx, jobs)

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        self._check([item.job for item in ended])
        await super().on_finished(tx, ended)


class SubmissionScenario(Scenario):
    """Jobs of kind ``judge``."""

    kind: ClassVar[str] = "judge"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.failing: set[str] = set()
        """The submission whose jobs' listener always fails."""

    def make_jobs(self) -> JobCommands:
        owner = FailingListener(self.failing, at_start=self.world.seed % 2 == 0)
        return JobCommands({JOB_KIND_JUDGE: owner}, new_id=self.world.new_id, random_unit=self.world.random.random)

    def may_stay_held(self, job_id: str) -> bool:
        (row,) = self.world.query("SELECT submission_id FROM jobs WHERE id = ?", job_id)
        return row["submission_id"] in self.failing

    async def create(self, tx: Tx) -> None:
        await users.insert(tx, users.NewUser(_PERSON, "person"))
        await problem_commands.insert(tx, problem_models.NewProblem(_PROBLEM, "sum", "Sum", _PERSON))
        await problem_commands.add_revision(
            tx, problem_models.NewRevision(_REVISION, _PROBLEM, "plain", "digest", _PERSON)
        )

    def equip(self, process: Process) -> tuple[JobCommands, Mapping[str, Handler]]:
        return self.make_jobs(), {JOB_KIND_JUDGE: OracleHandler(process)}

    async def operators(self) -> None:
        """Submit, and now and then think better of it."""
        database, submissions = (
            SimulatedDatabase(Process(self.world, "api")),
            SubmissionCommands(self.make_jobs(), new_id=self.world.new_id),
        )
        for number in range(SUBMISSIONS):
            await asyncio.sleep(self.world.random.random() * 2)
            new = NewSubmission(self.world.new_id(), _PERSON, _PROBLEM, _REVISION, "cpp", "digest", 1)
            if number >= _FAILING and not self.failing and not is_poison(new.id):
                self.failing.add(new.id)
            await retry_until_known(database, partial(self._submit_once, submissions, new))
            if self.world.random.random() < 0.1 and new.id not in self.failing:
                await asyncio.sleep(self.world.random.random() * 3)
                await retry_until_known(database, partial(_cancel, submissions, new.id))

    async def _submit_once(self, submissions: SubmissionCommands, new: NewSubmission, tx: Tx) -> None:
        """What an idempotency key does for a client that did not hear the answer."""
        if not self.world.query("SELECT 1 FROM submissions WHERE id = ?", new.id):
            await submissions.submit(tx, [new])

    def check(self) -> list[str]:
        return checker.check(self, self.failing)

    def trace(self) -> list[str]:
        return job_trace(self)


async def _cancel(submissions: SubmissionCommands, submission_id: str, tx: Tx) -> None:
    await submissions.cancel(tx, submission_id, actor=_PERSON, reason="changed my mind")
