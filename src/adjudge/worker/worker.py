"""The worker: reads no more jobs than it can run, runs only jobs it has claimed, acknowledges only after the commit.

``reader`` reads messages, ``claimer`` claims their jobs, ``runner`` runs them, ``finisher`` writes the results and
claims follow-up jobs, ``acknowledger`` acknowledges the messages. Each stage returns its result to the stage before.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence

from adjudge.observe.health_server import LoopHeartbeat
from adjudge.store import Database
from adjudge.store.engine.notify import CHANNEL_CANCELED
from adjudge.store.jobs.commands import JobCommands
from adjudge.stream.driver import Stream
from adjudge.worker.acknowledger import Acknowledger
from adjudge.worker.claimer import Claimer
from adjudge.worker.finisher import Finisher
from adjudge.worker.handler import Handler
from adjudge.worker.leases import LeaseKeeper
from adjudge.worker.reader import MessageReader, MessageValidator, stop_all
from adjudge.worker.runner import Runner
from adjudge.worker.slots import Slots, StartRateLimiter
from adjudge.worker.worker_settings import WorkerOptions


class Worker:
    """One worker process, or one of several in a process."""

    def __init__(
        self,
        database: Database,
        jobs: JobCommands,
        stream: Stream,
        handlers: Mapping[str, Handler],
        settings: WorkerOptions,
        *,
        keeper: LeaseKeeper | None = None,
        rate: StartRateLimiter | None = None,
        random_unit: Callable[[], float] = random.random,
    ) -> None:
        self._database = database
        self._settings = settings
        self._keeps_own_leases = keeper is None
        self.keeper = keeper or LeaseKeeper(
            database,
            jobs,
            lease_ms=settings.lease_ms,
            heartbeat_ms=settings.heartbeat_ms,
            clock=asyncio.get_running_loop().time,
        )
        clock, slots = self.keeper.clock, Slots(settings.slots, settings.limits)
        self._slots = slots
        self.acknowledger = Acknowledger(stream)
        self.finisher = Finisher(
            database, jobs, handlers, settings, slots, clock=clock, random_unit=random_unit, rate=rate
        )
        self.runner = Runner(
            database,
            jobs,
            handlers,
            settings,
            slots,
            finisher=self.finisher,
            acknowledger=self.acknowledger,
            keeper=self.keeper,
            rate=rate,
            random_unit=random_unit,
        )
        self.claimer = Claimer(database, jobs, handlers, settings, slots, clock=clock)
        self.reader = MessageReader(
            stream,
            settings,
            slots,
            validator=MessageValidator(database, jobs, handlers, actor=settings.name),
            claimer=self.claimer,
            runner=self.runner,
            acknowledger=self.acknowledger,
            rate=rate,
            random_unit=random_unit,
        )
        self._draining = asyncio.Event()

    @property
    def heartbeat(self) -> LoopHeartbeat:
        """The heartbeat of its reader."""
        return self.reader.heartbeat

    @property
    def running(self) -> int:
        """The number of running jobs."""
        return len(self.runner)

    @property
    def is_draining(self) -> bool:
        """Whether it reads no more messages."""
        return self._draining.is_set()

    @property
    def is_paused(self) -> bool:
        """Whether it starts no jobs until it is resumed."""
        return self._slots.is_paused

    async def set_paused(self, is_paused: bool) -> None:
        """Start no more jobs, or start jobs again. Running jobs are finished; parked ones are left to other workers."""
        self._slots.set_paused(is_paused)
        if is_paused:
            await self.acknowledger.ack(await self.claimer.return_parked())

    def drain(self) -> None:
        """Read no more messages and finish the running jobs. A second call releases the running jobs."""
        if self._draining.is_set():
            self.runner.release_all()
        self.finisher.stop_claiming()
        self._draining.set()

    async def run(self) -> None:
        """Run until drained."""
        reader = asyncio.create_task(self.reader.run(), name="reader")
        keeping = [asyncio.create_task(self.keeper.run(), name="keeper")] if self._keeps_own_leases else []
        unlisten = self._database.listen(CHANNEL_CANCELED, self.keeper.request_cancel_check)
        try:
            await self._until_drained([reader, *keeping])
            deadline = asyncio.get_running_loop().time() + self._settings.drain_grace_ms / 1_000
            await self.reader.stop(deadline)
            await self.acknowledger.ack(await self.claimer.return_parked())
            await self.runner.drain(deadline)
            await self.acknowledger.flush()
        finally:
            unlisten()
            await stop_all([reader, *keeping])
            await self.runner.close()
            await self.finisher.close()
            await self.acknowledger.close()

    async def _until_drained(self, loops: Sequence[asyncio.Task[None]]) -> None:
        """Wait for the call of ``drain``; an unexpected error in a loop is raised and ends the worker."""
        drained = asyncio.create_task(self._draining.wait())
        await asyncio.wait([drained, *loops], return_when=asyncio.FIRST_COMPLETED)
        drained.cancel()
        for task in loops:
            if task.done():
                task.result()
