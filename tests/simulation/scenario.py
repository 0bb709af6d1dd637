"""One simulated scenario: users submit work, workers do it, faults are injected, then the system becomes idle.

What kind of work there is, a kind of scenario says (``judging``, ``chains``); how it is disturbed is said here.
"""

from __future__ import annotations

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from adjudge.domain.errors import Conflict, InvalidTransition, Unavailable
from adjudge.domain.retry import RetryPolicy
from adjudge.relay.dispatcher import Dispatcher
from adjudge.relay.periodic import run_periodically
from adjudge.relay.reconciler import Reconciler
from adjudge.relay.watchdog import Watchdog
from adjudge.store.engine.driver import Operation, Tx
from adjudge.store.jobs.commands import JobCommands
from adjudge.worker.handler import Handler
from adjudge.worker.leases import LeaseKeeper
from adjudge.worker.runner import Runner
from adjudge.worker.slots import Claim
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions
from tests.simulation.world import FaultProbabilities, Process, SimulatedDatabase, SimulatedStream, World

WORKERS = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """Intervals and delays of a scenario. Longer ones only cost time."""

    faults_until_s: float = 60.0
    fault_every_s: float = 8.0
    """At most so far apart."""
    frozen_s: tuple[float, float] = (1.0, 30.0)
    """For how long: beyond the lease, so that zombies wake."""
    rest_s: float = 400.0
    """How long it may take to come to rest once nothing goes wrong any more."""
    lease_ms: int = 15_000
    heartbeat_ms: int = 4_000


def watch(runner: Runner, world: World) -> None:
    """Let the world know which attempts a worker began, and which message each was won by."""
    start = runner.start

    def watched(claims: Sequence[Claim]) -> None:
        for job, fence, _, _, message, _ in claims:
            attempt = (fence.lease_owner, job.id, job.attempt_id)
            if message is not None:
                world.won_by[attempt] = (message.band, message.entry_id)
            world.started.add(attempt)
        start(claims)

    runner.start = watched  # type: ignore[method-assign]


class Scenario(ABC):
    """Everything that happens for one seed."""

    kind: ClassVar[str]
    tempo: ClassVar[Timing] = Timing()
    slots: ClassVar[int] = 2

    def __init__(self, seed: int, template: sqlite3.Connection, odds: FaultProbabilities | None = None) -> None:
        self.world = World(seed, template, odds or FaultProbabilities())
        self.workers: list[Process] = []
        self._drainable: dict[str, Worker] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._started = 0

    @abstractmethod
    def make_jobs(self) -> JobCommands:
        """Jobs, with the owners of the kind's, as each process has its own."""

    @abstractmethod
    async def create(self, tx: Tx) -> None:
        """Write the initial rows of the scenario."""

    @abstractmethod
    def equip(self, process: Process) -> tuple[JobCommands, Mapping[str, Handler]]:
        """What a worker ends jobs by, and what it runs them by."""

    def may_stay_held(self, job_id: str) -> bool:
        """Whether a drained worker may leave a claimed job to the watchdog, because its listener fails."""
        return False

    def schedulers(self) -> int:
        """How many there are: any number is safe together."""
        return 2

    @abstractmethod
    async def operators(self) -> None:
        """Want things, and now and then think better of it."""

    @abstractmethod
    def check(self) -> list[str]:
        """Every violation found, in words."""

    @abstractmethod
    def trace(self) -> list[str]:
        """What happened, line by line: the same for the same seed."""

    async def run(self) -> None:
        """Play until all is quiet, or ought to be."""
        world = self.world
        SimulatedDatabase(Process(world, "setup")).commit(self.create)
        for _ in range(WORKERS):
            self._start_worker()
        for number in range(self.schedulers()):
            self.start_scheduler(f"scheduler-{number + 1}")
        self.spawn(self.operators())
        self.spawn(self._inject_faults())
        await asyncio.sleep(self.tempo.faults_until_s)
        world.calm = True
        if not any(worker.alive for worker in self.workers):
            self._start_worker()
        deadline = world.loop.time() + self.tempo.rest_s
        while world.loop.time() < deadline and not self.is_idle():
            await asyncio.sleep(1)

    def is_idle(self) -> bool:
        """Whether nothing is left to do."""
        busy = self.world.query("SELECT count(*) AS n FROM jobs WHERE finished_at IS NULL")[0]["n"]
        unsent = self.world.query("SELECT count(*) AS n FROM outbox WHERE state = 'pending'")[0]["n"]
        return busy == 0 and unsent == 0 and not self._messages()

    def _messages(self) -> int:
        return sum(len(band.entries) for band in self.world.stream._bands.values())

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Let something go on by itself; should it die, that is a violation."""
        task = self.world.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.world.violations.append(f"a process died of {error!r}")

    def _start_worker(self) -> None:
        self._started += 1
        process = Process(self.world, f"worker-{self._started}")
        settings = WorkerOptions(
            process.name,
            slots=self.slots,
            lease_ms=self.tempo.lease_ms,
            heartbeat_ms=self.tempo.heartbeat_ms,
            retry=RetryPolicy(),
        )
        database, (jobs, handlers) = SimulatedDatabase(process), self.equip(process)
        keeper = LeaseKeeper(
            database, jobs, lease_ms=settings.lease_ms, heartbeat_ms=settings.heartbeat_ms, clock=process.clock
        )
        worker = Worker(
            database,
            jobs,
            SimulatedStream(process),
            handlers,
            settings,
            keeper=keeper,
            random_unit=self.world.random.random,
        )
        watch(worker.runner, self.world)
        self.workers.append(process)
        self._drainable[process.name] = worker
        self.spawn(keeper.run())
        self.spawn(self._work(process, worker))

    async def _work(self, process: Process, worker: Worker) -> None:
        """Work until drained; what it still holds then, it had begun and lost: by its own clock, for it was frozen."""
        await worker.run()
        held = self.world.query(
            "SELECT id, attempt_id FROM jobs WHERE status = 'running' AND lease_owner = ? AND lease_until > ?",
            process.name,
            self.world.now_us(),
        )
        self.world.violations += [
            f"{process.name} was drained between the claim and the start of attempt {row['attempt_id']} of {row['id']}"
            for row in held
            if (process.name, row["id"], row["attempt_id"]) not in self.world.started | self.world.unanswered
            and not self.may_stay_held(row["id"])
        ]
        self.workers.remove(process)

    def _drain(self, process: Process) -> None:
        """Stop a worker as a deployment does, often in the middle of a commit: once, or again a little later."""
        worker = self._drainable.pop(process.name, None)
        if worker is not None:
            if self.world.random.random() < 0.7:
                process.at_next_commit = worker.drain
            else:
                worker.drain()
            if self.world.random.random() < 0.5:
                self.world.loop.call_later(self.world.random.random(), worker.drain)
            self._start_worker()

    def start_scheduler(self, name: str) -> None:
        """Start what delivers jobs and keeps order."""
        process = Process(self.world, name)
        database, pipe, jobs = SimulatedDatabase(process), SimulatedStream(process), self.make_jobs()
        self.spawn(Dispatcher(database, jobs, pipe, name=name).run())
        self.spawn(run_periodically(Watchdog(database, jobs, name=name).run_once, interval_ms=2_000))
        self.spawn(run_periodically(Reconciler(database, jobs, pipe, name=name).run_once, interval_ms=5_000))

    async def _inject_faults(self) -> None:
        world, tempo = self.world, self.tempo
        while world.loop.time() < tempo.faults_until_s - 5:
            await asyncio.sleep(world.random.random() * tempo.fault_every_s)
            draw, victims = world.random.random(), self._busy()
            if draw < 0.35 and victims:
                world.random.choice(victims).crash()
                self._start_worker()
            elif draw < 0.7 and victims:
                world.random.choice(victims).freeze(world.random.uniform(*tempo.frozen_s))
            elif draw < 0.85:
                world.stream.flush()
            elif victims:
                self._drain(world.random.choice(victims))

    def _busy(self) -> list[Process]:
        """Living workers: those that hold something, if there are any, since nobody misses the others."""
        listeners = {
            row["lease_owner"] for row in self.world.query("SELECT lease_owner FROM jobs WHERE status = 'running'")
        }
        living = [worker for worker in self.workers if worker.alive]
        return [worker for worker in living if worker.name in listeners] or living


async def retry_until_known(database: SimulatedDatabase, operation: Operation[object]) -> None:
    """What a careful client does: try again what may not have happened; the second time finds it done."""
    while True:
        try:
            await database.transact(operation)
        except Unavailable:
            await asyncio.sleep(0.1)
        except (InvalidTransition, Conflict):
            return
        else:
            return
