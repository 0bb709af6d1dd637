"""Submissions of a contest on the wire, as the jury sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from adjudge.domain.verdict import Verdict
from adjudge.schema.base import NextCursor, ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class ContestSubmissionRead(ResponseModel):
    """A submission of a contest and the decisions of the jury about it."""

    number: int = field(metadata=doc("Number in the contest; the order of submissions."))
    submission_id: str
    participant_id: str
    participant: str = field(metadata=doc("Code of the participant.", examples=["team-7"]))
    problem: str = field(metadata=doc("Label of the problem.", examples=["A"]))
    user_id: str
    language: str
    received_at: Timestamp
    time_sec: float | None = field(metadata=doc("Time since the participant's start."))
    is_late: bool = field(metadata=doc("Whether it was received outside the participant's time."))
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


@dataclass(frozen=True, kw_only=True)
class VisibleSubmissionRead(ResponseModel):
    """A submission of any participant, as far as you may see it."""

    number: int = field(metadata=doc("Number in the contest; the order of submissions."))
    submission_id: str
    participant_id: str
    participant: str = field(metadata=doc("Code of the participant.", examples=["team-7"]))
    name: str = field(metadata=doc("Name of the participant."))
    problem: str | None = field(metadata=doc("Label of the problem; null if you may not see it.", examples=["A"]))
    received_at: Timestamp
    verdict: Verdict | None = field(metadata=doc("Null while pending, or hidden from you."))
    is_accepted: bool | None = field(metadata=doc("Null while pending, or hidden from you."))
    may_open: bool = field(metadata=doc("Whether you may open the submission."))


@dataclass(frozen=True, kw_only=True)
class VisibleSubmissionPage(ResponseModel):
    """A page of submissions, newest first."""

    items: list[VisibleSubmissionRead]
    next: NextCursor


@dataclass(frozen=True, kw_only=True)
class JuryDecisionRead(ResponseModel):
    """An entry of the audit log about a submission."""

    sources: ClassVar[Mapping[str, str]] = {"actor_id": "actor"}

    at: Timestamp
    actor_id: str
    actor_name: str | None
    action: str
    reason: str | None
    details: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ContestSubmissionDetail(ResponseModel):
    """A submission of a contest with the decisions about it; its runs are at `/submissions/{id}/judge-runs`."""

    submission: ContestSubmissionRead
    previous: int | None = field(metadata=doc("Number of the participant's previous submission to the problem."))
    log: list[JuryDecisionRead]


@dataclass(frozen=True, kw_only=True)
class PenaltyAdjustmentRead(ResponseModel):
    """The penalty that the jury added to a participant."""

    participant_id: str
    participant: str = field(metadata=doc("Code of the participant.", examples=["team-7"]))
    penalty_sec: int
