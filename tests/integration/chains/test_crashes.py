"""Workers die at every point where they commit or speak to the stream; the chain ends as if none had."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeVar

import pytest

from adjudge.chains.executor import NodeContext, NodeResult
from adjudge.domain.retry import RetryPolicy
from adjudge.relay.dispatcher import Dispatcher
from adjudge.relay.reconciler import Reconciler
from adjudge.relay.watchdog import Watchdog
from adjudge.store import Database, Tx
from adjudge.store.chains.models import JOB_KIND_NODE
from adjudge.store.engine.driver import Operation
from adjudge.stream import MemoryStream, Message, MessageBody, PublishResult, Stream
from adjudge.worker.handlers.node import NodeHandler
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions
from tests.integration.chains.harness import ChainHarness, node
from tests.support.explicit_commit import with_explicit_commit
from tests.support.store_harness import StoreHarness

T = TypeVar("T")
WIDTH = 24
"""Two layers of this many between a first and a last node: fifty nodes."""
LEASE_MS = 200
KINDS = {
    "Claimer._claim_together": "claim",
    "ExecutorContext.save_checkpoint": "checkpoint",
    "Finisher._send": "finish",
}


def kind_of(operation: Operation[Any]) -> str:
    """What a transaction is for, by the name of the function that asks for it."""
    name = getattr(operation, "__qualname__", "").split(".<locals>.")[0]
    return KINDS.get(name, name)


LANES = list(product(("claim", "checkpoint", "finish", "read", "ack"), ("before", "after")))


def diamond() -> dict[str, Any]:
    """A node, a layer, a layer, a node; everything passes figures on, so that a lost or doubled one shows."""
    retry = {"retry": {"max_attempts": 100, "backoff_ms": 0}}
    left = [node(f"l{index}", "first", **retry) for index in range(WIDTH)]
    right = [node(f"r{index}", f"l{index}", f"l{(index + 1) % WIDTH}", **retry) for index in range(WIDTH)]
    last = node("last", *(item["id"] for item in right), **retry)
    return {"nodes": [node("first", **retry), *left, *right, last]}


class Adder:
    """Adds up what its dependencies found, and one."""

    type = "noop"
    cfg_schema: Mapping[str, Any] = {"type": "object"}

    async def execute(self, context: NodeContext) -> NodeResult:
        """Count, by way of a checkpoint that an earlier attempt may have left."""
        total = 1 + sum(context.artifacts.values())
        if context.checkpoint is not None:
            assert context.checkpoint == total
        await context.save_checkpoint(total)
        return NodeResult(total)


@dataclass
class CrashTrigger:
    """Dies at the n-th passage of a kind, before or after it; from then on nothing passes any more."""

    kind: str = ""
    phase: str = ""
    number: int = 0
    passed: int = 0
    inside: int = 0
    """Calls to the database under way: what was sent arrives, whichever process dies."""
    dead: asyncio.Event = field(default_factory=asyncio.Event)

    def due(self, kind: str) -> bool:
        self.passed += kind == self.kind
        return kind == self.kind and self.passed == self.number

    async def die(self) -> None:
        self.dead.set()
        await asyncio.Event().wait()

    async def sent(self, call: Coroutine[Any, Any, T]) -> T:
        self.inside += 1
        try:
            return await call
        finally:
            self.inside -= 1

    async def breathe(self) -> None:
        if self.dead.is_set():
            await asyncio.Event().wait()


class RolledBack(Exception):
    """Rolls back what a dying worker had not committed."""


class CrashingDatabase:
    """A database before or behind whose commits a worker dies."""

    def __init__(self, inner: Database, crash_trigger: CrashTrigger) -> None:
        self._inner, self._crash_trigger, self.dialect = inner, crash_trigger, inner.dialect

    async def transact(self, operation: Operation[T]) -> T:
        await self._crash_trigger.breathe()
        due = self._crash_trigger.due(kind_of(operation))

        async def unfinished(tx: Tx) -> T:
            await operation(with_explicit_commit(tx))
            raise RolledBack

        if due and self._crash_trigger.phase == "before":
            with pytest.raises(RolledBack):
                await self._crash_trigger.sent(self._inner.transact(unfinished))
            await self._crash_trigger.die()
        done = await self._crash_trigger.sent(self._inner.transact(operation))
        if due:
            await self._crash_trigger.die()
        return done

    async def read(self, operation: Operation[T]) -> T:
        await self._crash_trigger.breathe()
        return await self._crash_trigger.sent(self._inner.read(operation))

    def listen(self, channel: str, callback: Callable[[], None]) -> Callable[[], None]:
        return self._inner.listen(channel, callback)

    async def close(self) -> None:
        await self._inner.close()


class CrashingStream:
    """A stream before or behind whose calls a worker dies."""

    def __init__(self, inner: Stream, crash_trigger: CrashTrigger) -> None:
        self._inner, self._crash_trigger = inner, crash_trigger

    async def _pass(self, kind: str, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        await self._crash_trigger.breathe()
        due = self._crash_trigger.due(kind)
        if due and self._crash_trigger.phase == "before":
            await self._crash_trigger.die()
        answer = await call()
        if due:
            await self._crash_trigger.die()
        return answer

    async def publish(self, hints: Sequence[MessageBody]) -> list[PublishResult]:
        return await self._inner.publish(hints)

    async def read(self, *, consumer: str, limit: int, wait_ms: int) -> list[Message]:
        return await self._pass("read", lambda: self._inner.read(consumer=consumer, limit=limit, wait_ms=wait_ms))

    async def ack(self, messages: Sequence[Message]) -> int:
        return await self._pass("ack", lambda: self._inner.ack(messages))

    async def autoclaim(self, *, consumer: str, idle_ms: int, limit: int) -> list[Message]:
        return await self._inner.autoclaim(consumer=consumer, idle_ms=idle_ms, limit=limit)

    async def find_existing(self, entries: Sequence[tuple[int, str | None]]) -> set[tuple[int, str | None]]:
        return await self._inner.find_existing(entries)

    async def pending_counts(self) -> dict[int, int]:
        return await self._inner.pending_counts()

    async def depths(self) -> dict[int, int]:
        return await self._inner.depths()

    async def close(self) -> None:
        await self._inner.close()


@dataclass
class CrashFixture:
    """A store, a stream and a relay that outlive every worker."""

    harness: ChainHarness
    stream: MemoryStream
    deaths: Counter[tuple[str, str]] = field(default_factory=Counter)

    async def ended(self, run_id: str) -> bool:
        return (await self.harness.run(run_id)).finished_at is not None

    @asynccontextmanager
    async def worker(self, name: str, crash_trigger: CrashTrigger) -> AsyncIterator[asyncio.Task[None]]:
        database = CrashingDatabase(self.harness.store.database, crash_trigger)
        handler = NodeHandler(database, blobs=None, executors={"noop": Adder()}, dags=self.harness.engine.dags)  # type: ignore[arg-type]
        settings = WorkerOptions(
            name,
            slots=4,
            lease_ms=LEASE_MS,
            heartbeat_ms=LEASE_MS,
            reclaim_interval_ms=30,
            reclaim_grace_ms=0,
            read_wait_ms=10,
            retry=RetryPolicy(base_ms=1),
        )
        worker = Worker(
            database, self.harness.jobs, CrashingStream(self.stream, crash_trigger), {JOB_KIND_NODE: handler}, settings
        )
        task = asyncio.create_task(worker.run())
        try:
            yield task
        finally:  # nothing of a dead process goes on
            crash_trigger.dead.set()
            while crash_trigger.inside:
                await asyncio.sleep(0.002)
            left = [task, *(other for other in asyncio.all_tasks() if other.get_name().startswith("job-"))]
            for doomed in left:
                doomed.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            worker.drain()

    async def tidy(self) -> None:
        """What the scheduler does once leases have run out."""
        await self.harness.store.clock.advance(ms=LEASE_MS + 10_000)
        await Watchdog(self.harness.store.database, self.harness.jobs, name="watchdog").run_once()
        await Reconciler(
            self.harness.store.database, self.harness.jobs, self.stream, name="reconciler", older_than_ms=1
        ).run_once()
        await self.harness.store.clock.advance(ms=600_000)

    async def live(self, run_id: str, name: str, crash_trigger: CrashTrigger) -> bool:
        """One worker's life; whether it died of its fate."""
        async with self.worker(name, crash_trigger) as task:
            while not crash_trigger.dead.is_set() and not await self.ended(run_id):
                assert not task.done() or task.result() is None
                await asyncio.sleep(0.005)
            died = crash_trigger.dead.is_set()
        if died:
            self.deaths[crash_trigger.kind, crash_trigger.phase] += 1
        await self.tidy()
        return died


@asynccontextmanager
async def place(store: StoreHarness) -> AsyncIterator[CrashFixture]:
    """The parts that do not die."""
    stream, harness = MemoryStream(), ChainHarness(store)
    dispatcher = asyncio.create_task(
        Dispatcher(store.database, harness.jobs, stream, name="dispatcher", poll_ms=10).run()
    )
    try:
        yield CrashFixture(harness, stream)
    finally:
        dispatcher.cancel()
        await asyncio.gather(dispatcher, return_exceptions=True)


async def result(harness: ChainHarness, run_id: str) -> dict[str, tuple[str, Any]]:
    """How the nodes of a run ended, and with what."""
    return {key: (str(item.status), item.artifact) for key, item in (await harness.nodes(run_id)).items()}


@pytest.mark.slow
async def test_workers_killed_at_every_crash_point_change_nothing_about_the_end(store: StoreHarness) -> None:
    async with place(store) as here:
        calm = await here.harness.start(diamond())
        assert not await here.live(calm, "calm", CrashTrigger())
        run_id = await here.harness.start(diamond())
        points = ((kind, phase, number) for number in range(1, 100) for kind, phase in LANES)
        for serial, point in enumerate(points):
            if not await here.live(run_id, f"victim-{serial}", CrashTrigger(*point)):
                break  # the work was done before the point was reached
        assert await result(here.harness, run_id) == await result(here.harness, calm)
        run = await here.harness.run(run_id)
        assert (run.status, run.nodes_open, run.nodes_failed) == ("success", 0, 0)
        assert set(here.deaths) == set(LANES)
        written = await store.rows(
            "SELECT node_id, count(*) AS n FROM chain_status_log WHERE run_id = :run_id AND to_status = 'success' "
            "AND node_id IS NOT NULL GROUP BY node_id",
            run_id=run_id,
        )
        assert {row["n"] for row in written} == {1}
        assert len(written) == 50
