"""Submissions, their results, and judge runs on the wire."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from adjudge.domain.states import SUBMISSION
from adjudge.domain.verdict import Verdict
from adjudge.schema.base import NextCursor, ResponseModel, Timestamp, doc

_ID: Final = "019a8c5e-7c1f-7a3b-9d52-3f1f0c7d2b11"
_NUMBER: Final = 1234


@dataclass(frozen=True, kw_only=True)
class SubmissionCreated(ResponseModel):
    """IDs of the new submission and its job, and the submission's number."""

    submission_id: str = field(metadata=doc(examples=[_ID]))
    number: int = field(metadata=doc(examples=[_NUMBER]))
    job_id: str = field(metadata=doc(examples=[_ID]))
    status: str = field(metadata=doc(examples=["pending"]))


@dataclass(frozen=True, kw_only=True)
class SubmissionBatchCreated(ResponseModel):
    """New submissions in request order."""

    items: list[SubmissionCreated]


@dataclass(frozen=True, kw_only=True)
class SubmissionRead(ResponseModel):
    """A submission."""

    sources: ClassVar = {"problem": "problem_slug"}

    id: str = field(metadata=doc(examples=[_ID]))
    number: int = field(
        metadata=doc("Short number for people, unique in the installation; gaps are possible.", examples=[_NUMBER])
    )
    user_id: str
    user_name: str
    problem_id: str
    problem: str = field(metadata=doc("Problem slug."))
    revision_id: str
    contest_id: str | None
    language: str
    source_bytes: int
    status: str = field(metadata=doc(examples=["accepted"]))
    verdict: Verdict | None
    score: float | None
    time_ms: int | None = field(metadata=doc("CPU time of the slowest test, in whole milliseconds."))
    mem_kb: int | None = field(metadata=doc("Memory of the largest test; for the author rounded up to whole MiB."))
    job_id: str | None = field(metadata=doc("Judge run that determines the verdict."))
    version: int = field(metadata=doc("Incremented on every change; required for manual changes."))
    created_at: Timestamp
    updated_at: Timestamp
    finished_at: Timestamp | None

    @property
    def is_finished(self) -> bool:
        return self.status in SUBMISSION.terminal


@dataclass(frozen=True, kw_only=True)
class SubmissionFileRead(ResponseModel):
    """One file of a submission; its content is text if possible."""

    name: str
    size_bytes: int
    sha256: str
    content: str | None = field(metadata=doc("Null if it is not UTF-8."))
    content_base64: str | None

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self.content.encode() if self.content is not None else base64.b64decode(self.content_base64 or "")


@dataclass(frozen=True, kw_only=True)
class SubmissionFileList(ResponseModel):
    """The files of a submission."""

    entry_point: str
    items: list[SubmissionFileRead]


@dataclass(frozen=True, kw_only=True)
class SubmissionPage(ResponseModel):
    """A page of submissions, newest first."""

    items: list[SubmissionRead]
    next: NextCursor


@dataclass(frozen=True, kw_only=True)
class SubmissionResultsRead(ResponseModel):
    """Judging results visible to the viewer."""

    submission_id: str
    job_id: str | None
    view: str = field(metadata=doc("`author`: no secret test data; `jury`: everything.", examples=["author"]))
    document: dict[str, Any] | None = field(
        metadata=doc("Result document (see reference); null until there is a verdict.")
    )


@dataclass(frozen=True, kw_only=True)
class RunResults(ResponseModel):
    """Results of one judge run that the viewer may see."""

    job_id: str
    submission_id: str | None
    status: str = field(metadata=doc(examples=["succeeded"]))
    attempt_id: int
    view: str = field(metadata=doc("`author`: no secret test data; `jury`: everything.", examples=["author"]))
    document: dict[str, Any] | None = field(
        metadata=doc("Result document (see reference); null until the run has a result.")
    )


@dataclass(frozen=True, kw_only=True)
class SubmissionStatusChangeRead(ResponseModel):
    """A status change of a submission."""

    from_status: str
    to_status: str
    verdict: str | None
    job_id: str | None
    version: int
    actor: str | None
    reason: str | None
    at: Timestamp


@dataclass(frozen=True, kw_only=True)
class SubmissionStatusChangeList(ResponseModel):
    """Status changes of a submission, oldest first."""

    items: list[SubmissionStatusChangeRead]


@dataclass(frozen=True, kw_only=True)
class JudgeRunRead(ResponseModel):
    """A judge run of a submission."""

    sources: ClassVar = {"worker": "lease_owner"}

    id: str
    submission_id: str | None
    submission_number: int | None
    rejudge_batch_id: str | None
    rejudge_batch_number: int | None
    origin_job_id: str | None = field(metadata=doc("Original job, if this is a replay."))
    status: str = field(metadata=doc(examples=["succeeded"]))
    attempt_id: int
    max_attempts: int
    priority: int
    worker: str | None
    reason: str | None
    error_code: str | None
    error: str | None
    trace_id: str | None
    created_at: Timestamp
    queued_at: Timestamp | None
    started_at: Timestamp | None
    updated_at: Timestamp
    finished_at: Timestamp | None


@dataclass(frozen=True, kw_only=True)
class JudgeRunList(ResponseModel):
    """Judge runs of a submission, newest first."""

    items: list[JudgeRunRead]


@dataclass(frozen=True, kw_only=True)
class AttemptRead(ResponseModel):
    """A finished attempt of a job."""

    attempt_id: int
    worker: str
    started_at: Timestamp
    ended_at: Timestamp
    outcome: str
    reason: str | None
    error_code: str | None
    error: str | None


@dataclass(frozen=True, kw_only=True)
class AttemptList(ResponseModel):
    """Attempts of a judge run, oldest first."""

    items: list[AttemptRead]


@dataclass(frozen=True, kw_only=True)
class JobStatusChangeRead(ResponseModel):
    """A status change of a judge run."""

    from_status: str
    to_status: str
    attempt_id: int
    actor: str | None
    reason: str | None
    at: Timestamp


@dataclass(frozen=True, kw_only=True)
class JobStatusChangeList(ResponseModel):
    """Status changes of a judge run, oldest first."""

    items: list[JobStatusChangeRead]
