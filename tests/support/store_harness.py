"""A store on either database with a manual clock: tests let leases expire by advancing it, not by sleeping."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

from adjudge.contests.listener import CONTEST_LISTENER
from adjudge.domain.ids import new_id
from adjudge.observe import metrics
from adjudge.store import Database, Tx, migrations
from adjudge.store.accounts import users
from adjudge.store.engine.connect import sqlite_path
from adjudge.store.engine.postgres import PostgresDatabase
from adjudge.store.engine.sqlite import SqliteDatabase
from adjudge.store.engine.statement import Dialect, Row, Statement
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import BatchResult, Fence, Job, JobListener, NewJob, PoisonJob
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.evaluations import JOB_KIND_EVALUATE, EvaluationListener
from adjudge.store.judging.executions import JOB_KIND_EXECUTE, ExecutionListener
from adjudge.store.judging.listeners import judge_run_listeners
from adjudge.store.judging.models import NewSubmission, SubmissionIds
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import models as problem_models
from adjudge.store.problems.imports import ImportListener
from adjudge.store.schema import METADATA
from adjudge.store.webhooks.commands import JOB_KIND_WEBHOOK, WebhookDeliveryListener
from tests.support.databases import run_in_thread

T = TypeVar("T")

NOON_US = 1_700_000_000_000_000
POSTGRES_NOW = "(SELECT us FROM test_clock)"


def adhoc_statement(sql: str) -> Statement:
    """A statement of a test; its name is its text."""
    return Statement(name=sql, purpose="Used by a test.", sql=sql)


class ManualClock:
    """A clock that only changes when it is advanced."""

    def __init__(self) -> None:
        self.now_us = NOON_US
        self.on_advance: Callable[[int], Awaitable[None]] | None = None

    def read(self) -> int:
        """The time in microseconds, for SQLite."""
        return self.now_us

    async def advance(self, ms: int) -> None:
        """Advance by ``ms`` milliseconds."""
        self.now_us += ms * 1_000
        if self.on_advance is not None:
            await self.on_advance(self.now_us)


def _listeners() -> dict[str, JobListener]:
    return {
        "judge": judge_run_listeners(CONTEST_LISTENER),
        "import": ImportListener(),
        JOB_KIND_EXECUTE: ExecutionListener(),
        JOB_KIND_EVALUATE: EvaluationListener(),
        JOB_KIND_WEBHOOK: WebhookDeliveryListener(),
    }


@dataclass
class StoreHarness:
    """A database, its clock, and the operations on it."""

    url: str
    database: Database
    clock: ManualClock
    jobs: JobCommands = field(default_factory=lambda: JobCommands(_listeners(), random_unit=lambda: 0.0))

    @property
    def dialect(self) -> Dialect:
        """The dialect of the database."""
        return self.database.dialect

    @property
    def submissions(self) -> SubmissionCommands:
        """The operations on submissions."""
        return SubmissionCommands(self.jobs, listener=CONTEST_LISTENER)

    async def transact(self, operation: Callable[[Tx], Awaitable[T]]) -> T:
        """Run one transaction."""
        return await self.database.transact(operation)

    async def rows(self, sql: str, **parameters: object) -> list[dict[str, Any]]:
        """Read rows with SQL of the test."""
        found = await self.database.read(lambda tx: tx.fetch(adhoc_statement(sql), **parameters))
        return [dict(row) for row in _mappings(found)]

    async def row(self, sql: str, **parameters: object) -> dict[str, Any]:
        """Read exactly one row."""
        (only,) = await self.rows(sql, **parameters)
        return only

    async def write(self, sql: str, **parameters: object) -> int:
        """Change rows with SQL of the test, as an operator could."""
        return await self.database.transact(lambda tx: tx.execute(adhoc_statement(sql), **parameters))

    async def job(self, job_id: str) -> dict[str, Any]:
        """One job's row."""
        return await self.row("SELECT * FROM jobs WHERE id = :id", id=job_id)

    async def enqueue(self, kind: str = "node", **fields: Any) -> str:
        """Create one job; return its id."""
        return (await self.enqueue_many(1, kind, **fields))[0]

    async def enqueue_many(self, count: int, kind: str = "node", **fields: Any) -> list[str]:
        """Create jobs; return their ids."""
        jobs = [NewJob(id=new_id(), kind=kind, **fields) for _ in range(count)]
        return await self.transact(lambda tx: self.jobs.enqueue(tx, jobs))

    async def dead_letter(self, job_ids: Sequence[str], code: str) -> None:
        """Give jobs dead letters."""
        poison_jobs = [PoisonJob(job_id, code, "broken by a test") for job_id in job_ids]
        await self.transact(lambda tx: self.jobs.dead_letter(tx, poison_jobs, actor="w1"))

    async def claim(self, *job_ids: str, worker: str = "w1", lease_ms: int = 15_000) -> BatchResult[Job]:
        """Claim jobs."""
        return await self.transact(lambda tx: self.jobs.claim(tx, job_ids, worker=worker, lease_ms=lease_ms))

    async def claimed(self, worker: str = "w1", kind: str = "node", **fields: Any) -> Fence:
        """Create a job and claim it; return the fence."""
        outcome = await self.claim(await self.enqueue(kind, **fields), worker=worker)
        return Fence(outcome.done[0].id, outcome.done[0].attempt_id, worker)

    async def submit(self, count: int = 1) -> list[SubmissionIds]:
        """Create submissions to a new problem."""
        user, problem, revision = new_id(), new_id(), new_id()
        items = [
            NewSubmission(new_id(), user, problem, revision, "cpp", source_digest="0" * 64, source_bytes=1)
            for _ in range(count)
        ]

        async def operation(tx: Tx) -> list[SubmissionIds]:
            await users.insert(tx, users.NewUser(user, f"user-{user}"))
            await problem_commands.insert(tx, problem_models.NewProblem(problem, f"slug-{problem}", "A problem", user))
            await problem_commands.add_revision(
                tx, problem_models.NewRevision(revision, problem, "plain", "0" * 64, user)
            )
            return await self.submissions.submit(tx, items)

        return await self.transact(operation)


def _mappings(rows: Sequence[Row]) -> list[Any]:
    return list(rows)


def fence_of(job: Job) -> Fence:
    """The fence of a claimed job."""
    return Fence(job.id, job.attempt_id, job.actor or "")


def metric_value(name: str, **labels: str) -> float:
    """What a metric stands at."""
    return metrics.REGISTRY.get_sample_value(f"adjudge_{name}", labels) or 0.0


def migrated_sqlite(folder: Path) -> Path:
    """A migrated SQLite file, to be copied."""
    path = folder / "template.db"
    run_in_thread(migrations.upgrade(f"sqlite:///{path}"))
    return path


def copied_sqlite(template: Path, folder: Path) -> str:
    """The URL of a copy of the migrated file."""
    path = folder / "adjudge.db"
    shutil.copy(template, path)
    return f"sqlite:///{path}"


async def _set_up_clock(tx: Tx) -> None:
    await tx.execute(adhoc_statement("CREATE TABLE IF NOT EXISTS test_clock (us bigint)"))
    await tx.execute(adhoc_statement("DELETE FROM test_clock"))
    await tx.execute(adhoc_statement("INSERT INTO test_clock VALUES (:us)"), us=NOON_US)


async def truncate_all(url: str) -> None:
    """Delete all rows of a PostgreSQL database without its triggers, which reject some deletions."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(";".join(f"DELETE FROM {table}" for table in reversed(METADATA.sorted_tables)))
    finally:
        await connection.close()


@asynccontextmanager
async def open_store(url: str, *, synchronous: str = "OFF") -> AsyncIterator[StoreHarness]:
    """Open the database at ``url`` with a manual clock."""
    clock = ManualClock()
    path = sqlite_path(url)
    if path is not None:
        database: Database = SqliteDatabase(path, synchronous=synchronous, clock=clock.read)
    else:
        database = await PostgresDatabase.open(url, now=POSTGRES_NOW)
        await database.transact(_set_up_clock)

        async def set_clock(now_us: int) -> None:
            update = adhoc_statement("UPDATE test_clock SET us = :us")
            await database.transact(lambda tx: tx.execute(update, us=now_us))

        clock.on_advance = set_clock
    try:
        yield StoreHarness(url, database, clock)
    finally:
        await database.close()
