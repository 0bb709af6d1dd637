"""Rejudge batches on the wire."""

from __future__ import annotations

from pydantic import Field

from adjudge.api.schema.base import ApiModel
from adjudge.domain.verdict import Verdict
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


class RejudgeApplyRequest(ApiModel):
    """Options for applying a batch."""

    skip_changed: bool = Field(False, description="Skip submissions that have changed since, instead of failing.")
