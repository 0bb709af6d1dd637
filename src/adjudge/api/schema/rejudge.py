"""Rejudge batches on the wire."""

from __future__ import annotations

from pydantic import Field, JsonValue

from adjudge.api.schema.base import ApiModel
from adjudge.domain.timestamps import format_timestamp
from adjudge.domain.verdict import Verdict
from adjudge.store.judging import models as submission_models
from adjudge.store.judging.models import RevisionChoice, VerdictPolicy


class RejudgeFilter(ApiModel):
    """Submissions with a verdict that match all given criteria."""

    ids: list[str] = Field(default_factory=list, max_length=10_000, description="Submission IDs.")
    problem: str | None = Field(None, max_length=200, description="Slug or ID.", examples=["multiples"])
    contest: str | None = Field(None, max_length=64)
    user: str | None = Field(None, max_length=64)
    language: str | None = Field(None, max_length=64)
    verdict: Verdict | None = None
    since: str | None = Field(None, max_length=64, examples=["2026-01-31T12:00:00Z"])
    until: str | None = Field(None, max_length=64)


class RejudgeCreate(ApiModel):
    """A new rejudge batch."""

    filter: RejudgeFilter
    policy: VerdictPolicy = Field(
        VerdictPolicy.LATEST, description="Verdict policy: which new verdicts replace the old ones."
    )
    revision: RevisionChoice = Field(
        RevisionChoice.CURRENT, description="Test data: original (`pinned`) or current revision."
    )
    reason: str = Field(min_length=1, max_length=500, examples=["test 7 was wrong"])


class RejudgeBatchRead(ApiModel):
    """A rejudge batch."""

    id: str
    number: int = Field(description="What people call it by, unique in the installation; gaps are possible.")
    created_by: str
    filter: dict[str, JsonValue]
    policy: str
    revision: str
    state: str = Field(examples=["ready"], description="running, ready, applied, discarded or canceled.")
    reason: str | None
    total: int
    ended: int = Field(description="Number of finished judge runs.")
    version: int
    created_at: str
    updated_at: str
    applied_at: str | None

    @classmethod
    def of(cls, batch: submission_models.RejudgeBatchRow) -> RejudgeBatchRead:
        """From the store's value."""
        return cls(
            id=batch.id,
            number=batch.number,
            created_by=batch.created_by,
            filter=dict(batch.filter),
            policy=batch.policy,
            revision=batch.revision,
            state=batch.state,
            reason=batch.reason,
            total=batch.total,
            ended=batch.ended,
            version=batch.version,
            created_at=format_timestamp(batch.created_at),
            updated_at=format_timestamp(batch.updated_at),
            applied_at=format_timestamp(batch.applied_at),
        )


class RejudgeBatchPage(ApiModel):
    """A page of rejudge batches, newest first."""

    items: list[RejudgeBatchRead]
    next: str | None


class RejudgeItemRead(ApiModel):
    """One submission of a batch: result before and after."""

    submission_id: str
    submission_number: int
    job_id: str | None
    outcome: str | None = Field(description="judged, failed or canceled; null while running.")
    old_verdict: str | None
    new_verdict: str | None
    old_score: float | None
    new_score: float | None
    old_time_ms: int | None
    new_time_ms: int | None
    old_mem_kb: int | None
    new_mem_kb: int | None
    applied: bool
    has_changed: bool = Field(description="Whether the submission changed since the batch was created.")


class VerdictChangeCountRead(ApiModel):
    """Number of submissions that change from one verdict to another."""

    old_verdict: str | None
    new_verdict: str | None
    outcome: str | None
    count: int


class RejudgePreviewRead(ApiModel):
    """Preview of applying a batch."""

    batch: RejudgeBatchRead
    differences: list[VerdictChangeCountRead]
    items: list[RejudgeItemRead]
    next: str | None


class RejudgeApplyRequest(ApiModel):
    """Options for applying a batch."""

    skip_changed: bool = Field(False, description="Skip submissions that have changed since, instead of failing.")


class RejudgeApplyRead(ApiModel):
    """Result of applying a batch."""

    batch: RejudgeBatchRead
    changed: int
    kept: int
    skipped: int
