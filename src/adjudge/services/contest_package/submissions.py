"""Writes the submissions of a contest package, in batches, in the transaction that imports the contest.

A result of the package is a fact: the submission gets its final status, a finished judge run with the result document,
and the entries of the status logs. A submission without a result is judged like a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Final, TypeVar

from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import IdFactory, trace_id_from
from adjudge.domain.states import SUBMISSION, JobStatus, SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.packages.contest_package.model import SubmissionRecord
from adjudge.services.contest_package.files import OpenedPackage
from adjudge.store import Tx
from adjudge.store.contests import package_import
from adjudge.store.contests.models import ContestProblem
from adjudge.store.contests.package_import import (
    LoggedChange,
    RestoredContestSubmission,
    RestoredRun,
    RestoredSubmission,
)
from adjudge.store.engine.rows import column_names
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import HELD_DELAY_MS, NewJob
from adjudge.store.judging.commands import JOB_KIND_JUDGE, judge_payload
from adjudge.store.judging.models import CaseResultRow

T = TypeVar("T")
_BATCH: Final = 200
_SAME: Final = (
    "number",
    "received_at",
    "official",
    "score_micro",
    "max_score_micro",
    "subtasks",
    "ignored_at",
    "verified_at",
    "verified_verdict",
    "override_verdict",
    "override_score_micro",
    "overridden_at",
    "override_reason",
)


_MEASURED: Final = attrgetter(*column_names(CaseResultRow)[2:])
"""The columns of a test case after its name and verdict; there are millions of them."""


class SubmissionWriter:
    """Writes the submissions of one contest."""

    def __init__(
        self,
        tx: Tx,
        jobs: JobCommands,
        *,
        contest_id: str,
        actor: str,
        problems: Mapping[str, ContestProblem],
        people: Mapping[str, str],
        users: Mapping[str, str],
        source_bytes: Mapping[str, int],
        new_id: IdFactory,
    ) -> None:
        self._tx, self._jobs, self._contest_id, self._actor = tx, jobs, contest_id, actor
        self._problems, self._people, self._users = problems, people, users
        self._source_bytes, self._new_id = source_bytes, new_id

    async def write_sources(self, opened: OpenedPackage) -> None:
        """Store the small sources in the database; the others are blobs already."""
        for digests in _batches(sorted(self._source_bytes.keys() - opened.blob_sources)):
            await package_import.insert_sources(self._tx, {digest: opened.source_text(digest) for digest in digests})

    async def write_all(self, records: Iterable[SubmissionRecord]) -> None:
        """Write the submissions in the order of their numbers."""
        for batch in _batches(records):
            await self._write(batch)

    async def _write(self, records: Sequence[SubmissionRecord]) -> None:
        found = [self._restored(record) for record in records]
        rows = [row for row, _ in found]
        runs = [run for _, run in found if run is not None]
        cases = [
            (run.id, 1, ordinal, case.name, str(case.verdict), *_MEASURED(case))
            for record, (_, run) in zip(records, found, strict=True)
            if run is not None
            for ordinal, case in enumerate(record.cases, 1)
        ]
        pairs = list(zip(records, rows, strict=True))
        in_contest = [self._in_contest(record, row) for record, row in pairs]
        log = [entry for record, row in pairs for entry in self._log(record, row)]
        await package_import.insert_submissions(self._tx, rows, in_contest=in_contest, runs=runs, cases=cases, log=log)
        await self._jobs.enqueue(
            self._tx, [self._job(record, row) for record, row in pairs if row.status == SubmissionStatus.PENDING]
        )

    def _restored(self, record: SubmissionRecord) -> tuple[RestoredSubmission, RestoredRun | None]:
        problem = self._problems[record.problem]
        is_final = record.status in SUBMISSION.terminal
        submission_id = self._new_id()
        run = self._run(record, submission_id, problem) if record.verdict is not None else None
        prior = SubmissionStatus.PENDING if record.status is SubmissionStatus.CANCELED else SubmissionStatus.JUDGING
        row = RestoredSubmission(
            id=submission_id,
            user_id=self._users[record.user],
            problem_id=problem.problem_id,
            revision_id=problem.revision_id,
            contest_id=self._contest_id,
            language=record.language,
            source_digest=record.source,
            source_format=str(record.source_format),
            source_bytes=self._source_bytes[record.source],
            status=str(record.status if is_final else SubmissionStatus.PENDING),
            prior_status=str(prior) if is_final else None,
            verdict=None if record.verdict is None else str(record.verdict),
            score=record.score,
            time_ms=record.time_ms,
            mem_kb=record.mem_kb,
            judged_by_job_id=None if run is None else run.id,
            version=1 + len(_edges(record.status)),
            actor=self._actor,
            created_at=record.created_at,
            finished_at=record.finished_at,
        )
        return row, run

    def _run(self, record: SubmissionRecord, submission_id: str, problem: ContestProblem) -> RestoredRun:
        if record.finished_at is None:
            raise InvalidInput(f"submissions[{record.number}].finished_at: is missing.", field="finished_at")
        job_id, user_id = self._new_id(), self._users[record.user]
        return RestoredRun(
            id=job_id,
            submission_id=submission_id,
            status=str(JobStatus.FAILED if record.verdict is Verdict.SE else JobStatus.SUCCEEDED),
            payload=judge_payload(submission_id, problem.revision_id, record.language, user_id),
            result=record.result,
            actor=self._actor,
            trace_id=trace_id_from(job_id),
            created_at=min(record.created_at, record.finished_at),
            finished_at=record.finished_at,
        )

    def _in_contest(self, record: SubmissionRecord, row: RestoredSubmission) -> RestoredContestSubmission:
        values: dict[str, Any] = {name: getattr(record, name) for name in _SAME}
        return RestoredContestSubmission(
            submission_id=row.id,
            contest_id=self._contest_id,
            participant_id=self._people[record.team],
            problem_id=row.problem_id,
            verified_by=None if record.verified_by is None else self._users[record.verified_by],
            overridden_by=None if record.overridden_by is None else self._users[record.overridden_by],
            **values,
        )

    def _log(self, record: SubmissionRecord, row: RestoredSubmission) -> list[LoggedChange]:
        at = record.created_at if record.finished_at is None else record.finished_at
        return [
            LoggedChange(
                key=row.id,
                from_status=str(source),
                to_status=str(target),
                verdict=row.verdict if target is record.status else None,
                job_id=row.judged_by_job_id,
                version=version,
                actor=self._actor,
                at=at,
            )
            for version, (source, target) in enumerate(_edges(record.status), 2)
        ]

    def _job(self, record: SubmissionRecord, row: RestoredSubmission) -> NewJob:
        is_paused = self._problems[record.problem].judging_paused
        return NewJob(
            id=self._new_id(),
            kind=JOB_KIND_JUDGE,
            dedupe_key=row.id,
            submission_id=row.id,
            delay_ms=HELD_DELAY_MS if is_paused else 0,
            payload=judge_payload(row.id, row.revision_id, row.language, row.user_id),
            actor=self._actor,
        )


def _edges(status: SubmissionStatus) -> list[tuple[SubmissionStatus, SubmissionStatus]]:
    """The transitions from a new submission to a final status; each is one of the state machine."""
    if status not in SUBMISSION.terminal:
        return []
    pending, judging = SubmissionStatus.PENDING, SubmissionStatus.JUDGING
    edges = [(pending, judging), (judging, status)]
    if status is SubmissionStatus.CANCELED:
        edges = [(pending, status)]
    for edge in edges:
        SUBMISSION.check(*edge)
    return edges


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    source = iter(items)
    while batch := list(islice(source, _BATCH)):
        yield batch
