"""Handler of evaluations: evaluates one record, with the same compilers and sandbox as judging."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from adjudge.blobs.cache import BlobCache
from adjudge.domain.failure_class import JURY_FAULT
from adjudge.domain.states import JobStatus
from adjudge.evaluation.judged_result import author_result
from adjudge.evaluation.records import EvaluationRecord, EvaluationResult
from adjudge.evaluation.runner import EvaluationRunner
from adjudge.evaluation.shapes import RecordShape, read_any
from adjudge.judge.pipeline import Judge, JudgeOptions, SubmittedProgram
from adjudge.packages.problem_json import problem_from_json
from adjudge.store import Database
from adjudge.store.jobs.models import Job
from adjudge.store.judging import evaluations
from adjudge.store.judging.evaluation_models import FinishedEvaluation
from adjudge.store.problems import queries as problem_queries
from adjudge.worker.handler import HandlerResult
from adjudge.worker.handlers.revision_files import pinned_files
from adjudge.worker.slots import language_needs


class EvaluationHandler:
    """Evaluates the record of a job."""

    def __init__(
        self, database: Database, cache: BlobCache, runner: EvaluationRunner, judge: Judge, *, margin: float
    ) -> None:
        self._database = database
        self._cache = cache
        self._runner = runner
        self._judge = judge
        self._margin = margin

    def limit_keys(self, job_payload: Mapping[str, Any]) -> tuple[str, ...]:
        """The limit keys of the language and its family."""
        return language_needs(self._judge.languages, job_payload)

    async def run(self, job: Job) -> HandlerResult:
        """Evaluate the record; if it was deleted in the meantime, the job succeeds."""
        evaluation_id, record_id = job.payload["evaluation_id"], job.payload["record_id"]
        task = await self._database.read(lambda tx: evaluations.find_task(tx, evaluation_id, record_id))
        if task is None or not task.record:
            return HandlerResult(JobStatus.SUCCEEDED, {"gone": True})
        record = read_any(json.loads(task.record), RecordShape(task.shape))
        if not record.problem:
            return _finished(await self._runner.run(record), len(task.record))
        found = await self._judge_problem(job, record)
        if found.error:  # the record stays, so that it can be evaluated again
            outcome = FinishedEvaluation(None, json.dumps(found.document()), 0)
            return HandlerResult(JobStatus.FAILED, {"verdict": None}, outcome, JURY_FAULT, found.error)
        return _finished(found, len(task.record))

    async def _judge_problem(self, job: Job, record: EvaluationRecord) -> EvaluationResult:
        """Judge a solution as a submission would be, against the revision that was pinned when it was added."""
        revision_id = job.payload["revision_id"]
        revision = await self._database.read(lambda tx: problem_queries.find_revision(tx, revision_id))
        options = JudgeOptions(
            time_margin=self._margin, revision=revision.manifest_digest, job_id=job.id, attempt_id=job.attempt_id
        )
        program = SubmittedProgram(record.source, record.language)
        async with pinned_files(self._database, self._cache, revision_id) as files:
            result = await self._judge.judge(problem_from_json(revision.definition), files, program, options)
        return author_result(record.id, result)


def _finished(found: EvaluationResult, record_bytes: int) -> HandlerResult:
    verdict = found.verdict.value if found.verdict else None
    outcome = FinishedEvaluation(found.verdict, json.dumps(found.document()), record_bytes)
    return HandlerResult(JobStatus.SUCCEEDED, {"verdict": verdict}, outcome)
