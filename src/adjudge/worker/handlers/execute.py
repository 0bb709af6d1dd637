"""Handler of executions: runs a program on inputs, with the same compilers and sandbox as judging."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adjudge.domain.limits import Limits
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.judge.execution import ExecutionOptions, ExecutionRunResult, execute
from adjudge.judge.pipeline import Judge
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.store import Database
from adjudge.store.jobs.models import Job
from adjudge.store.judging import executions
from adjudge.store.judging.execution_models import FinishedExecution, FinishedExecutionRun
from adjudge.worker.handler import HandlerResult
from adjudge.worker.handlers.progress import NULL_PROGRESS_REPORTER, ProgressWriter
from adjudge.worker.slots import language_needs

MESSAGE_CHARS = 16_000


EXECUTION_FAULT = "EXECUTION_FAULT"
"""The error code of an execution that the sandbox cannot run, and a retry would not help."""


class ExecutionHandler:
    """Runs the program of a job on its inputs."""

    def __init__(
        self,
        database: Database,
        judge: Judge,
        *,
        board: ProgressWriter | None = None,
        output_bytes: int = 4 * 1024 * 1024,
    ) -> None:
        self._output_bytes = output_bytes
        self._database = database
        self._judge = judge
        self._board = board

    def limit_keys(self, job_payload: Mapping[str, Any]) -> tuple[str, ...]:
        """The limit keys of the language and its family."""
        return language_needs(self._judge.languages, job_payload)

    async def run(self, job: Job) -> HandlerResult:
        """Run the program; if the execution was deleted in the meantime, the job succeeds."""
        reporter = self._board.reporter(job) if self._board else NULL_PROGRESS_REPORTER
        task = await self._database.read(lambda tx: executions.find_task(tx, job.payload["execution_id"]))
        if task is None:
            return HandlerResult(JobStatus.SUCCEEDED, {"gone": True})
        total = len(task.stdins)
        reporter.report("compiling", 0, total)
        found = await execute(
            self._judge,
            self._judge.languages.get(task.language),
            ProgramSource((SourceFile("source", task.source.encode()),)),
            [text.encode() for text in task.stdins],
            Limits(**task.limits),
            options=ExecutionOptions.decode(task.options),
            job_id=job.id,
            attempt_id=job.attempt_id,
            progress=lambda done: reporter.report("running", done, total),
        )
        runs = tuple(_run(ordinal, run) for ordinal, run in enumerate(_cut(found.runs, self._output_bytes), 1))
        kept_bytes = task.input_bytes
        kept_bytes += sum(len(run.stdout.encode()) + len(run.stderr.encode()) for run in runs)
        message = found.compile_message.replace("\0", "␀")[:MESSAGE_CHARS]
        result, outcome = {"verdict": found.verdict.value}, FinishedExecution(found.verdict, message, runs, kept_bytes)
        if found.verdict is not Verdict.SE:
            return HandlerResult(JobStatus.SUCCEEDED, result, outcome)
        return HandlerResult(JobStatus.FAILED, result, outcome, EXECUTION_FAULT, message or "It could not be executed.")


def _cut(runs: Sequence[ExecutionRunResult], left_bytes: int) -> Iterator[ExecutionRunResult]:
    """The runs, with their outputs cut to the total size that may be stored."""
    for run in runs:
        stdout = run.stdout[:left_bytes]
        stderr = run.stderr[: left_bytes - len(stdout)]
        left_bytes -= len(stdout) + len(stderr)
        is_cut = len(stdout) + len(stderr) < len(run.stdout) + len(run.stderr)
        yield replace(run, stdout=stdout, stderr=stderr, is_truncated=run.is_truncated or is_cut)


def _run(ordinal: int, run: ExecutionRunResult) -> FinishedExecutionRun:
    stdout, stderr, is_base64 = encode_outputs(run.stdout, run.stderr)
    figures = run.usage
    return FinishedExecutionRun(
        ordinal=ordinal,
        verdict=figures.verdict,
        time_ms=figures.time_ms,
        wall_ms=figures.wall_ms,
        mem_kb=figures.mem_kb,
        exit_code=figures.exit_code,
        exit_signal=figures.exit_signal,
        limit_hit=figures.limit.value if figures.limit else None,
        stdout=stdout,
        stderr=stderr,
        is_base64=is_base64,
        is_truncated=run.is_truncated,
    )


def encode_outputs(stdout: bytes, stderr: bytes) -> tuple[str, str, bool]:
    """Outputs as text that every database and client can store: unchanged, or both in base64."""
    try:
        texts = stdout.decode(), stderr.decode()
    except UnicodeDecodeError:
        texts = ("\0", "")
    if "\0" in texts[0] + texts[1]:
        return base64.b64encode(stdout).decode(), base64.b64encode(stderr).decode(), True
    return (*texts, False)
