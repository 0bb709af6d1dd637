"""Handler of evaluations: evaluates one record, with the same compilers and sandbox as judging."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from adjudge.domain.states import JobStatus
from adjudge.evaluation.runner import EvaluationRunner
from adjudge.evaluation.shapes import RecordShape, read_any
from adjudge.judge.languages import Languages
from adjudge.store import Database
from adjudge.store.jobs.models import Job
from adjudge.store.judging import evaluations
from adjudge.store.judging.evaluation_models import FinishedEvaluation
from adjudge.worker.handler import HandlerResult
from adjudge.worker.slots import language_needs


class EvaluationHandler:
    """Evaluates the record of a job."""

    def __init__(self, database: Database, runner: EvaluationRunner, languages: Languages) -> None:
        self._database = database
        self._runner = runner
        self._languages = languages

    def limit_keys(self, job_payload: Mapping[str, Any]) -> tuple[str, ...]:
        """The limit keys of the language and its family."""
        return language_needs(self._languages, job_payload)

    async def run(self, job: Job) -> HandlerResult:
        """Evaluate the record; if it was deleted in the meantime, the job succeeds."""
        evaluation_id, record_id = job.payload["evaluation_id"], job.payload["record_id"]
        task = await self._database.read(lambda tx: evaluations.find_task(tx, evaluation_id, record_id))
        if task is None:
            return HandlerResult(JobStatus.SUCCEEDED, {"gone": True})
        found = await self._runner.run(read_any(json.loads(task.record), RecordShape(task.shape)))
        verdict = found.verdict.value if found.verdict else None
        outcome = FinishedEvaluation(found.verdict, json.dumps(found.document()), len(task.record))
        return HandlerResult(JobStatus.SUCCEEDED, {"verdict": verdict}, outcome)
