"""One simulated contest: submissions arrive, workers judge, everything goes wrong, then it must come to rest."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any

from adjudge.domain.errors import InvalidTransition, Unavailable
from adjudge.domain.retry import RetryPolicy
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.relay.patrol import Reconciler, Watchdog, patrol
from adjudge.relay.pump import Pump
from adjudge.store import problems, users
from adjudge.store.driver import Operation, Tx
from adjudge.store.job_values import Job
from adjudge.store.jobs import Jobs
from adjudge.store.submissions import JUDGE, Judgement, JudgeRunOwner, NewSubmission, Submissions
from adjudge.stream.driver import Message
from adjudge.worker.handler import Completion
from adjudge.worker.loop import Worker, WorkerSettings
from tests.simulation.world import Door, Odds, Pipe, Process, World

VERDICTS = (Verdict.AC, Verdict.WA, Verdict.TLE, Verdict.RE, Verdict.CE)
WORKERS = 3
SUBMISSIONS = 24
FAULTS_UNTIL_S = 60.0
REST_S = 400.0
_PERSON, _PROBLEM, _REVISION = "person", "problem", "revision"


def oracle(submission_id: str) -> Verdict:
    """What every judge must say of a submission."""
    return VERDICTS[int(submission_id[:8]) % len(VERDICTS)]


def is_poison(submission_id: str) -> bool:
    """Some submissions break whatever judges them, every time: they must end in the dead letters."""
    return int(submission_id[:8]) % 11 == 3


class Oracle:
    """A judge that takes a while and is never wrong."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def run(self, job: Job) -> Completion:
        world = self._process.world
        # Most are quick; one in three takes long enough for a zombie to wake while its successor is at work.
        await asyncio.sleep(world.random.random() * (4 if world.random.random() < 0.7 else 25))
        await self._process.still_here()
        submission_id = str(job.submission_id)
        if is_poison(submission_id) or world.unlucky(0.03):
            raise RuntimeError("the sandbox broke")
        verdict = oracle(submission_id)
        return Completion(JobStatus.SUCCEEDED, {"attempt_id": job.attempt_id}, Judgement(verdict, time_ms=1, mem_kb=1))

    def needs(self, _: Mapping[str, Any]) -> tuple[str, ...]:
        return ()


class WatchedWorker(Worker):
    """A worker that lets the world know which message each attempt was won by."""

    world: World

    def _start(self, job: Job, message: Message | None, claimed_at: float) -> None:
        if message is not None:
            self.world.won_by[self._settings.name, job.id, job.attempt_id] = (message.band, message.entry_id)
        super()._start(job, message, claimed_at)


class Scenario:
    """Everything that happens for one seed."""

    def __init__(self, seed: int, template: sqlite3.Connection, odds: Odds | None = None) -> None:
        self.world = World(seed, template, odds or Odds())
        self.jobs = Jobs({JUDGE: JudgeRunOwner()}, mint=self.world.mint, random_unit=self.world.random.random)
        self.submissions = Submissions(self.jobs, mint=self.world.mint)
        self.workers: list[Process] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._started = 0

    async def run(self) -> None:
        world = self.world
        await self._set_up()
        for _ in range(WORKERS):
            self._start_worker()
        for number in (1, 2):
            self._start_scheduler(f"scheduler-{number}")
        self._spawn(self._people())
        self._spawn(self._misfortune())
        await asyncio.sleep(FAULTS_UNTIL_S)
        world.calm = True
        if not any(worker.alive for worker in self.workers):
            self._start_worker()
        deadline = world.loop.time() + REST_S
        while world.loop.time() < deadline and not self.at_rest():
            await asyncio.sleep(1)

    def at_rest(self) -> bool:
        """Whether nothing is left to do."""
        busy = self.world.query("SELECT count(*) AS n FROM jobs WHERE finished_at IS NULL")[0]["n"]
        unsent = self.world.query("SELECT count(*) AS n FROM outbox WHERE state = 'pending'")[0]["n"]
        return busy == 0 and unsent == 0 and not self._messages()

    def _messages(self) -> int:
        return sum(len(band.entries) for band in self.world.stream._bands.values())

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = self.world.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.world.violations.append(f"a process died of {error!r}")

    async def _set_up(self) -> None:
        async def create(tx: Tx) -> None:
            await users.add(tx, users.NewUser(_PERSON, "person"))
            await problems.add(tx, problems.NewProblem(_PROBLEM, "sum", "Sum", _PERSON))
            await problems.add_revision(tx, problems.NewRevision(_REVISION, _PROBLEM, "plain", "digest", _PERSON))

        Door(Process(self.world, "setup"))._commit(create)

    def _start_worker(self) -> None:
        self._started += 1
        process = Process(self.world, f"worker-{self._started}")
        settings = WorkerSettings(process.name, slots=2, drain_grace_ms=5_000, retry=RetryPolicy())
        worker = WatchedWorker(
            Door(process),
            self.jobs,
            Pipe(process),
            {JUDGE: Oracle(process)},
            settings,
            random_unit=self.world.random.random,
        )
        worker.world = self.world
        self.workers.append(process)
        self._spawn(worker.run())

    def _start_scheduler(self, name: str) -> None:
        process = Process(self.world, name)
        door, pipe = Door(process), Pipe(process)
        self._spawn(Pump(door, self.jobs, pipe, name=name).run())
        self._spawn(patrol(Watchdog(door, self.jobs, name=name).tick, every_ms=2_000))
        self._spawn(patrol(Reconciler(door, self.jobs, pipe, name=name).tick, every_ms=5_000))

    async def _people(self) -> None:
        """Submit, and now and then think better of it."""
        door = Door(Process(self.world, "api"))
        for _ in range(SUBMISSIONS):
            await asyncio.sleep(self.world.random.random() * 2)
            new = NewSubmission(self.world.mint(), _PERSON, _PROBLEM, _REVISION, "cpp", "digest", 1)
            await _insist(door, partial(self._submit_once, new))
            if self.world.random.random() < 0.1:
                await asyncio.sleep(self.world.random.random() * 3)
                await _insist(door, partial(self._cancel, new.id))

    async def _cancel(self, submission_id: str, tx: Tx) -> None:
        await self.submissions.cancel(tx, submission_id, actor=_PERSON, reason="changed my mind")

    async def _submit_once(self, new: NewSubmission, tx: Tx) -> None:
        """What an idempotency key does for a client that did not hear the answer."""
        if not self.world.query("SELECT 1 FROM submissions WHERE id = ?", new.id):
            await self.submissions.submit(tx, [new])

    async def _misfortune(self) -> None:
        world = self.world
        while world.loop.time() < FAULTS_UNTIL_S - 5:
            await asyncio.sleep(world.random.random() * 8)
            living = [worker for worker in self.workers if worker.alive]
            draw = world.random.random()
            if draw < 0.35 and living:
                world.random.choice(living).crash()
                self._start_worker()
            elif draw < 0.7 and living:
                world.random.choice(living).freeze(world.random.uniform(1, 30))
            elif draw < 0.85:
                world.stream.flush()


async def _insist(door: Door, operation: Operation[None]) -> None:
    """What a careful client does: try again what may not have happened; the second time finds it done."""
    while True:
        try:
            await door.transact(operation)
        except Unavailable:
            await asyncio.sleep(0.1)
        except InvalidTransition:
            return
        else:
            return
