"""Dataclasses of what happens in a contest: submissions, clarifications, balloons, prints, awards, ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adjudge.domain.contest import MaterialVisibility
from adjudge.domain.verdict import Verdict

CLARIFICATION_AUDIENCES: Final = ("jury", "participant", "groups", "all")


@dataclass(frozen=True, slots=True)
class NewContestSubmission:
    """A submission that is about to be added to a contest."""

    submission_id: str
    contest_id: str
    participant_id: str
    problem_id: str


@dataclass(frozen=True, slots=True)
class ContestSubmissionRow:
    """A submission of a contest, as the jury sees it."""

    submission_id: str
    contest_id: str
    participant_id: str
    problem_id: str
    label: str | None
    """The label of the problem in the contest."""
    number: int
    received_at: int
    official: bool
    """Counts by decision of the jury although it is outside the participant's time."""
    score_micro: int | None
    max_score_micro: int | None
    subtasks: Mapping[str, int] | None
    ignored_at: int | None
    verified_at: int | None
    verified_by: str | None
    override_verdict: Verdict | None
    override_score_micro: int | None
    overridden_at: int | None
    overridden_by: str | None
    override_reason: str | None
    version: int
    user_id: str
    language: str
    status: str
    verdict: Verdict | None
    """Of the judge; ``override_verdict`` counts if it is set."""
    judged_by_job_id: str | None
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class ClarificationRow:
    """A question, an answer or an announcement. An announcement comes from the jury and answers nothing."""

    id: str
    contest_id: str
    number: int
    from_participant_id: str | None
    audience: str
    """``jury``, ``participant``, ``groups`` or ``all``."""
    to_participant_id: str | None
    reply_to_id: str | None
    problem_id: str | None
    category: str | None
    body: str
    created_by: str
    created_at: int
    claimed_by: str | None
    answered_at: int | None
    version: int


@dataclass(frozen=True, slots=True)
class NewClarification:
    """A clarification to be created; its number comes from the counter of the contest."""

    id: str
    contest_id: str
    audience: str
    body: str
    created_by: str
    from_participant_id: str | None = None
    to_participant_id: str | None = None
    group_ids: Sequence[str] = ()
    reply_to_id: str | None = None
    problem_id: str | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class CannedAnswerRow:
    """A prepared answer."""

    id: str
    contest_id: str
    ordinal: int
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class BalloonRow:
    """A balloon for a solved problem; ``number`` is that of the accepted submission."""

    participant_id: str
    participant_code: str
    participant_name: str
    location: str | None
    problem_id: str
    label: str
    rgb: str | None
    color: str | None
    number: int
    received_at: int
    created_at: int
    delivered_at: int | None
    delivered_by: str | None
    """The name of the user."""
    withdrawn_at: int | None
    """Delivered, but the problem is no longer solved: it is to be collected."""
    is_of_freeze: bool
    """The submission is one that the rule of the freeze applies to."""
    is_held: bool
    """Not to be delivered before the thaw, by the rule of the contest."""
    total: int
    """Balloons of the participant that the viewer may see."""

    @property
    def state(self) -> str:
        """``waiting``, ``held``, ``delivered`` or ``collect``."""
        if self.withdrawn_at is not None:
            return "collect"
        if self.delivered_at is not None:
            return "delivered"
        return "held" if self.is_held else "waiting"


@dataclass(frozen=True, slots=True)
class NewPrint:
    """A print job to be created; its number comes from the counter of the contest."""

    id: str
    contest_id: str
    participant_id: str | None
    """None: the staff prints for itself."""
    user_id: str
    file_name: str
    body: str
    size_bytes: int
    pages: int


@dataclass(frozen=True, slots=True)
class PrintRow:
    """A print job without its text."""

    id: str
    contest_id: str
    number: int
    participant_id: str | None
    participant_code: str | None
    participant_name: str | None
    location: str | None
    user_id: str
    user_name: str
    file_name: str
    size_bytes: int
    pages: int
    state: str
    """``pending``, ``printing`` (claimed) or ``done``."""
    claimed_by: str | None
    """The name of the user."""
    created_at: int
    finished_at: int | None

    @property
    def owner(self) -> str:
        """Whom the print is for: the participant, or the member of the staff."""
        return self.participant_name or self.user_name


@dataclass(frozen=True, slots=True)
class MaterialRow:
    """A file that organisers publish with a contest."""

    id: str
    contest_id: str
    name: str
    title: str
    """Shown instead of the name, unless it is empty."""
    visible: MaterialVisibility
    digest: str
    size_bytes: int
    created_by: str
    created_at: int = 0
    """When the content was uploaded."""


@dataclass(frozen=True, slots=True)
class AwardRow:
    """An award; one that is not managed was edited and is kept."""

    contest_id: str
    code: str
    citation: str
    participants: tuple[str, ...]
    managed: bool = True
    ordinal: int = 0


@dataclass(frozen=True, slots=True)
class RatingRow:
    """The rating of a user after a contest."""

    contest_id: str
    user_id: str
    rank: int
    performance_milli: int
    before_rating_milli: int
    before_deviation_milli: int
    rating_milli: int
    deviation_milli: int
    rated_at: int


@dataclass(frozen=True, slots=True)
class ReadMarkRow:
    """Up to where a user has read the clarifications and the verdicts of a contest."""

    contest_id: str
    user_id: str
    clarification_number: int
    verdicts_until: int


@dataclass(frozen=True, slots=True)
class UnreadMessage:
    """An answer or announcement that a participant has not read."""

    number: int
    body: str
    asked_by: str | None
    """The participant whose question it answers."""


@dataclass(frozen=True, slots=True)
class UnreadVerdicts:
    """How many verdicts a user has not read, and up to when they are."""

    count: int
    until: int | None
    """When the last of them became known; None if there is none."""


@dataclass(frozen=True, slots=True)
class UnreadVerdict:
    """A verdict that a user has not read."""

    submission_id: str
    number: int
    label: str | None
    verdict: Verdict
    verdict_at: int
    """When it became known to the participant."""
