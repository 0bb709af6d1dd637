"""The world of a simulation: one truth, one stream, processes that crash and freeze, and faults drawn from a seed.

The store, the relay and the worker run unchanged. Each simulated process sees the database and the stream through
doors of its own: a dead process's doors never open again, a frozen one's stay shut until it wakes, and both may be out
of order for a while. Nothing here knows what is right; ``checker`` does.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from adjudge.domain.errors import OutcomeUnknown, Unavailable
from adjudge.observe.outages import JITTER
from adjudge.store.engine.driver import Operation
from adjudge.store.engine.notify import LocalNotifier
from adjudge.store.engine.sqlite import SqliteTx, run_to_completion
from adjudge.store.engine.statement import Dialect
from adjudge.stream.driver import Message, MessageBody, PublishResult
from adjudge.stream.memory import MemoryStream

T = TypeVar("T")
EPOCH_US = 1_800_000_000_000_000


@dataclass
class FaultProbabilities:
    """How likely each mishap is, per call."""

    database_away: float = 0.01
    outcome_unknown: float = 0.02
    stream_away: float = 0.01
    message_lost: float = 0.02
    message_twice: float = 0.05
    message_late: float = 0.05


@dataclass
class World:
    """What all processes share."""

    seed: int
    template: sqlite3.Connection
    odds: FaultProbabilities = field(default_factory=FaultProbabilities)
    calm: bool = False
    """No more mishaps: what is left must come to rest."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        JITTER.seed(self.seed)
        self.loop = asyncio.get_running_loop()
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.row_factory = sqlite3.Row
        self.template.backup(self.connection)
        self.connection.execute("PRAGMA foreign_keys=ON")
        self.notifications = LocalNotifier()
        self.tx = SqliteTx(self.connection, self.now_us, self.notifications)
        self.stream = MemoryStream(now_us=self.now_us)
        self.violations: list[str] = []
        self.late: list[asyncio.Task[list[PublishResult]]] = []
        self.won_by: dict[tuple[str, str, int], tuple[int, str]] = {}
        """The message that each (process, job, attempt) was won by."""
        self.started: set[tuple[str, str, int]] = set()
        self.unanswered: set[tuple[str, str, int]] = set()
        """Attempts that a worker held when it did not hear of a commit: it may not know of some of them."""
        """The attempts that began: (process, job, attempt)."""
        self._ids = 0

    def now_us(self) -> int:
        return EPOCH_US + round(self.loop.time() * 1_000_000)

    def new_id(self) -> str:
        """Ids that sort by creation and are the same for the same seed."""
        self._ids += 1
        return f"{self._ids:08d}-0000-7000-8000-000000000000"

    def should_fail(self, odds: float) -> bool:
        return not self.calm and self.random.random() < odds

    async def yield_control(self, most: float = 0.02) -> None:
        """Let others go first: this is where interleavings come from."""
        await asyncio.sleep(self.random.random() * most)

    def note_unanswered(self, worker: str) -> None:
        """The answer to a commit of this worker is lost."""
        rows = self.query("SELECT id, attempt_id FROM jobs WHERE status = 'running' AND lease_owner = ?", worker)
        self.unanswered.update((worker, row["id"], row["attempt_id"]) for row in rows)

    def query(self, sql: str, *parameters: object) -> list[sqlite3.Row]:
        return self.connection.execute(sql, parameters).fetchall()


class Process:
    """Something that can die or fall asleep at any await."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.alive = True
        self.at_next_commit: Callable[[], None] | None = None
        """What is to happen between its next commit and the answer to that."""
        self._awake = asyncio.Event()
        self._awake.set()
        self._frozen_at = 0.0

    def crash(self) -> None:
        """No code of this process has any effect from now on."""
        self.alive = False

    def freeze(self, seconds: float) -> None:
        """Stop at the next await that touches the world; wake as a zombie."""
        self._frozen_at = self.clock()
        self._awake.clear()
        self.world.loop.call_later(seconds, self._awake.set)

    def clock(self) -> float:
        """The time as this process knows it: while it is frozen it cannot know that its leases run out."""
        return self.world.loop.time() if self._awake.is_set() else self._frozen_at

    async def still_here(self) -> None:
        """Pass if alive and awake; wait for ever if dead."""
        await self._awake.wait()
        if not self.alive:
            await asyncio.get_running_loop().create_future()


class SimulatedDatabase:
    """The database as one process reaches it."""

    dialect = Dialect.SQLITE

    def __init__(self, process: Process) -> None:
        self._process = process
        self._world = process.world

    async def transact(self, operation: Operation[T]) -> T:
        world = self._world
        await world.yield_control()
        await self._process.still_here()
        if world.should_fail(world.odds.database_away):
            raise Unavailable("the database is away")
        result, callbacks = self.commit(operation)
        act, self._process.at_next_commit = self._process.at_next_commit, None
        if act is not None:
            act()
        await world.yield_control()
        await self._process.still_here()
        if world.should_fail(world.odds.outcome_unknown):
            world.note_unanswered(self._process.name)
            raise OutcomeUnknown
        for callback in callbacks:
            callback()
        return result

    def commit(self, operation: Operation[T]) -> tuple[T, list[Callable[[], None]]]:
        """Carry an operation out at once, with no mishaps; return what is to be done after the commit."""
        connection, tx = self._world.connection, self._world.tx
        callbacks: list[Callable[[], None]] = []
        tx.begin(callbacks)
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = run_to_completion(tx.run_operation(operation))
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        return result, callbacks

    async def read(self, operation: Operation[T]) -> T:
        return await self.transact(operation)

    def listen(self, channel: str, callback: Callable[[], None]) -> Callable[[], None]:
        return self._world.notifications.listen(channel, callback)

    async def close(self) -> None:
        return None


def _publish_late(world: World, hint: MessageBody) -> None:
    world.late.append(world.loop.create_task(world.stream.publish([hint])))


class SimulatedStream:
    """The stream as one process reaches it: late, twice, or not at all."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._world = process.world

    async def _reach(self) -> None:
        await self._world.yield_control()
        await self._process.still_here()
        if self._world.should_fail(self._world.odds.stream_away):
            raise Unavailable("the stream is away")

    async def publish(self, hints: Sequence[MessageBody]) -> list[PublishResult]:
        await self._reach()
        world, published = self._world, []
        for hint in hints:
            if world.should_fail(world.odds.message_late):
                world.loop.call_later(world.random.random() * 3, partial(_publish_late, world, hint))
                published.append(PublishResult(hint.job_id, "0-1"))
                continue
            published += await world.stream.publish([hint])
            if world.should_fail(world.odds.message_twice):
                await world.stream.publish([hint])
            if world.should_fail(world.odds.message_lost):
                await self._lose(hint)
        await self._process.still_here()
        return published

    async def _lose(self, hint: MessageBody) -> None:
        taken = await self._world.stream.read(consumer="nobody", limit=64, wait_ms=0)
        lost = [message for message in taken if message.job_id == hint.job_id]
        await self._world.stream.ack(taken)
        await self._world.stream.publish([item.body for item in taken if item not in lost and item.body is not None])

    async def read(self, *, consumer: str, limit: int, wait_ms: int) -> list[Message]:
        await self._reach()
        messages = await self._world.stream.read(consumer=consumer, limit=limit, wait_ms=wait_ms)
        self._world.random.shuffle(messages)
        await self._process.still_here()
        return messages

    async def ack(self, messages: Sequence[Message]) -> int:
        await self._reach()
        for message in messages:
            if not self._has_twin(message, messages):
                self._check_ack(message)
        return await self._world.stream.ack(messages)

    def _has_twin(self, message: Message, gone: Sequence[Message]) -> bool:
        """Whether the stream keeps another message about the same job: then this one can be spared."""
        others = {(item.band, item.entry_id) for item in gone}
        return any(
            kept.job_id == message.job_id and (kept.band, kept.entry_id) not in others
            for band in self._world.stream._bands.values()
            for kept in band.entries.values()
        )

    def _check_ack(self, message: Message) -> None:
        """INV-2: a message that an attempt was won by is acknowledged after the attempt's end is written.

        Once its lease has expired the attempt can no longer write any: the watchdog takes the job from there. And an
        earlier attempt that came here by the same message may acknowledge it: a stale result is refused and done with.
        """
        rows = self._world.query(
            "SELECT status, attempt_id FROM jobs WHERE id = ? AND (lease_until IS NULL OR lease_until > ?)",
            message.job_id,
            self._world.now_us(),
        )
        for row in rows:
            name, job_id, entry = self._process.name, str(message.job_id), (message.band, message.entry_id)
            won = [
                self._world.won_by.get((name, job_id, number)) == entry for number in range(1, row["attempt_id"] + 1)
            ]
            if row["status"] == "running" and won[-1] and not any(won[:-1]):
                what = f"attempt {row['attempt_id']} of job {job_id} by {name}"
                self._world.violations.append(f"{what} was acknowledged before its end was written")

    async def autoclaim(self, *, consumer: str, idle_ms: int, limit: int) -> list[Message]:
        await self._reach()
        return await self._world.stream.autoclaim(consumer=consumer, idle_ms=idle_ms, limit=limit)

    async def find_existing(self, entries: Sequence[tuple[int, str | None]]) -> set[tuple[int, str | None]]:
        await self._reach()
        return await self._world.stream.find_existing(entries)

    async def pending_counts(self) -> dict[int, int]:
        return await self._world.stream.pending_counts()

    async def depths(self) -> dict[int, int]:
        return await self._world.stream.depths()

    async def close(self) -> None:
        return None
