"""Executions: a program run on inputs of the caller's, without a problem and without a verdict on its answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.domain.errors import NotFound
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.notify import CHANNEL_JUDGING
from adjudge.store.engine.statement import Row
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import FinishedJob, Job, NewJob
from adjudge.store.judging import execution_statements as sql

JOB_KIND_EXECUTE: Final = "execute"
"""The kind of job that runs a program."""


@dataclass(frozen=True, slots=True)
class NewExecution:
    """A program to be run."""

    id: str
    user_id: str
    language: str
    source: str
    stdins: tuple[str, ...]
    limits: Mapping[str, int]
    ttl_ms: int
    """How long it is kept."""
    output_bytes: int = 0
    """How much its outputs may take; reserved until it has ended."""
    priority: int = 2
    delay_ms: int = 0
    timeout_ms: int | None = None
    trace_id: str | None = None
    request_id: str | None = None

    @property
    def kept_bytes(self) -> int:
        """How much of the database it takes at most."""
        return input_bytes(self.source, self.stdins) + self.output_bytes


def input_bytes(source: str, stdins: Sequence[str]) -> int:
    """How much is kept of what an execution was given."""
    return len(source.encode()) + sum(len(stdin.encode()) for stdin in stdins)


@dataclass(frozen=True, slots=True)
class FinishedExecutionRun:
    """What one input came to."""

    ordinal: int
    verdict: Verdict
    time_ms: int
    wall_ms: int
    mem_kb: int
    exit_code: int
    exit_signal: int
    limit_hit: str | None
    stdout: str
    stderr: str
    is_base64: bool
    is_truncated: bool


@dataclass(frozen=True, slots=True)
class FinishedExecution:
    """What running came to: the outcome that a ``Finish`` of an execution carries."""

    verdict: Verdict
    compile_message: str
    runs: tuple[FinishedExecutionRun, ...] = ()
    kept_bytes: int | None = None
    """How much is kept of the execution, its inputs included; None leaves what was reserved."""


@dataclass(frozen=True, slots=True)
class ExecutionTask:
    """What a worker needs to run a program."""

    execution_id: str
    language: str
    source: str
    limits: Mapping[str, int]
    stdins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExecutionRow:
    """An execution as it stands."""

    id: str
    user_id: str
    job_id: str
    language: str
    limits: Mapping[str, int]
    state: str
    verdict: str | None
    compile_message: str | None
    created_at: int
    finished_at: int | None
    expires_at: int
    runs: tuple[Mapping[str, Any], ...] = ()


def _payload(item: NewExecution) -> dict[str, Any]:
    """What its worker needs, and what every line of its log says of it."""
    payload = {"execution_id": item.id, "language": item.language, "user_id": item.user_id}
    return payload if item.request_id is None else {**payload, "request_id": item.request_id}


async def create(tx: Tx, jobs: JobCommands, items: Sequence[NewExecution], *, new_id: IdFactory = new_id) -> list[str]:
    """Create executions with their jobs, all or none; return the jobs' ids."""
    made = [
        NewJob(
            id=new_id(),
            kind=JOB_KIND_EXECUTE,
            dedupe_key=item.id,
            priority=item.priority,
            delay_ms=item.delay_ms,
            timeout_ms=item.timeout_ms,
            payload=_payload(item),
            actor=item.user_id,
            trace_id=item.trace_id,
        )
        for item in items
    ]
    job_ids = await jobs.enqueue(tx, made)
    rows = [
        (
            item.id,
            item.user_id,
            job_id,
            item.language,
            item.source,
            json.dumps(item.limits),
            item.ttl_ms * 1_000,
            item.kept_bytes,
        )
        for item, job_id in zip(items, job_ids, strict=True)
    ]
    await tx.execute(sql.INSERT, rows)
    inputs = [(item.id, ordinal, stdin) for item in items for ordinal, stdin in enumerate(item.stdins, 1)]
    await tx.execute(sql.INSERT_RUNS, inputs)
    return job_ids


async def find_task(tx: Tx, execution_id: str) -> ExecutionTask | None:
    """What is to be run; nothing where it is gone."""
    row = await fetch_one(tx, sql.FIND, id=execution_id)
    if row is None:
        return None
    stdins = tuple(item["stdin"] for item in await tx.fetch(sql.STDINS, id=execution_id))
    return ExecutionTask(row["id"], row["language"], row["source"], json.loads(row["limits"]), stdins)


async def find(tx: Tx, execution_id: str, user_id: str) -> ExecutionRow:
    """One of a user's executions with its runs; another's does not exist."""
    row = await fetch_one(tx, sql.FIND, id=execution_id)
    if row is None or row["user_id"] != user_id:
        raise NotFound("execution", execution_id)
    return _execution(row, await tx.fetch(sql.RUNS, id=execution_id))


async def page(tx: Tx, user_id: str, *, before: str, limit: int) -> list[ExecutionRow]:
    """A user's executions without their runs, the newest first."""
    rows = await tx.fetch(sql.PAGE, user_id=user_id, before=before, limit=limit)
    return [_execution(row, ()) for row in rows]


async def kept_bytes(tx: Tx, user_id: str) -> int:
    """How much is kept of a user's executions, and reserved for those under way; the user is locked until commit."""
    await tx.fetch(sql.LOCK_USER, user_id=user_id)
    row = await fetch_one(tx, sql.KEPT_BYTES, user_id=user_id)
    return int(row["kept_bytes"]) if row else 0


async def delete_expired(tx: Tx, *, limit: int = 200) -> int:
    """Remove what was kept long enough; return how many."""
    return await tx.execute(sql.DELETE_EXPIRED, limit=limit)


class ExecutionListener:
    """Keeps executions in step with their jobs."""

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """Its job says that it runs."""

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """Its job says that it waits."""

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """Write what came out, input by input."""
        runs = [row for item in ended for row in _run_rows(item)]
        if runs:
            await tx.execute(sql.FINISH_RUNS, runs)
        await tx.execute(sql.FINISH, [_end_row(item) for item in ended])
        tx.notify(CHANNEL_JUDGING)


def _end_row(item: FinishedJob) -> tuple[object, ...]:
    states = {JobStatus.SUCCEEDED: "finished", JobStatus.CANCELED: "canceled"}
    found = item.typed_result if isinstance(item.typed_result, FinishedExecution) else None
    state = states.get(item.job.status, "failed")
    verdict = found.verdict.value if found else Verdict.SE.value if state == "failed" else None
    execution_id = item.job.payload["execution_id"]  # not its job's id: a replay is another job
    message, kept_bytes = (found.compile_message, found.kept_bytes) if found else (None, None)
    return (execution_id, item.job.id, state, verdict, message, kept_bytes)


def _run_rows(item: FinishedJob) -> list[tuple[object, ...]]:
    if not isinstance(item.typed_result, FinishedExecution):
        return []
    return [
        (
            item.job.payload["execution_id"],
            run.ordinal,
            run.verdict.value,
            run.time_ms,
            run.wall_ms,
            run.mem_kb,
            run.exit_code,
            run.exit_signal,
            run.limit_hit,
            run.stdout,
            run.stderr,
            run.is_base64,
            run.is_truncated,
        )
        for run in item.typed_result.runs
    ]


def _execution(row: Row, runs: Sequence[Row]) -> ExecutionRow:
    return ExecutionRow(
        row["id"],
        row["user_id"],
        row["job_id"],
        row["language"],
        json.loads(row["limits"]),
        row["state"],
        row["verdict"],
        row["compile_message"],
        row["created_at"],
        row["finished_at"],
        row["expires_at"],
        tuple({name: run[name] for name in sql.RUN_COLUMNS} for run in runs),
    )
