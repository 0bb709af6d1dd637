"""Handler of judge runs: judges a submission with the same pipeline as ``adjudge judge``."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from adjudge.blobs.cache import BlobCache
from adjudge.blobs.driver import BlobStore
from adjudge.domain.errors import InvalidInput
from adjudge.domain.failure_class import JURY_FAULT
from adjudge.domain.problem import Feedback, Problem
from adjudge.domain.programs import SourceFormat
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.judge.case_results import CaseResult as JudgedCase
from adjudge.judge.pipeline import CaseDone, CompileDone, Judge, JudgeOptions, SubmittedProgram
from adjudge.judge.result_document import JudgeResult
from adjudge.judge.source_bundle import decode_bundle
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.observe import tracing
from adjudge.observe.tracing import Span
from adjudge.packages.problem_json import problem_from_json
from adjudge.store import Database
from adjudge.store.jobs.models import Job
from adjudge.store.judging.commands import find_judge_task
from adjudge.store.judging.models import CaseResultRow, Judgement, JudgeTask
from adjudge.worker.handler import HandlerResult
from adjudge.worker.handlers.progress import NULL_PROGRESS_REPORTER, ProgressReporter, ProgressWriter
from adjudge.worker.handlers.revision_files import pinned_files
from adjudge.worker.slots import language_needs

_ERROR_CHARACTERS = 2_000
SOURCE_BYTES_MAX = 16 * 1024 * 1024


class JudgeHandler:
    """Judges the submission that a job names, against the revision that was pinned when it was submitted."""

    def __init__(
        self,
        database: Database,
        blobs: BlobStore,
        cache: BlobCache,
        judge: Judge,
        *,
        margin: float,
        board: ProgressWriter | None = None,
    ) -> None:
        self._board = board
        self._database = database
        self._blobs = blobs
        self._cache = cache
        self._judge = judge
        self._margin = margin

    def limit_keys(self, job_payload: Mapping[str, Any]) -> tuple[str, ...]:
        """The limit keys of the language and its family."""
        return language_needs(self._judge.languages, job_payload)

    async def run(self, job: Job) -> HandlerResult:
        """Judge; a broken package or checker gives the verdict SE, because a retry would not help."""
        if job.submission_id is None:
            raise InvalidInput(f"Job {job.id!r} names no submission.", field="submission_id")
        reporter = self._board.reporter(job) if self._board else NULL_PROGRESS_REPORTER
        reporter.report("preparing")
        submission_id, revision_id = job.submission_id, job.payload.get("revision_id")
        task = await self._database.read(lambda tx: find_judge_task(tx, submission_id, revision_id))
        source = await self._source(task)
        options = JudgeOptions(
            time_margin=self._margin, revision=task.manifest_digest, job_id=job.id, attempt_id=job.attempt_id
        )
        problem = problem_from_json(json.loads(task.definition))
        async with pinned_files(self._database, self._cache, task.revision_id) as files:
            watched = JudgeProgressReporter(problem, reporter, job)
            result = await self._judge.judge(problem, files, SubmittedProgram(source, task.language), options, watched)
        return _completion(result)

    async def _source(self, task: JudgeTask) -> ProgramSource:
        data = await self._stored(task)
        if task.source_format == SourceFormat.FILES:
            return decode_bundle(data)
        return ProgramSource((SourceFile("source", data),))

    async def _stored(self, task: JudgeTask) -> bytes:
        if task.source_text is not None:
            return task.source_text.encode()
        data = bytearray()
        async with aclosing(self._blobs.open(task.source_digest)) as pieces:
            async for piece in pieces:
                data += piece
                if len(data) > SOURCE_BYTES_MAX:
                    raise InvalidInput(f"source: longer than {SOURCE_BYTES_MAX} bytes.", field="source")
        return bytes(data)


class JudgeProgressReporter:
    """Reports the progress of judging, test by test, and which tests the author may see."""

    def __init__(self, problem: Problem, reporter: ProgressReporter, job: Job) -> None:
        self._job = job
        self._step_ns = time.time_ns()
        """When the current step began, for spans."""
        self._problem = problem
        self._reporter = reporter
        self._cases = {case.name: case for case in problem.cases}
        self._failed: set[str] = set()

    def __call__(self, event: CompileDone | CaseDone) -> None:
        is_sampled = tracing.state.is_on and tracing.is_sampled(self._job.trace_id)
        if isinstance(event, CompileDone):
            if is_sampled:
                self._record_span("compile")
            self._reporter.report("testing", 0, len(self._cases))
            return
        row = event.result
        if is_sampled:
            self._record_span(f"test {row.name}", row.run.wall_ms if row.run else 0, row.verdict)
        step = {
            "name": row.name,
            "verdict": row.verdict.value if row.verdict else None,
            "time_ms": row.run.time_ms if row.run else 0,
            "mem_kb": row.run.mem_kb if row.run else 0,
            "shown": self._is_shown(row),
        }
        self._reporter.report("testing", event.index + 1, event.total, step=step)

    def _record_span(self, name: str, wall_ms: int | None = None, verdict: Verdict | None = None) -> None:
        """The span of a step that has just ended; test cases may run at the same time, so each has its own duration."""
        now_ns, job = time.time_ns(), self._job
        tracing.record(
            Span(
                name=name,
                trace_id=job.trace_id or "",
                span_id=tracing.derive_span_id(name, job.id, job.attempt_id),
                start_ns=self._step_ns if wall_ms is None else now_ns - wall_ms * 1_000_000,
                end_ns=now_ns,
                parent_id=tracing.attempt_span_id(job.id, job.attempt_id),
                attributes={"adjudge.verdict": verdict.value if verdict else None},
            )
        )

    def _is_shown(self, row: JudgedCase) -> bool:
        """As in the result's ``author_view``: a group that shows its first failure shows nothing after it."""
        feedback = self._problem.feedback_of(self._cases[row.name])
        if feedback in (Feedback.NONE.value, Feedback.POINTS.value) or row.group in self._failed:
            return False
        if feedback == Feedback.FIRST_FAILURE.value and row.verdict not in (None, Verdict.AC):
            self._failed.add(row.group)
        return True


def _completion(result: JudgeResult) -> HandlerResult:
    judgement = Judgement(
        verdict=result.verdict,
        score=float(result.score),
        time_ms=result.time_ms,
        mem_kb=result.mem_kb,
        cases=tuple(_case(case) for case in result.cases if case.verdict is not None),
    )
    if result.verdict is not Verdict.SE:
        return HandlerResult(JobStatus.SUCCEEDED, result.document(), judgement)
    error = result.message or "A program or file of the problem is broken."
    return HandlerResult(JobStatus.FAILED, result.document(), judgement, JURY_FAULT, error[:_ERROR_CHARACTERS])


def _case(case: JudgedCase) -> CaseResultRow:
    run = case.run
    return CaseResultRow(
        name=case.name,
        verdict=case.verdict or Verdict.SE,
        time_ms=run.time_ms if run else 0,
        wall_ms=run.wall_ms if run else 0,
        mem_kb=run.mem_kb if run else 0,
        group=case.group,
        score=float(case.score.value) if case.score else None,
        exit_code=run.exit_code if run else None,
        exit_signal=run.exit_signal if run else None,
        limit_hit=run.limit.value if run and run.limit else None,
        message=case.message or None,
    )
