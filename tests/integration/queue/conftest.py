"""The queue in both modes: SQLite with the in-process stream, PostgreSQL with Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from adjudge.cache.token_buckets import MemoryTokenBuckets, RedisTokenBuckets, TokenBuckets
from adjudge.domain.ids import new_id
from adjudge.domain.retry import RetryPolicy
from adjudge.domain.verdict import Verdict
from adjudge.relay.dispatcher import Dispatcher
from adjudge.relay.periodic import run_periodically
from adjudge.relay.reconciler import Reconciler
from adjudge.relay.watchdog import Watchdog
from adjudge.store import Database, Tx, open_database
from adjudge.store.accounts import users
from adjudge.store.engine.statement import Row, Statement
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Job
from adjudge.store.judging.commands import JOB_KIND_JUDGE, JudgeRunListener, SubmissionCommands
from adjudge.store.judging.models import Judgement, NewSubmission
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import models as problem_models
from adjudge.stream import MemoryStream, Stream
from adjudge.stream.redis import RedisStream
from adjudge.worker.handler import HandlerResult
from adjudge.worker.slots import StartRateLimiter
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions

_ENVIRONMENTS = count(1)
_PATIENCE_SEC = 120
IDLE_MS = 1_100
"""How long a message lies with a silent reader before others look at it; the rows say whether it is lost."""
LOST_AFTER_MS = 1_000
"""The lease of a worker that is to be lost."""
QUICK = RetryPolicy(max_retries=3, base_ms=10, cap_ms=50)


class ScriptedHandler:
    """A judge that does as the test says; by default it accepts."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, int]] = []
        self.act: Callable[[Job], Awaitable[HandlerResult]] = self._accept

    async def _accept(self, _: Job) -> HandlerResult:
        return HandlerResult(result={}, typed_result=Judgement(Verdict.AC, time_ms=1, mem_kb=1))

    async def run(self, job: Job) -> HandlerResult:
        self.runs.append((job.id, job.attempt_id))
        return await self.act(job)

    def limit_keys(self, payload: Mapping[str, Any]) -> tuple[str, ...]:
        return (f"language:{payload.get('language')}",)


@dataclass
class QueueHarness:
    """All roles, in one process, on real servers."""

    url: str
    database: Database
    stream: Stream
    jobs: JobCommands
    redis_url: str | None = None
    environment: str = "queue"
    """The prefix of its keys in Redis."""
    handler: ScriptedHandler = field(default_factory=ScriptedHandler)
    person: str = field(default_factory=new_id)
    problem: str = field(default_factory=new_id)
    revision: str = field(default_factory=new_id)

    async def set_up(self) -> None:
        async def create(tx: Tx) -> None:
            await users.insert(tx, users.NewUser(self.person, "person"))
            await problem_commands.insert(tx, problem_models.NewProblem(self.problem, "sum", "Sum", self.person))
            await problem_commands.add_revision(
                tx, problem_models.NewRevision(self.revision, self.problem, "plain", "digest", self.person)
            )

        await self.database.transact(create)

    async def submit(self, how_many: int = 1, language: str = "cpp") -> list[str]:
        new = [
            NewSubmission(new_id(), self.person, self.problem, self.revision, language, "digest", 1)
            for _ in range(how_many)
        ]
        await self.database.transact(lambda tx: SubmissionCommands(self.jobs).submit(tx, new))
        return [item.id for item in new]

    async def rows(self, sql: str, **parameters: object) -> list[Row]:
        return await self.database.read(lambda tx: tx.fetch(Statement(sql, "Asked by a test.", sql), **parameters))

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_SEC):
                while not await holds():
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"never: {what}") from None

    async def until_running(self) -> None:
        async def running() -> bool:
            return bool(self.handler.runs)

        await self.until(running, "a job runs")

    async def until_acknowledged(self) -> None:
        """Until no message is left: acknowledging follows what is written."""

        async def empty() -> bool:
            return sum((await self.stream.depths()).values()) == 0

        await self.until(empty, "every message is acknowledged")

    async def until_decided(self, submissions: list[str]) -> dict[str, tuple[str, str | None]]:
        async def decided() -> bool:
            rows = await self.rows("SELECT count(*) AS n FROM submissions WHERE finished_at IS NULL")
            return int(rows[0]["n"]) == 0

        await self.until(decided, "every submission is decided")
        rows = await self.rows("SELECT id, status, verdict FROM submissions")
        return {row["id"]: (row["status"], row["verdict"]) for row in rows if row["id"] in submissions}

    @asynccontextmanager
    async def scheduler(self, name: str = "scheduler") -> AsyncIterator[None]:
        watchdog = Watchdog(self.database, self.jobs, name=name)
        reconciler = Reconciler(self.database, self.jobs, self.stream, name=name, older_than_ms=50)
        async with _running(
            Dispatcher(self.database, self.jobs, self.stream, name=name, poll_ms=50, least_ahead=100).run(),
            run_periodically(watchdog.run_once, interval_ms=50),
            run_periodically(reconciler.run_once, interval_ms=50),
        ):
            yield

    @asynccontextmanager
    async def buckets(self) -> AsyncIterator[tuple[TokenBuckets, TokenBuckets]]:
        """Buckets as two workers have them: in one process the same, else two connections."""
        if self.redis_url is None:
            shared = MemoryTokenBuckets()
            yield shared, shared
            return
        environment = f"queue-{next(_ENVIRONMENTS)}"
        one, two = (RedisTokenBuckets(self.redis_url, environment=environment) for _ in range(2))
        yield one, two
        await one.close()
        await two.close()

    @asynccontextmanager
    async def worker(
        self, name: str = "worker", rate: StartRateLimiter | None = None, **settings: Any
    ) -> AsyncIterator[Worker]:
        """A worker with a lease that outlasts any pause of the machine; tests that lose it set a short one."""
        options: dict[str, Any] = {"slots": 2, "lease_ms": 60_000, "heartbeat_ms": 200, "retry": QUICK}
        options |= {"reclaim_interval_ms": 100, "read_wait_ms": 100, **settings}
        options.setdefault("reclaim_grace_ms", IDLE_MS - options["lease_ms"])
        handlers = {JOB_KIND_JUDGE: self.handler}
        worker = Worker(self.database, self.jobs, self.stream, handlers, WorkerOptions(name, **options), rate=rate)
        async with _running(worker.run()):
            yield worker


@asynccontextmanager
async def _running(*loops: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture(params=["embedded", "distributed"])
async def queue(request: pytest.FixtureRequest) -> AsyncIterator[QueueHarness]:
    """The queue in each mode in turn."""
    async with AsyncExitStack() as stack:
        stream: Stream
        if request.param == "embedded":
            url, redis_url = request.getfixturevalue("sqlite_url"), None
            environment, stream = "queue", MemoryStream()
        else:
            url = request.getfixturevalue("postgres_url")
            redis_url = request.getfixturevalue("redis_server").url
            environment = f"queue-{next(_ENVIRONMENTS)}"
            stream = RedisStream(redis_url, environment=environment)
        stack.push_async_callback(stream.close)
        database = await stack.enter_async_context(open_database(url, migrate=False))
        jobs = JobCommands({JOB_KIND_JUDGE: JudgeRunListener()}, policy=QUICK)
        queue = QueueHarness(url, database, stream, jobs, redis_url, environment)
        await queue.set_up()
        yield queue
