"""Rejudge batches on the wire."""

from __future__ import annotations

from pydantic import Field, JsonValue

from adjudge.api.moments import moment
from adjudge.api.wire.base import Wire
from adjudge.domain.verdict import Verdict
from adjudge.store import rejudge
from adjudge.store.rejudge import Policy, Revision


class RejudgeFilter(Wire):
    """Which submissions: those that match everything that is given, and have a verdict."""

    ids: list[str] = Field(default_factory=list, max_length=10_000, description="These submissions.")
    problem: str | None = Field(None, max_length=200, description="A slug or an id.", examples=["multiples"])
    contest: str | None = Field(None, max_length=64)
    user: str | None = Field(None, max_length=64)
    language: str | None = Field(None, max_length=64)
    verdict: Verdict | None = None
    since: str | None = Field(None, max_length=64, examples=["2026-01-31T12:00:00Z"])
    until: str | None = Field(None, max_length=64)


class NewRejudge(Wire):
    """A batch to be made."""

    filter: RejudgeFilter
    policy: Policy = Field(Policy.LATEST, description="Which new verdicts replace old ones when it is applied.")
    revision: Revision = Field(Revision.CURRENT, description="Test data as it was, or as it is published now.")
    reason: str = Field(min_length=1, max_length=500, examples=["test 7 was wrong"])


class RejudgeBatch(Wire):
    """A batch as it stands."""

    id: str
    created_by: str
    filter: dict[str, JsonValue]
    policy: str
    revision: str
    state: str = Field(examples=["ready"], description="running, ready, applied, discarded or canceled.")
    reason: str | None
    total: int
    ended: int = Field(description="How many of its runs have ended.")
    version: int
    created_at: str
    updated_at: str
    applied_at: str | None

    @classmethod
    def of(cls, batch: rejudge.Batch) -> RejudgeBatch:
        """From the store's value."""
        return cls(
            id=batch.id,
            created_by=batch.created_by,
            filter=dict(batch.filter),
            policy=batch.policy,
            revision=batch.revision,
            state=batch.state,
            reason=batch.reason,
            total=batch.total,
            ended=batch.ended,
            version=batch.version,
            created_at=moment(batch.created_at),
            updated_at=moment(batch.updated_at),
            applied_at=moment(batch.applied_at),
        )


class RejudgePage(Wire):
    """A page of batches, the newest first."""

    items: list[RejudgeBatch]
    next: str | None


class RejudgeItem(Wire):
    """One submission of a batch: what it was, and what it would be."""

    submission_id: str
    job_id: str | None
    outcome: str | None = Field(description="judged, failed or canceled; none while its run goes on.")
    old_verdict: str | None
    new_verdict: str | None
    old_score: float | None
    new_score: float | None
    old_time_ms: int | None
    new_time_ms: int | None
    old_mem_kb: int | None
    new_mem_kb: int | None
    applied: bool
    has_changed: bool = Field(description="Whether the submission changed since the batch was made.")


class RejudgeDifference(Wire):
    """How many submissions would go from one verdict to another."""

    old_verdict: str | None
    new_verdict: str | None
    outcome: str | None
    count: int


class RejudgePreview(Wire):
    """What applying would do."""

    batch: RejudgeBatch
    differences: list[RejudgeDifference]
    items: list[RejudgeItem]
    next: str | None


class ApplyRejudge(Wire):
    """How to apply."""

    skip_changed: bool = Field(False, description="Leave alone what changed meanwhile, instead of refusing.")


class RejudgeApplied(Wire):
    """What applying did."""

    batch: RejudgeBatch
    changed: int
    kept: int
    skipped: int
