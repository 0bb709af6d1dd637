"""Executions: programs that run on the caller's inputs, without a problem."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from adjudge.domain.errors import NotFound
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.notify import CHANNEL_JUDGING
from adjudge.store.engine.rows import column_values, given_columns
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import FinishedJob, Job, NewJob
from adjudge.store.judging.execution_models import (
    ExecutionRow,
    ExecutionTask,
    FinishedExecution,
    FinishedExecutionRun,
    NewExecution,
    OwnedRun,
)

JOB_KIND_EXECUTE: Final = "execute"
"""The kind of job that runs a program."""
JOB_KIND_CALLBACK: Final = "callback"
"""The kind of job that sends the result of an execution to its callback URL."""
CALLBACK_ATTEMPTS: Final = 3
_CALLBACK_PRIORITY: Final = 3
_CALLBACK_MS: Final = 60_000


_WITHOUT_RUNS: Final = {
    "runs": "'[]'",
    "is_running": "(SELECT jobs.status = 'running' FROM jobs WHERE jobs.id = executions.job_id)",
}

INSERT = Statement(
    "executions.insert",
    "Create executions.",
    """
    INSERT INTO executions (id, user_id, job_id, language, source, limits, options, client_data, callback_url,
                            created_at, expires_at, kept_bytes)
    SELECT given_id, given_user_id, given_job_id, given_language, given_source, given_limits, given_options,
           given_client_data, given_callback_url, {now}, {now} + given_ttl_us, given_kept_bytes
    FROM {given}
    """,
    input_columns={
        "given_id": "text",
        "given_user_id": "text",
        "given_job_id": "text",
        "given_language": "text",
        "given_source": "text",
        "given_limits": "jsonb",
        "given_options": "jsonb",
        "given_client_data": "jsonb",
        "given_callback_url": "text",
        "given_ttl_us": "bigint",
        "given_kept_bytes": "bigint",
    },
)
INSERT_RUNS = Statement(
    "execution_runs.insert",
    "Insert the inputs of executions.",
    """
    INSERT INTO execution_runs (execution_id, ordinal, stdin)
    SELECT given_id, given_ordinal, given_stdin FROM {given}
    """,
    input_columns={"given_id": "text", "given_ordinal": "bigint", "given_stdin": "text"},
)
FIND = Statement(
    "executions.find",
    "Read executions of a user.",
    "SELECT {columns} FROM executions WHERE user_id = :user_id AND id IN (SELECT given_id FROM {given})",
    row=ExecutionRow,
    columns=_WITHOUT_RUNS,
    input_columns={"given_id": "text"},
)
FIND_FINISHED = Statement(
    "executions.find_finished",
    "Read an execution for its callback.",
    "SELECT {columns} FROM executions WHERE id = :id",
    row=ExecutionRow,
    columns=_WITHOUT_RUNS,
)
SELECT_TASK = Statement(
    "executions.select_task",
    "Read what a worker needs to run an execution.",
    "SELECT {columns} FROM executions WHERE id = :id",
    row=ExecutionTask,
    columns={"execution_id": "id", "stdins": "'[]'"},
)
PAGE_OF_CLIENT = Statement(
    "executions.page_of_client",
    "List a user's executions with client data, newest first, by page number.",
    """
    SELECT {columns} FROM executions WHERE user_id = :user_id AND client_data IS NOT NULL
    ORDER BY id DESC LIMIT :limit OFFSET :offset
    """,
    row=ExecutionRow,
    columns=_WITHOUT_RUNS,
)
COUNT_OF_CLIENT = Statement(
    "executions.count_of_client",
    "Count a user's executions with client data.",
    "SELECT COUNT(*) AS count FROM executions WHERE user_id = :user_id AND client_data IS NOT NULL",
)
CALLBACKS = Statement(
    "executions.callbacks",
    "Of finished executions, select those whose result is sent to a callback URL.",
    "SELECT id FROM executions WHERE callback_url IS NOT NULL AND id IN (SELECT given_id FROM {given}) ORDER BY id",
    input_columns={"given_id": "text"},
)
PAGE = Statement(
    "executions.page",
    "List a user's executions, newest first, keyset-paginated.",
    "SELECT {columns} FROM executions WHERE user_id = :user_id AND id < :before ORDER BY id DESC LIMIT :limit",
    row=ExecutionRow,
    columns=_WITHOUT_RUNS,
)
FINISH = Statement(
    "executions.finish",
    "Finish executions.",
    """
    UPDATE executions SET job_id = given_job_id, state = given_state, verdict = given_verdict,
        compile_message = given_message, finished_at = {now}, kept_bytes = COALESCE(given_kept_bytes, kept_bytes)
    FROM {given} WHERE id = given_id
    """,
    input_columns={
        "given_id": "text",
        "given_job_id": "text",
        "given_state": "text",
        "given_verdict": "text",
        "given_message": "text",
        "given_kept_bytes": "bigint",
    },
)
KEPT_BYTES = Statement(
    "executions.kept_bytes",
    "Sum the stored and reserved size of a user's executions and evaluations.",
    """
    SELECT (SELECT COALESCE(SUM(kept_bytes), 0) FROM executions WHERE user_id = :user_id)
        + (SELECT COALESCE(SUM(kept_bytes), 0) FROM evaluations WHERE user_id = :user_id) AS kept_bytes
    """,
)
DELETE_EXPIRED = Statement(
    "executions.delete_expired",
    "Delete expired executions.",
    """
    DELETE FROM executions WHERE id IN (
        SELECT id FROM executions WHERE expires_at <= {now} AND finished_at IS NOT NULL
        ORDER BY expires_at LIMIT :limit)
    """,
)
STDINS = Statement(
    "execution_runs.stdins",
    "Read the inputs of an execution.",
    "SELECT stdin FROM execution_runs WHERE execution_id = :id ORDER BY ordinal",
)
RUNS = Statement(
    "execution_runs.of_executions",
    "Read the results of executions' inputs.",
    """
    SELECT {columns} FROM execution_runs WHERE execution_id IN (SELECT given_id FROM {given})
    ORDER BY execution_id, ordinal
    """,
    row=OwnedRun,
    input_columns={"given_id": "text"},
)
FINISH_RUNS = Statement(
    "execution_runs.finish",
    "Store the results of executions' inputs.",
    """
    UPDATE execution_runs SET verdict = given_verdict, time_ms = given_time_ms, wall_ms = given_wall_ms,
        mem_kb = given_mem_kb, exit_code = given_exit_code, exit_signal = given_exit_signal,
        limit_hit = given_limit_hit, stdout = given_stdout, stderr = given_stderr, is_base64 = given_is_base64,
        is_truncated = given_is_truncated
    FROM {given} WHERE execution_id = given_id AND ordinal = given_ordinal
    """,
    input_columns={"given_id": "text", **given_columns(FinishedExecutionRun)},
)
LOCK_USER = Statement(
    "executions.lock_user",
    "Lock a user, so that two calls do not both count the same free space.",
    "SELECT id FROM users WHERE id = :user_id FOR NO KEY UPDATE",
)


def _payload(item: NewExecution) -> dict[str, Any]:
    """The payload of the job: what the worker and the log lines need."""
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
            json.dumps(item.options),
            None if item.client_data is None else json.dumps(item.client_data),
            item.callback_url,
            item.ttl_ms * 1_000,
            item.kept_bytes,
        )
        for item, job_id in zip(items, job_ids, strict=True)
    ]
    await tx.execute(INSERT, rows)
    inputs = [(item.id, ordinal, stdin) for item in items for ordinal, stdin in enumerate(item.stdins, 1)]
    await tx.execute(INSERT_RUNS, inputs)
    return job_ids


async def find_task(tx: Tx, execution_id: str) -> ExecutionTask | None:
    """Read what is to be executed; None if the execution was deleted."""
    task = await fetch_one(tx, SELECT_TASK, id=execution_id)
    stdins = await tx.fetch(STDINS, id=execution_id)
    return None if task is None else replace(task, stdins=tuple(item["stdin"] for item in stdins))


async def find(tx: Tx, execution_id: str, user_id: str) -> ExecutionRow:
    """Read one of a user's executions with its results; that of another user is NotFound."""
    found = await find_many(tx, [execution_id], user_id)
    if execution_id not in found:
        raise NotFound("execution", execution_id)
    return found[execution_id]


async def find_many(tx: Tx, execution_ids: Sequence[str], user_id: str) -> dict[str, ExecutionRow]:
    """Read executions of a user with their results; those that do not exist or are not the user's are left out."""
    if not execution_ids:
        return {}
    return await _with_runs(
        tx, await tx.fetch(FIND, [(execution_id,) for execution_id in execution_ids], user_id=user_id)
    )


async def find_finished(tx: Tx, execution_id: str) -> ExecutionRow | None:
    """Read an execution whose result is to be sent; None if it was deleted."""
    row = await fetch_one(tx, FIND_FINISHED, id=execution_id)
    return None if row is None else (await _with_runs(tx, [row]))[execution_id]


async def _with_runs(tx: Tx, rows: Sequence[ExecutionRow]) -> dict[str, ExecutionRow]:
    if not rows:
        return {}
    runs = defaultdict(list)
    for item in await tx.fetch(RUNS, [(row.id,) for row in rows]):
        runs[item.execution_id].append(item.run)
    return {row.id: replace(row, runs=tuple(runs[row.id])) for row in rows}


async def page_of_client(tx: Tx, user_id: str, *, page: int, limit: int) -> tuple[list[ExecutionRow], int]:
    """One page of a user's executions with client data, newest first, and how many there are in all."""
    rows = await tx.fetch(PAGE_OF_CLIENT, user_id=user_id, limit=limit, offset=(page - 1) * limit)
    count = await fetch_one(tx, COUNT_OF_CLIENT, user_id=user_id)
    return list((await _with_runs(tx, rows)).values()), int(count["count"]) if count else 0


async def page(tx: Tx, user_id: str, *, before: str, limit: int) -> list[ExecutionRow]:
    """List a user's executions without their results, newest first."""
    return await tx.fetch(PAGE, user_id=user_id, before=before, limit=limit)


async def kept_bytes(tx: Tx, user_id: str) -> int:
    """The stored and reserved size of a user's executions and evaluations; locks the user until the commit."""
    await tx.fetch(LOCK_USER, user_id=user_id)
    row = await fetch_one(tx, KEPT_BYTES, user_id=user_id)
    return int(row["kept_bytes"]) if row else 0


async def delete_expired(tx: Tx, *, limit: int = 200) -> int:
    """Delete expired executions; return their number."""
    return await tx.execute(DELETE_EXPIRED, limit=limit)


class ExecutionListener:
    """Updates executions with their jobs."""

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """The status is that of the job."""

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """The status is that of the job."""

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """Store the results of all inputs."""
        runs = [row for item in ended for row in _run_rows(item)]
        if runs:
            await tx.execute(FINISH_RUNS, runs)
        await tx.execute(FINISH, [_end_row(item) for item in ended])
        await _enqueue_callbacks(tx, [item.job.payload["execution_id"] for item in ended])
        tx.notify(CHANNEL_JUDGING)


async def _enqueue_callbacks(tx: Tx, execution_ids: Sequence[str]) -> None:
    """Create the jobs of callbacks in the transaction of the result, so that no callback is lost."""
    rows = await tx.fetch(CALLBACKS, [(execution_id,) for execution_id in execution_ids])
    jobs = [
        NewJob(
            id=new_id(),
            kind=JOB_KIND_CALLBACK,
            max_attempts=CALLBACK_ATTEMPTS,
            priority=_CALLBACK_PRIORITY,
            timeout_ms=_CALLBACK_MS,
            payload={"execution_id": row["id"]},
        )
        for row in rows
    ]
    await JobCommands({}).enqueue(tx, jobs)  # creating jobs calls no listener


def _end_row(item: FinishedJob) -> tuple[object, ...]:
    states = {JobStatus.SUCCEEDED: "finished", JobStatus.CANCELED: "canceled"}
    found = item.typed_result if isinstance(item.typed_result, FinishedExecution) else None
    state = states.get(item.job.status, "failed")
    verdict = found.verdict.value if found else Verdict.SE.value if state == "failed" else None
    execution_id = item.job.payload["execution_id"]  # a replay is another job of the same execution
    message, kept_bytes = (found.compile_message, found.kept_bytes) if found else (None, None)
    return (execution_id, item.job.id, state, verdict, message, kept_bytes)


def _run_rows(item: FinishedJob) -> list[tuple[object, ...]]:
    if not isinstance(item.typed_result, FinishedExecution):
        return []
    execution_id = item.job.payload["execution_id"]
    return [(execution_id, *column_values(run).values()) for run in item.typed_result.runs]
