"""Changes of submissions. Every update requires the version that was read.

The status of a submission follows its judge run, in the transaction that claims or finishes the run. A terminal status
changes only together with the judge run that decided it.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.domain.errors import InvalidInput, NotFound, VersionConflict
from adjudge.domain.failure_class import classify_verdict
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.states import SUBMISSION, JobStatus, SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.observe import metrics, tracing
from adjudge.observe.logs import get_logger
from adjudge.store.engine.driver import Tx, fetch_one, or_not_found
from adjudge.store.engine.notify import CHANNEL_JUDGING
from adjudge.store.engine.rows import column_values
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import FinishedJob, Job, NewJob
from adjudge.store.jobs.spans import record_verdict
from adjudge.store.judging import statements as sql
from adjudge.store.judging.models import (
    Judgement,
    JudgeTask,
    LockedSubmission,
    NewSubmission,
    SubmissionIds,
    SubmissionUpdate,
)
from adjudge.store.judging.submission_listener import SubmissionListener

JOB_KIND_JUDGE = "judge"
"""The kind of job that judges a submission."""

_log = get_logger(__name__)


class SubmissionCommands:
    """Operations on submissions."""

    def __init__(
        self, jobs: JobCommands, new_id: IdFactory = new_id, *, listener: SubmissionListener | None = None
    ) -> None:
        self._jobs = jobs
        self._new_id = new_id
        self._listener = listener

    async def submit(self, tx: Tx, submissions: Sequence[NewSubmission]) -> list[SubmissionIds]:
        """Create submissions, their jobs and their outbox rows together: all of them, or none."""
        if not submissions:
            return []
        texts = {item.source_digest: item.source_text for item in submissions if item.source_text is not None}
        if texts:
            await tx.execute(sql.INSERT_SOURCES, sorted(texts.items()))
        inserted = await tx.fetch(sql.INSERT, [_insert_row(submission) for submission in submissions])
        numbers = {row.id: row.number for row in inserted}
        jobs = [
            NewJob(
                id=submission.job_id or self._new_id(),
                kind=JOB_KIND_JUDGE,
                dedupe_key=submission.id,
                submission_id=submission.id,
                priority=submission.priority,
                timeout_ms=submission.timeout_ms,
                delay_ms=submission.delay_ms,
                payload=judge_payload(
                    submission.id,
                    submission.revision_id,
                    submission.language,
                    submission.user_id,
                    submission.request_id,
                ),
                actor=submission.user_id,
                trace_id=submission.trace_id,
            )
            for submission in submissions
        ]
        job_ids = await self._jobs.enqueue(tx, jobs)
        in_contests = [item for item in submissions if item.contest_id is not None]
        if in_contests and self._listener is not None:
            await self._listener.created(tx, in_contests)
        return [
            SubmissionIds(item.id, job_id, numbers[item.id]) for item, job_id in zip(submissions, job_ids, strict=True)
        ]

    async def cancel(self, tx: Tx, submission_id: str, *, actor: str, reason: str) -> None:
        """Cancel a submission without a verdict, by canceling its judge run."""
        runs = await _open_runs(tx, submission_id)
        row = await _lock_submission(tx, submission_id)
        SUBMISSION.check(row.status, SubmissionStatus.CANCELED)
        await self._jobs.cancel(tx, runs, actor=actor, reason=reason)

    async def change_status(
        self,
        tx: Tx,
        submission_id: str,
        *,
        version: int,
        status: str,
        actor: str,
        reason: str,
        verdict: str | None = None,
    ) -> int:
        """Set a submission's status manually, for operators; return its new version.

        Rejects an unknown status, an invalid transition, a missing submission and an outdated version, each with its
        own error code.
        """
        target = SUBMISSION.parse(status)
        runs = await _open_runs(tx, submission_id)
        row = await _lock_submission(tx, submission_id)
        if row.version != version:  # checked first: the caller must read the submission again
            raise _conflict([submission_id])
        SUBMISSION.check(row.status, target)
        judgement = _manual_judgement(target, verdict)
        change = SubmissionUpdate(submission_id, version, target, actor, reason, row.job_id, judgement)
        await update(tx, [change], self._listener)
        if target in SUBMISSION.terminal:
            await self._jobs.cancel(tx, runs, actor=actor, reason=reason)
        return version + 1


async def find_judge_task(tx: Tx, submission_id: str, revision_id: str | None = None) -> JudgeTask:
    """Read what is to be judged; against the pinned revision, unless another one is given."""
    return or_not_found(
        await fetch_one(tx, sql.SELECT_TASK, submission_id=submission_id, revision_id=revision_id),
        "submission",
        submission_id,
    )


async def update(tx: Tx, changes: Sequence[SubmissionUpdate], listener: SubmissionListener | None = None) -> None:
    """Apply updates, all or none; an outdated version is a VersionConflict."""
    if not changes:
        return
    ordered = sorted(changes, key=lambda item: item.submission_id)
    rows = await tx.fetch(sql.UPDATE, [_change_row(item) for item in ordered])
    written = {row["id"] for row in rows}
    late = [item.submission_id for item in changes if item.submission_id not in written]
    if late:
        raise _conflict(late)
    edges = [(row["prior_status"], row["status"]) for row in rows]
    tx.on_commit(lambda: record_transitions(edges))
    tx.notify(CHANNEL_JUDGING)
    in_contests = [row["id"] for row in rows if row["contest_id"] is not None and row["status"] in SUBMISSION.terminal]
    if in_contests and listener is not None:
        await listener.changed(tx, in_contests)


def _conflict(late: Sequence[str]) -> VersionConflict:
    """Count and log a write with an outdated version; return the error."""
    metrics.SUBMISSION_CONFLICTS.inc(len(late))
    _log.info("submission_write_refused", submission_ids=late, reason="version_conflict")
    return VersionConflict("The submission was changed concurrently; read it again and retry.", submission_ids=late)


class JudgeRunListener:
    """Updates submissions with their judge runs."""

    def __init__(self, listener: SubmissionListener | None = None) -> None:
        self._listener = listener

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """Set submissions to judging; they do not go back."""
        await self._start_judging(tx, [job for job in jobs if _decides(job)])

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """A submission stays judging while its run waits for a retry."""

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """Store the test case results and the verdicts, and update the submissions."""
        tx.on_commit(lambda: record_verdicts(ended))
        cases = [row for item in ended for row in _case_rows(item)]
        if cases:
            await tx.execute(sql.INSERT_CASES, cases)
        deciding = [item for item in ended if _decides(item.job)]
        # A run that was dead-lettered before its first claim: the submission still passes through judging.
        failed = [item.job for item in deciding if item.job.status is JobStatus.FAILED]
        await self._start_judging(tx, failed)
        locked = await _lock(tx, [item.job for item in deciding])
        found = [(item, locked[_submission_id(item.job)]) for item in deciding]
        changes = [_verdict_change(item, row) for item, row in found if not _keeps_verdict(item, row)]
        await update(tx, changes, self._listener)

    async def _start_judging(self, tx: Tx, jobs: Sequence[Job]) -> None:
        locked = await _lock(tx, jobs)
        await update(
            tx,
            [
                SubmissionUpdate(row.id, row.version, SubmissionStatus.JUDGING, job.actor, job.reason, job.id)
                for job in jobs
                for row in (locked[_submission_id(job)],)
                if row.status is SubmissionStatus.PENDING
            ],
        )


def _decides(job: Job) -> bool:
    """Whether the run decides its submission; the verdicts of a rejudge are applied with their batch."""
    return job.submission_id is not None and job.rejudge_batch_id is None


def _keeps_verdict(item: FinishedJob, row: LockedSubmission) -> bool:
    """Whether a canceled run changes nothing, because its submission was already decided."""
    return item.job.status is JobStatus.CANCELED and row.status in SUBMISSION.terminal


def _submission_id(job: Job) -> str:
    if job.submission_id is None:
        raise InvalidInput(f"Job {job.id!r} has no submission.", field="submission_id")
    return job.submission_id


def _verdict_change(item: FinishedJob, row: LockedSubmission) -> SubmissionUpdate:
    job = item.job
    if job.status is JobStatus.CANCELED:
        return SubmissionUpdate(row.id, row.version, SubmissionStatus.CANCELED, job.actor, job.reason, job.id)
    judgement = _judgement(item)
    status = judgement.verdict.status
    return SubmissionUpdate(row.id, row.version, status, job.actor, job.reason, job.id, judgement)


def _judgement(item: FinishedJob) -> Judgement:
    """The verdict of a finished run; a run without one is a system error."""
    return item.typed_result if isinstance(item.typed_result, Judgement) else Judgement(Verdict.SE)


def _manual_judgement(target: SubmissionStatus, verdict: str | None) -> Judgement | None:
    """The verdict of a manual status change, checked against the status."""
    needed = target in SUBMISSION.terminal and target is not SubmissionStatus.CANCELED
    if not needed and verdict is None:
        return None
    known = [item for item in Verdict if needed and item.status is target]
    if verdict not in known:
        fix = f"give one of {', '.join(known)}" if known else "leave it out"
        raise InvalidInput(f"verdict: {verdict!r} is not valid for status {target}; {fix}.", field="verdict")
    return Judgement(Verdict(verdict))


def judge_payload(
    submission_id: str, revision_id: str, language: str, user_id: str, request_id: str | None = None
) -> dict[str, str]:
    """The payload of a judge job: identifiers only, without those that the submission does not have."""
    payload = {"submission_id": submission_id, "revision_id": revision_id, "user_id": user_id}
    if language:
        payload["language"] = language
    if request_id:
        payload["request_id"] = request_id
    return payload


async def _open_runs(tx: Tx, submission_id: str) -> list[str]:
    """Lock the runs before the submission, as a finishing run does, to avoid deadlocks."""
    return [run["id"] for run in await tx.fetch(sql.LOCK_OPEN_RUNS, submission_id=submission_id)]


async def _lock_submission(tx: Tx, submission_id: str) -> LockedSubmission:
    rows = await tx.fetch(sql.LOCK, [(submission_id,)])
    if not rows:
        raise NotFound("submission", submission_id)
    return rows[0]


async def _lock(tx: Tx, jobs: Sequence[Job]) -> dict[str, LockedSubmission]:
    if not jobs:
        return {}
    rows = await tx.fetch(sql.LOCK, [(_submission_id(job),) for job in jobs])
    return {row.id: row for row in rows}


def record_verdicts(ended: Sequence[FinishedJob]) -> None:
    """Count the verdicts of judge runs, and whose failure they are; called after the commit."""
    for item in ended:
        if item.job.status is JobStatus.CANCELED:
            continue
        verdict = _judgement(item).verdict
        metrics.JUDGE_VERDICT.labels(verdict.value).inc()
        if tracing.state.is_on:
            record_verdict(item.job, verdict.value)
        if (failure := classify_verdict(verdict)) is not None:
            metrics.JOB_FAILURES.labels(item.job.kind, failure).inc()


def record_transitions(edges: Sequence[tuple[str, str]]) -> None:
    """Count status transitions; called after the commit."""
    for source, target in edges:
        metrics.SUBMISSION_TRANSITIONS.labels(source, target).inc()


def _insert_row(item: NewSubmission) -> tuple[object, ...]:
    return (
        item.id,
        item.user_id,
        item.problem_id,
        item.revision_id,
        item.contest_id,
        item.language,
        item.source_digest,
        str(item.source_format),
        item.source_bytes,
    )


def _change_row(item: SubmissionUpdate) -> tuple[object, ...]:
    found = item.judgement
    measured = (found.verdict.value, found.score, found.time_ms, found.mem_kb) if found else (None, None, None, None)
    ends = item.status in SUBMISSION.terminal
    return (
        item.submission_id,
        item.version,
        str(item.status),
        *measured,
        item.job_id,
        item.actor,
        item.reason,
        int(ends),
    )


def _case_rows(item: FinishedJob) -> list[tuple[object, ...]]:
    if not isinstance(item.typed_result, Judgement):
        return []
    job = item.job
    return [
        (job.id, job.attempt_id, ordinal, *column_values(case).values())
        for ordinal, case in enumerate(item.typed_result.cases, 1)
    ]
