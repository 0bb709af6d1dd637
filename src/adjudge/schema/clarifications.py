"""Clarifications and canned answers of contests on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.schema.base import NextCursor, ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class ClarificationRead(ResponseModel):
    """A question, an answer or an announcement."""

    id: str
    number: int = field(metadata=doc("Unique in the contest."))
    audience: str = field(metadata=doc("`jury` for questions; else `participant`, `groups` or `all`."))
    from_participant: str | None = field(metadata=doc("Code of the participant who asks; null: the jury."))
    to_participant: str | None = field(metadata=doc("Code of the recipient."))
    groups: list[str] = field(metadata=doc("Codes of the groups that receive it."))
    reply_to: int | None = field(metadata=doc("Number of the answered question, if it is on the same page."))
    problem: str | None = field(metadata=doc("Label of the problem."))
    category: str | None
    body: str
    created_at: Timestamp
    answered_at: Timestamp | None
    claimed_by: str | None = field(metadata=doc("User name of the judge who answers; only for the jury."))
    is_unread: bool


@dataclass(frozen=True, kw_only=True)
class ClarificationPage(ResponseModel):
    """A page of clarifications."""

    items: list[ClarificationRead]
    next: NextCursor


@dataclass(frozen=True, kw_only=True)
class CannedAnswerRead(ResponseModel):
    """A prepared answer."""

    id: str
    title: str
    body: str


@dataclass(frozen=True, kw_only=True)
class CannedAnswerList(ResponseModel):
    """The prepared answers of a contest."""

    items: list[CannedAnswerRead]


@dataclass(frozen=True, kw_only=True)
class ClarificationUnread(ResponseModel):
    """The number of unread clarifications."""

    count: int = field(metadata=doc("For the jury: questions without an answer."))
