"""A database, a stream and the processes that share them; tests create submissions and check the verdicts."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from typing import Any

from adjudge.domain.errors import Unavailable
from adjudge.domain.ids import new_id
from adjudge.domain.retry import RetryPolicy
from adjudge.domain.verdict import Verdict
from adjudge.store import Database, Tx, open_database
from adjudge.store.accounts import users
from adjudge.store.engine.statement import Row, Statement
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import NewSubmission
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import models as problem_models
from adjudge.stream.redis import RedisStream
from tests.chaos import crashing_process
from tests.chaos.crashing_process import TIRELESS, ProcessConfig, Role, make_jobs, oracle

_CHILDREN = multiprocessing.get_context("forkserver")
_CHILDREN.set_forkserver_preload([crashing_process.__name__, "tests.chaos.crashing_command"])


@dataclass
class Cluster:
    """The cluster as a test sees it. Rows are changed only by operations of the application."""

    url: str
    redis_url: str
    environment: str
    database: Database
    stream: RedisStream
    person: str = field(default_factory=new_id)
    problem: str = field(default_factory=new_id)
    revision: str = field(default_factory=new_id)

    async def create_user_and_problem(self) -> None:
        """Create a user who submits, and a problem."""

        async def create(tx: Tx) -> None:
            await users.insert(tx, users.NewUser(self.person, "person"))
            await problem_commands.insert(tx, problem_models.NewProblem(self.problem, "sum", "Sum", self.person))
            await problem_commands.add_revision(
                tx, problem_models.NewRevision(self.revision, self.problem, "plain", "digest", self.person)
            )

        await self.database.transact(create)

    @contextmanager
    def process(self, role: Role, name: str, **orders: Any) -> Iterator[ForkServerProcess]:
        """Run a process of a role within the block; it is killed at the end in whatever state it is."""
        config = ProcessConfig(role, name, self.url, self.redis_url, self.environment, **orders)
        process = _CHILDREN.Process(target=crashing_process.main, args=(config,), daemon=True)
        process.start()
        try:
            yield process
        finally:
            process.kill()
            process.join()
            process.close()

    async def submit(self, how_many: int, policy: RetryPolicy = TIRELESS) -> list[str]:
        """Submit; what was committed must be judged."""
        new = [
            NewSubmission(new_id(), self.person, self.problem, self.revision, "cpp", "digest", 1)
            for _ in range(how_many)
        ]
        await self.database.transact(lambda tx: SubmissionCommands(make_jobs(policy)).submit(tx, new))
        return [item.id for item in new]

    async def rows(self, sql: str, **parameters: object) -> list[Row]:
        """Read, with retries while the database is unavailable."""
        statement = Statement(sql, "Asked by a test.", sql)
        while True:
            try:
                return await self.database.read(lambda tx: tx.fetch(statement, **parameters))
            except Unavailable:
                await asyncio.sleep(0.05)

    async def count(self, sql: str, **parameters: object) -> int:
        """The count that ``sql`` returns."""
        return int((await self.rows(f"SELECT count(*) AS n FROM {sql}", **parameters))[0]["n"])

    async def wait_until(self, holds: Callable[[], Awaitable[bool]], what: str, *, patience_sec: float = 240) -> None:
        """Wait for a condition; the failure message names it."""
        try:
            async with asyncio.timeout(patience_sec):
                while not await holds():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            jobs = await self.rows(
                "SELECT status, attempt_id, reason, count(*) AS n FROM jobs WHERE finished_at IS NULL "
                "GROUP BY status, attempt_id, reason"
            )
            raise AssertionError(f"never: {what}; unfinished: {[tuple(row) for row in jobs]}") from None

    async def is_idle(self) -> bool:
        """Whether nothing is left to do: no unfinished job, nothing to deliver, no message, read or not."""
        if await self.count("jobs WHERE finished_at IS NULL") or await self.count("outbox WHERE state = 'pending'"):
            return False
        try:
            return not sum((await self.stream.depths()).values()) and not sum(
                (await self.stream.pending_counts()).values()
            )
        except Unavailable:
            return False

    async def history(self, submissions: list[str]) -> str:
        """The attempts with worker, start, end (ms since the first one) and result, for failure messages."""
        rows = await self.rows(
            "SELECT jobs.submission_id, job_attempts.* FROM job_attempts JOIN jobs ON jobs.id = job_attempts.job_id "
            "ORDER BY job_attempts.started_at"
        )
        kept = [row for row in rows if row["submission_id"] in submissions]
        first = kept[0]["started_at"] if kept else 0
        return "\n".join(
            f"{row['submission_id']} attempt {row['attempt_id']} by {row['lease_owner']}: "
            f"{(row['started_at'] - first) // 1_000} to {(row['ended_at'] - first) // 1_000} ms, "
            f"{row['outcome']} {row['reason']} {row['error_code']} {row['error']}"
            for row in kept
        )

    async def check(self, submissions: list[str], expected: Callable[[str], Verdict] = oracle) -> None:
        """Each has the verdict that is ``expected``, and it was written once."""
        verdicts = {row["id"]: row["verdict"] for row in await self.rows("SELECT id, verdict FROM submissions")}
        both = {item: (verdicts.get(item), expected(item)) for item in submissions}
        wrong = {item: (got, should) for item, (got, should) in both.items() if got != should}
        assert not wrong, f"got and should have got: {wrong}\n{await self.history(list(wrong))}"
        ends = await self.rows("SELECT job_id FROM job_status_log WHERE to_status IN ('succeeded', 'failed')")
        assert set(Counter(row["job_id"] for row in ends).values()) == {1}, "each job ended once"
        decided = await self.rows(
            "SELECT submission_id FROM submission_status_log WHERE to_status IN ('accepted', 'wrong_answer', 'error')"
        )
        times = Counter(row["submission_id"] for row in decided)
        assert [times[item] for item in submissions] == [1] * len(submissions), "each verdict was written once"
        assert not await self.count("dead_letters")


def warm_up() -> None:
    """Have the server of processes import what they need before anybody waits for one on an event loop.

    On a busy machine that takes longer than a transaction may lie idle, and the tests' own would be ended meanwhile.
    """
    first = _CHILDREN.Process(target=int, daemon=True)
    first.start()
    first.join()
    first.close()


@asynccontextmanager
async def create_cluster(url: str, redis_url: str, environment: str) -> AsyncIterator[Cluster]:
    """Open a cluster on an empty database."""
    await asyncio.to_thread(warm_up)
    async with open_database(url, migrate=False, max_connections=4) as database:
        stream = RedisStream(redis_url, environment=environment)
        try:
            cluster = Cluster(url, redis_url, environment, database, stream)
            await cluster.create_user_and_problem()
            yield cluster
        finally:
            await stream.close()
