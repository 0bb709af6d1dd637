"""Request models of clarifications, and their conversion to responses."""

from __future__ import annotations

from pydantic import Field

from adjudge.api.schema.base import ApiModel
from adjudge.domain.timestamps import format_timestamp
from adjudge.schema.clarifications import ClarificationRead
from adjudge.services.clarifications import MAX_BODY, MAX_TITLE, ClarificationDetail, Recipients


class ClarificationAsk(ApiModel):
    """A question to the jury."""

    body: str = Field(max_length=MAX_BODY, examples=["May n be 0?"])
    problem: str = Field("", max_length=36, description="Label of a problem.")
    category: str = Field("", max_length=100, description="One of the categories of the contest.")


class ClarificationSend(ApiModel):
    """A message of the jury."""

    body: str = Field(max_length=MAX_BODY, examples=["May n be 0?"])
    audience: str = Field("all", max_length=20, description="`participant`, `groups` or `all`.")
    groups: list[str] = Field(default_factory=list, max_length=100, description="Codes of groups.")

    def recipients(self, participant: str = "") -> Recipients:
        """Convert it to what the service takes."""
        return Recipients(self.audience, self.groups, participant)


class ClarificationAnswer(ClarificationSend):
    """An answer; by default to who asked."""

    audience: str = Field("participant", max_length=20, description="`participant`, `groups` or `all`.")


class Announcement(ClarificationSend):
    """A message that answers no question."""

    participant: str = Field("", max_length=36, description="Code of the recipient, for the audience `participant`.")
    problem: str = Field("", max_length=36, description="Label of a problem.")


class CannedAnswerCreate(ApiModel):
    """A prepared answer."""

    title: str = Field(max_length=MAX_TITLE, examples=["No comment"])
    body: str = Field(max_length=MAX_BODY, examples=["May n be 0?"])


class ClarificationsRead(ApiModel):
    """Up to where clarifications are read."""

    number: int = Field(ge=0, le=2**53, examples=[12])


def read_clarification(item: ClarificationDetail) -> ClarificationRead:
    """The response of one clarification."""
    row = item.row
    return ClarificationRead(
        id=row.id,
        number=row.number,
        audience=row.audience,
        from_participant=item.from_participant.code if item.from_participant else None,
        to_participant=item.to_participant.code if item.to_participant else None,
        groups=[*item.groups],
        reply_to=item.reply_to_number,
        problem=item.label,
        category=row.category,
        body=row.body,
        created_at=format_timestamp(row.created_at),
        answered_at=None if row.answered_at is None else format_timestamp(row.answered_at),
        claimed_by=item.claimed_by,
        is_unread=item.is_unread,
    )
