"""Submissions, their results, and judge runs on the wire."""

from __future__ import annotations

import base64

from pydantic import Field, JsonValue

from adjudge.api.schema.base import ApiModel
from adjudge.domain.timestamps import format_timestamp
from adjudge.domain.verdict import Verdict
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.store.jobs.dead_letters import JobAttemptRow
from adjudge.store.judging.models import JobStatusChange, JudgeRunRow, SubmissionRow, SubmissionStatusChange

BATCH_MOST = 1_000
FILES_MOST = 1_000
_ID = "019a8c5e-7c1f-7a3b-9d52-3f1f0c7d2b11"
_NUMBER = 1234
_TIMESTAMP = "2026-01-31T12:00:00.000Z"


class SubmissionFileCreate(ApiModel):
    """One file of a submission; its content is either text or Base64."""

    name: str = Field(description="Relative path.", min_length=1, max_length=1024, examples=["lib/graph.h"])
    content: str | None = Field(None, description="Text.")
    content_base64: str | None = Field(None, description="Any bytes.")


class SubmissionCreate(ApiModel):
    """A new submission."""

    problem: str = Field(description="Problem slug or ID.", min_length=1, max_length=200, examples=["multiples"])
    language: str = Field(
        "", description="Language ID, alias or code; not needed for output files.", max_length=64, examples=["cpp20"]
    )
    source: str | None = Field(
        None,
        description="Source code: UTF-8, not empty, no NUL bytes.",
        examples=["#include <iostream>\nint main() {}\n"],
    )
    files: list[SubmissionFileCreate] | None = Field(
        None,
        description=(
            "Several files instead of `source`: a program, or one output file per test of an output-only problem. "
            "Archives (.zip, .tar, .tar.gz, .tgz) are unpacked."
        ),
        min_length=1,
        max_length=FILES_MOST,
    )
    entry_point: str = Field(
        "",
        description="Main class (Java, Kotlin) or main file; optional.",
        max_length=200,
        examples=["org.x.Main"],
    )


class SubmissionBatchCreate(ApiModel):
    """A batch of submissions; all are accepted, or none."""

    items: list[SubmissionCreate] = Field(min_length=1, max_length=BATCH_MOST)


class SubmissionCreated(ApiModel):
    """IDs of the new submission and its job, and the submission's number."""

    submission_id: str = Field(examples=[_ID])
    number: int = Field(examples=[_NUMBER])
    job_id: str = Field(examples=[_ID])
    status: str = Field(examples=["pending"])


class SubmissionBatchCreated(ApiModel):
    """New submissions in request order."""

    items: list[SubmissionCreated]


class SubmissionRead(ApiModel):
    """A submission."""

    id: str = Field(examples=[_ID])
    number: int = Field(
        description="What people call it by, unique in the installation; gaps are possible.", examples=[_NUMBER]
    )
    user_id: str
    user_name: str
    problem_id: str
    problem: str = Field(description="Problem slug.")
    revision_id: str
    contest_id: str | None
    language: str
    source_bytes: int
    status: str = Field(examples=["accepted"])
    verdict: Verdict | None
    score: float | None
    time_ms: int | None = Field(description="CPU time of the slowest test, in whole milliseconds.")
    mem_kb: int | None = Field(description="Memory of the largest test; for the author rounded up to whole MiB.")
    job_id: str | None = Field(description="Judge run that determines the verdict.")
    version: int = Field(description="Incremented on every change; required for manual changes.")
    created_at: str = Field(examples=[_TIMESTAMP])
    updated_at: str = Field(examples=[_TIMESTAMP])
    finished_at: str | None

    @classmethod
    def of(cls, row: SubmissionRow) -> SubmissionRead:
        return cls(
            id=row.id,
            number=row.number,
            user_id=row.user_id,
            user_name=row.user_name,
            problem_id=row.problem_id,
            problem=row.problem_slug,
            revision_id=row.revision_id,
            contest_id=row.contest_id,
            language=row.language,
            source_bytes=row.source_bytes,
            status=row.status,
            verdict=Verdict(row.verdict) if row.verdict else None,
            score=row.score,
            time_ms=row.time_ms,
            mem_kb=row.mem_kb,
            job_id=row.job_id,
            version=row.version,
            created_at=format_timestamp(row.created_at),
            updated_at=format_timestamp(row.updated_at),
            finished_at=format_timestamp(row.finished_at),
        )


class SubmissionFileRead(ApiModel):
    """One file of a submission; its content is text if possible."""

    name: str
    size_bytes: int
    sha256: str
    content: str | None = Field(description="Null if it is not UTF-8.")
    content_base64: str | None

    @classmethod
    def of(cls, file: SourceFile) -> SubmissionFileRead:
        """From a stored file."""
        text: str | None = None
        encoded: str | None = None
        try:
            text = file.data.decode()
        except UnicodeDecodeError:
            encoded = base64.b64encode(file.data).decode()
        return cls(name=file.name, size_bytes=len(file.data), sha256=file.sha256, content=text, content_base64=encoded)


class SubmissionFileList(ApiModel):
    """The files of a submission."""

    entry_point: str
    items: list[SubmissionFileRead]

    @classmethod
    def of(cls, source: ProgramSource) -> SubmissionFileList:
        """From a stored source."""
        return cls(entry_point=source.entry_point, items=[SubmissionFileRead.of(file) for file in source.files])


class SubmissionPage(ApiModel):
    """A page of submissions, newest first."""

    items: list[SubmissionRead]
    next: str | None = Field(description="Cursor of the next page; null on the last page.")


class SubmissionResultsRead(ApiModel):
    """Judging results visible to the viewer."""

    submission_id: str
    job_id: str | None
    view: str = Field(description="`author`: no secret test data; `jury`: everything.", examples=["author"])
    document: dict[str, JsonValue] | None = Field(
        description="Result document (see reference); null until there is a verdict."
    )


class RunResults(ApiModel):
    """What one judge run found, by what the viewer may see."""

    job_id: str
    submission_id: str | None
    status: str = Field(examples=["succeeded"])
    attempt_id: int
    view: str = Field(description="`author`: no secret test data; `jury`: everything.", examples=["author"])
    document: dict[str, JsonValue] | None = Field(
        description="The result document, as the reference has it; none until the run has found something."
    )


class ReasonRequest(ApiModel):
    """Reason for a manual action."""

    reason: str = Field("", max_length=500, examples=["submitted twice"])


class SubmissionStatusUpdate(ApiModel):
    """Manual status change; applied only if the version matches."""

    status: str = Field(max_length=64, examples=["canceled"])
    version: int = Field(ge=1, le=2**62)
    verdict: str | None = Field(None, max_length=16, description="Verdict; required for a terminal status.")
    reason: str = Field(min_length=1, max_length=500, examples=["the judge machine was broken"])


class SubmissionStatusChangeRead(ApiModel):
    """A status change of a submission."""

    from_status: str
    to_status: str
    verdict: str | None
    job_id: str | None
    version: int
    actor: str | None
    reason: str | None
    at: str

    @classmethod
    def of(cls, row: SubmissionStatusChange) -> SubmissionStatusChangeRead:
        return cls(
            from_status=row.from_status,
            to_status=row.to_status,
            verdict=row.verdict,
            job_id=row.job_id,
            version=row.version,
            actor=row.actor,
            reason=row.reason,
            at=format_timestamp(row.at),
        )


class SubmissionStatusChangeList(ApiModel):
    """Status changes of a submission, oldest first."""

    items: list[SubmissionStatusChangeRead]


class JudgeRunRead(ApiModel):
    """A judge run of a submission."""

    id: str
    submission_id: str | None
    submission_number: int | None
    rejudge_batch_id: str | None
    rejudge_batch_number: int | None
    origin_job_id: str | None = Field(description="Original job, if this is a replay.")
    status: str = Field(examples=["succeeded"])
    attempt_id: int
    max_attempts: int
    priority: int
    worker: str | None
    reason: str | None
    error_code: str | None
    error: str | None
    trace_id: str | None
    created_at: str
    queued_at: str | None
    started_at: str | None
    updated_at: str
    finished_at: str | None

    @classmethod
    def of(cls, row: JudgeRunRow) -> JudgeRunRead:
        return cls(
            id=row.id,
            submission_id=row.submission_id,
            submission_number=row.submission_number,
            rejudge_batch_id=row.rejudge_batch_id,
            rejudge_batch_number=row.rejudge_batch_number,
            origin_job_id=row.origin_job_id,
            status=row.status,
            attempt_id=row.attempt_id,
            max_attempts=row.max_attempts,
            priority=row.priority,
            worker=row.lease_owner,
            reason=row.reason,
            error_code=row.error_code,
            error=row.error,
            trace_id=row.trace_id,
            created_at=format_timestamp(row.created_at),
            queued_at=format_timestamp(row.queued_at),
            started_at=format_timestamp(row.started_at),
            updated_at=format_timestamp(row.updated_at),
            finished_at=format_timestamp(row.finished_at),
        )


class JudgeRunList(ApiModel):
    """Judge runs of a submission, newest first."""

    items: list[JudgeRunRead]


class AttemptRead(ApiModel):
    """A finished attempt of a job."""

    attempt_id: int
    worker: str
    started_at: str
    ended_at: str
    outcome: str
    reason: str | None
    error_code: str | None
    error: str | None

    @classmethod
    def of(cls, row: JobAttemptRow) -> AttemptRead:
        return cls(
            attempt_id=row.attempt_id,
            worker=row.worker,
            started_at=format_timestamp(row.started_at),
            ended_at=format_timestamp(row.ended_at),
            outcome=row.outcome,
            reason=row.reason,
            error_code=row.error_code,
            error=row.error,
        )


class AttemptList(ApiModel):
    """Attempts of a judge run, oldest first."""

    items: list[AttemptRead]


class JobStatusChangeRead(ApiModel):
    """A status change of a judge run."""

    from_status: str
    to_status: str
    attempt_id: int
    actor: str | None
    reason: str | None
    at: str

    @classmethod
    def of(cls, row: JobStatusChange) -> JobStatusChangeRead:
        return cls(
            from_status=row.from_status,
            to_status=row.to_status,
            attempt_id=row.attempt_id,
            actor=row.actor,
            reason=row.reason,
            at=format_timestamp(row.at),
        )


class JobStatusChangeList(ApiModel):
    """Status changes of a judge run, oldest first."""

    items: list[JobStatusChangeRead]
