"""Rejudge batches on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from adjudge.schema.base import ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class RejudgeBatchRead(ResponseModel):
    """A rejudge batch."""

    id: str
    number: int = field(metadata=doc("Short number for people, unique in the installation; gaps are possible."))
    created_by: str
    filter: dict[str, Any]
    policy: str
    revision: str
    state: str = field(metadata=doc("running, ready, applied, discarded or canceled.", examples=["ready"]))
    reason: str | None
    total: int
    ended: int = field(metadata=doc("Number of finished judge runs."))
    version: int
    created_at: Timestamp
    updated_at: Timestamp
    applied_at: Timestamp | None


@dataclass(frozen=True, kw_only=True)
class RejudgeBatchPage(ResponseModel):
    """A page of rejudge batches, newest first."""

    items: list[RejudgeBatchRead]
    next: str | None


@dataclass(frozen=True, kw_only=True)
class RejudgeItemRead(ResponseModel):
    """One submission of a batch: result before and after."""

    submission_id: str
    submission_number: int
    job_id: str | None
    outcome: str | None = field(metadata=doc("judged, failed or canceled; null while running."))
    old_verdict: str | None
    new_verdict: str | None
    old_score: float | None
    new_score: float | None
    old_time_ms: int | None
    new_time_ms: int | None
    old_mem_kb: int | None
    new_mem_kb: int | None
    applied: bool
    has_changed: bool = field(metadata=doc("Whether the submission changed since the batch was created."))


@dataclass(frozen=True, kw_only=True)
class VerdictChangeCountRead(ResponseModel):
    """Number of submissions that change from one verdict to another."""

    old_verdict: str | None
    new_verdict: str | None
    outcome: str | None
    count: int


@dataclass(frozen=True, kw_only=True)
class RejudgePreviewRead(ResponseModel):
    """Preview of applying a batch."""

    batch: RejudgeBatchRead
    differences: list[VerdictChangeCountRead]
    items: list[RejudgeItemRead]
    next: str | None


@dataclass(frozen=True, kw_only=True)
class RejudgeApplyRead(ResponseModel):
    """Result of applying a batch."""

    batch: RejudgeBatchRead
    changed: int
    kept: int
    skipped: int
