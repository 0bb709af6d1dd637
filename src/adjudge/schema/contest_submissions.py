"""Submissions of a contest on the wire, as the jury sees them."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.domain.verdict import Verdict
from adjudge.schema.base import NextCursor, ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class ContestSubmissionRead(ResponseModel):
    """A submission of a contest and the decisions of the jury about it."""

    number: int = field(metadata=doc("Number in the contest; the order of submissions."))
    submission_id: str
    participant_id: str
    problem: str = field(metadata=doc("Label of the problem.", examples=["A"]))
    user_id: str
    language: str
    received_at: Timestamp
    status: str
    verdict: Verdict | None = field(metadata=doc("Verdict of the judge."))
    override_verdict: Verdict | None = field(metadata=doc("Replaces the verdict of the judge."))
    override_score: float | None
    override_reason: str | None
    overridden_at: Timestamp | None
    verified_at: Timestamp | None
    ignored_at: Timestamp | None = field(metadata=doc("Set: it does not count."))
    official: bool = field(metadata=doc("Whether it counts although it was received outside the time."))
    version: int


@dataclass(frozen=True, kw_only=True)
class ContestSubmissionPage(ResponseModel):
    """A page of submissions, newest first."""

    items: list[ContestSubmissionRead]
    next: NextCursor
