"""A worker or a scheduler as a process of its own, made of the product's parts, that dies at a given point.

It dies of SIGKILL at the n-th commit or at the n-th call to Redis, of any kind or of one, just before or just after.
The switch is here and nowhere else: the database and the stream that the parts are given count what passes through
them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from adjudge.chains.engine import ChainEngine
from adjudge.domain.retry import RetryPolicy
from adjudge.domain.verdict import Verdict
from adjudge.observe import logs
from adjudge.observe.health_server import HealthSources, serve_health
from adjudge.relay.dispatcher import Dispatcher
from adjudge.relay.periodic import run_periodically
from adjudge.relay.reconciler import Reconciler
from adjudge.relay.watchdog import Watchdog
from adjudge.store import Database, Tx, open_database
from adjudge.store.chains.models import JOB_KIND_NODE
from adjudge.store.engine.driver import Operation
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Job
from adjudge.store.judging.commands import JOB_KIND_JUDGE, JudgeRunListener
from adjudge.store.judging.models import Judgement
from adjudge.stream import Message, MessageBody, PublishResult, Stream
from adjudge.stream.redis import RedisStream
from adjudge.worker.handler import HandlerResult
from adjudge.worker.handlers.node import NodeHandler
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions
from tests.integration.chains.test_crashes import Adder, kind_of
from tests.support.explicit_commit import with_explicit_commit

T = TypeVar("T")
Role = Literal["worker", "scheduler"]
CrashOperation = Literal["commit", "redis", "claim", "checkpoint", "finish", "read", "ack"]
Phase = Literal["before", "after"]
LIFETIME_SEC = 1_800
"""The processes end with the test, whatever its result."""
RETRY = RetryPolicy(max_retries=3, base_ms=20, cap_ms=100)
TIRELESS = replace(RETRY, max_retries=100)
"""For jobs that are lost more often than usual, and by a busy machine oftener still: none is to be given up."""
ENGINE = ChainEngine()
VERDICTS = (Verdict.AC, Verdict.WA, Verdict.TLE, Verdict.RE)


def oracle(submission_id: str) -> Verdict:
    """The verdict of a submission, the same in every process."""
    return VERDICTS[int(submission_id[-2:], 16) % len(VERDICTS)]


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """Where a process kills itself."""

    operation: CrashOperation
    number: int
    phase: Phase


@dataclass(frozen=True, slots=True)
class ProcessConfig:
    """The configuration of one process."""

    role: Role
    name: str
    database_url: str
    redis_url: str
    environment: str
    dies_at: CrashPoint | None = None
    slots: int = 2
    batch: int = 512
    work_ms: int = 0
    breaks: bool = False
    """Whether the sandbox fails, every time."""
    lease_ms: int = 10_000
    """Longer than a busy machine may starve a live process; a test that loses a process sets a shorter one."""
    idle_ms: int = 500
    """Idle time after which other readers check a pending message; the row decides whether its job is lost."""
    metrics_port: int = 0
    log: Path | None = None


class CrashTrigger:
    """Counts operations by kind and kills the process at its crash point."""

    def __init__(self, point: CrashPoint | None) -> None:
        self._point = point
        self._passed: Counter[str] = Counter()

    def next(self, *operations: str) -> Phase | None:
        """The phase of this operation at which to crash, or None; an operation may have several names."""
        self._passed.update(operations)
        point = self._point
        if point is not None and point.operation in operations and point.number == self._passed[point.operation]:
            return point.phase
        return None

    @staticmethod
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class CrashingDatabase:
    """A database that kills the process before or after a commit."""

    def __init__(self, inner: Database, crash_trigger: CrashTrigger) -> None:
        self._inner = inner
        self._crash_trigger = crash_trigger
        self.dialect = inner.dialect

    async def transact(self, operation: Operation[T]) -> T:
        phase = self._crash_trigger.next("commit", kind_of(operation))

        async def until_commit(tx: Tx) -> T:
            if phase == "before":
                await operation(with_explicit_commit(tx))
                self._crash_trigger.die()
            return await operation(tx)

        done = await self._inner.transact(until_commit)
        if phase == "after":
            self._crash_trigger.die()
        return done

    async def read(self, operation: Operation[T]) -> T:
        return await self._inner.read(operation)

    def listen(self, channel: str, callback: Callable[[], None]) -> Callable[[], None]:
        return self._inner.listen(channel, callback)

    async def close(self) -> None:
        await self._inner.close()


class CrashingStream:
    """A stream that kills the process before or after an operation."""

    def __init__(self, inner: Stream, crash_trigger: CrashTrigger) -> None:
        self._inner = inner
        self._crash_trigger = crash_trigger

    async def _pass(self, call: Coroutine[Any, Any, T], kind: str = "") -> T:
        phase = self._crash_trigger.next("redis", kind)
        if phase == "before":
            self._crash_trigger.die()
        answer = await call
        if phase == "after":
            self._crash_trigger.die()
        return answer

    async def publish(self, hints: Sequence[MessageBody]) -> list[PublishResult]:
        return await self._pass(self._inner.publish(hints))

    async def read(self, *, consumer: str, limit: int, wait_ms: int) -> list[Message]:
        return await self._pass(self._inner.read(consumer=consumer, limit=limit, wait_ms=wait_ms), "read")

    async def ack(self, messages: Sequence[Message]) -> int:
        return await self._pass(self._inner.ack(messages), "ack")

    async def autoclaim(self, *, consumer: str, idle_ms: int, limit: int) -> list[Message]:
        return await self._pass(self._inner.autoclaim(consumer=consumer, idle_ms=idle_ms, limit=limit))

    async def find_existing(self, entries: Sequence[tuple[int, str | None]]) -> set[tuple[int, str | None]]:
        return await self._pass(self._inner.find_existing(entries))

    async def pending_counts(self) -> dict[int, int]:
        return await self._pass(self._inner.pending_counts())

    async def depths(self) -> dict[int, int]:
        return await self._pass(self._inner.depths())

    async def close(self) -> None:
        await self._inner.close()


class OracleHandler:
    """A judge that is never wrong and takes a configured time."""

    def __init__(self, orders: ProcessConfig) -> None:
        self._orders = orders

    async def run(self, job: Job) -> HandlerResult:
        await asyncio.sleep(self._orders.work_ms / 1_000)
        if self._orders.breaks:
            raise RuntimeError("the sandbox would not start")
        return HandlerResult(result={}, typed_result=Judgement(oracle(str(job.submission_id)), time_ms=1, mem_kb=1))

    def limit_keys(self, _: Mapping[str, Any]) -> tuple[str, ...]:
        return ()


def make_jobs(policy: RetryPolicy = RETRY) -> JobCommands:
    """The job commands of all processes of these tests; the number of attempts is stored when a job is created."""
    return JobCommands({JOB_KIND_JUDGE: JudgeRunListener(), JOB_KIND_NODE: ENGINE.job_listener}, policy=policy)


def main(orders: ProcessConfig) -> None:
    """Run the role of a configuration in a child process that shares nothing else with its parent."""
    if orders.log is None:
        logging.disable(logging.CRITICAL)
    else:
        logs.configure("info", "json", orders.log.open("a"))
    with suppress(TimeoutError, asyncio.CancelledError):
        asyncio.run(_live(orders))


async def _live(orders: ProcessConfig) -> None:
    crash_trigger = CrashTrigger(orders.dies_at)
    async with asyncio.timeout(LIFETIME_SEC), open_database(orders.database_url, migrate=False) as opened:
        stream = RedisStream(orders.redis_url, environment=orders.environment)
        try:
            await _serve(orders, CrashingDatabase(opened, crash_trigger), CrashingStream(stream, crash_trigger))
        finally:
            await stream.close()


async def _serve(orders: ProcessConfig, database: Database, stream: Stream) -> None:
    jobs = make_jobs()
    if orders.role == "worker":
        nodes = NodeHandler(database, blobs=None, executors={"noop": Adder()}, dags=ENGINE.dags)  # type: ignore[arg-type]  # nothing large
        worker = Worker(
            database, jobs, stream, {JOB_KIND_JUDGE: OracleHandler(orders), JOB_KIND_NODE: nodes}, _settings(orders)
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.drain)
        async with serve_health(orders.metrics_port, HealthSources([worker.heartbeat])):
            await worker.run()
        return
    reconciler = Reconciler(database, jobs, stream, name=orders.name, older_than_ms=orders.idle_ms)
    async with asyncio.TaskGroup() as roles:
        dispatcher = Dispatcher(
            database, jobs, stream, name=orders.name, batch=orders.batch, poll_ms=orders.idle_ms // 5
        )
        roles.create_task(dispatcher.run())
        roles.create_task(
            run_periodically(Watchdog(database, jobs, name=orders.name).run_once, interval_ms=orders.idle_ms // 2)
        )
        roles.create_task(run_periodically(reconciler.run_once, interval_ms=orders.idle_ms // 2))


def _settings(orders: ProcessConfig) -> WorkerOptions:
    return WorkerOptions(
        orders.name,
        slots=orders.slots,
        lease_ms=orders.lease_ms,
        heartbeat_ms=orders.idle_ms // 4,
        reclaim_interval_ms=orders.idle_ms // 2,
        reclaim_grace_ms=orders.idle_ms - orders.lease_ms,
        read_wait_ms=orders.idle_ms // 2,
        retry=RETRY,
    )
