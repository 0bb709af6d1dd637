"""A worker that tests drive step by step, with a database and a stream that can be made unavailable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from adjudge.domain.errors import Unavailable
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.relay.dispatcher import Dispatcher
from adjudge.store import Database
from adjudge.store.engine.driver import Operation
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs.models import Fence, JobResult
from adjudge.store.judging.commands import JOB_KIND_JUDGE
from adjudge.store.judging.models import Judgement
from adjudge.stream import Message, MessageBody, PublishResult, Stream
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions
from tests.integration.queue.conftest import QUICK, QueueHarness

T = TypeVar("T")


class UnavailableDatabase:
    """A database that can be made unavailable."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.dialect = inner.dialect
        self.is_away = False

    def _check(self) -> None:
        if self.is_away:
            raise Unavailable("the database is away")

    async def transact(self, operation: Operation[T]) -> T:
        self._check()
        return await self._inner.transact(operation)

    async def read(self, operation: Operation[T]) -> T:
        self._check()
        return await self._inner.read(operation)

    def listen(self, channel: str, callback: Callable[[], None]) -> Callable[[], None]:
        return self._inner.listen(channel, callback)

    async def close(self) -> None:
        """The test closes its own."""


class RecordingStream:
    """A stream that remembers acknowledgements with the state of the job's row at that time, and can be unavailable."""

    def __init__(self, inner: Stream, queue: QueueHarness) -> None:
        self._inner, self._queue = inner, queue
        self.acks: list[tuple[str | None, str | None]] = []
        self.failing_acks = 0
        self.tried_acks = 0
        self.publishes_fail = False

    async def publish(self, hints: Sequence[MessageBody]) -> list[PublishResult]:
        if self.publishes_fail:
            raise Unavailable("the stream is away")
        return await self._inner.publish(hints)

    async def read(self, *, consumer: str, limit: int, wait_ms: int) -> list[Message]:
        return await self._inner.read(consumer=consumer, limit=limit, wait_ms=wait_ms)

    async def ack(self, messages: Sequence[Message]) -> int:
        self.tried_acks += 1
        if self.failing_acks:
            self.failing_acks -= 1
            raise Unavailable("the stream is away")
        for message in messages:
            rows = await self._queue.rows("SELECT status FROM jobs WHERE id = :id", id=message.job_id or "")
            self.acks.append((message.job_id, rows[0]["status"] if rows else None))
        return await self._inner.ack(messages)

    async def autoclaim(self, *, consumer: str, idle_ms: int, limit: int) -> list[Message]:
        return await self._inner.autoclaim(consumer=consumer, idle_ms=idle_ms, limit=limit)

    async def find_existing(self, entries: Sequence[tuple[int, str | None]]) -> set[tuple[int, str | None]]:
        return await self._inner.find_existing(entries)

    async def pending_counts(self) -> dict[int, int]:
        return await self._inner.pending_counts()

    async def depths(self) -> dict[int, int]:
        return await self._inner.depths()

    async def close(self) -> None:
        """The test closes its own."""


class ManualWorker:
    """One worker whose steps the test calls, with its database and stream."""

    def __init__(self, queue: QueueHarness) -> None:
        self.queue = queue
        self.database = UnavailableDatabase(queue.database)
        self.stream = RecordingStream(queue.stream, queue)
        self.dispatcher = Dispatcher(queue.database, queue.jobs, self.stream, name="dispatcher", least_ahead=20)

    @asynccontextmanager
    async def worker(self, name: str = "worker", **settings: Any) -> AsyncIterator[Worker]:
        """A worker whose reading is called by the test."""
        options = WorkerOptions(name, slots=4, retry=QUICK, **{"lease_ms": 10_000, "reclaim_grace_ms": 0, **settings})
        worker = Worker(self.database, self.queue.jobs, self.stream, {JOB_KIND_JUDGE: self.queue.handler}, options)
        try:
            yield worker
        finally:
            await worker.runner.close()
            await worker.finisher.close()

    async def read(self, consumer: str = "worker") -> list[Message]:
        return await self.stream.read(consumer=consumer, limit=8, wait_ms=200)

    async def job(self) -> dict[str, Any]:
        (row,) = await self.queue.rows("SELECT * FROM jobs")
        return dict(row)

    async def delivered(self) -> str:
        """Submit one and deliver it; its job."""
        await self.queue.submit()
        await self.dispatcher.dispatch_batch()
        return str((await self.job())["id"])

    async def quiet(self, worker: Worker) -> None:
        async def over() -> bool:
            return worker.running == 0 and worker.acknowledger.is_idle

        await self.queue.until(over, "the worker has finished")

    async def messages(self) -> int:
        return sum((await self.stream.depths()).values())

    async def write(self, sql: str, **parameters: object) -> None:
        await self.queue.database.transact(lambda tx: tx.execute(Statement(sql, "A test's.", sql), **parameters))


def corrupt_message(message: Message, problem: Any, *, job_id: str | None) -> Message:
    """Return the message as the stream reports it when it is invalid."""
    return Message(
        message.entry_id, message.band, None, problem, job_id, message.delivery_count, 1, message.payload_ref
    )


async def claim_without_heartbeat(manual_worker: ManualWorker, *, lease_ms: int) -> str:
    """Create a job that a worker read and claimed without ever renewing its lease."""
    job_id = await manual_worker.delivered()
    assert await manual_worker.read("dead")
    await manual_worker.queue.database.transact(
        lambda tx: manual_worker.queue.jobs.claim(tx, [job_id], worker="dead", lease_ms=lease_ms)
    )
    return job_id


async def finish(manual_worker: ManualWorker, fence: Fence) -> Any:
    done = JobResult(fence, JobStatus.SUCCEEDED, {}, Judgement(Verdict.AC, time_ms=1, mem_kb=1))
    return await manual_worker.queue.database.transact(
        lambda tx: manual_worker.queue.jobs.finish_and_claim_next(tx, [done])
    )


async def reclaim_now(manual_worker: ManualWorker, worker: Worker) -> None:
    """Take over whatever is pending, however short a time: the rows decide."""
    messages = await manual_worker.stream.autoclaim(consumer="worker", idle_ms=0, limit=8)
    await worker.reader.take_over(messages)
