"""Scoreboards, awards, the unfreezing ceremony and statistics of contests on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from adjudge.domain.contest import ContestPhase, ParticipantKind
from adjudge.domain.verdict import Verdict
from adjudge.schema.base import ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class ScoreboardProblemRead(ResponseModel):
    """A column."""

    label: str
    title: str | None = field(metadata=doc("Null while you may not see the problems."))
    rgb: str | None


@dataclass(frozen=True, kw_only=True)
class ScoreboardGroupRead(ResponseModel):
    """A group or an organisation that rows can be filtered by."""

    id: str
    name: str


@dataclass(frozen=True, kw_only=True)
class ScoreboardCellRead(ResponseModel):
    """What one participant achieved on one problem."""

    attempts: int
    pending: int = field(metadata=doc("Submissions without a verdict that you may see."))
    is_solved: bool
    is_first: bool = field(metadata=doc("Whether the participant solved the problem first."))
    time_sec: int | None = field(metadata=doc("Participant time of the solution or of the score."))
    score: float | None = field(metadata=doc("Points; null in formats without scores."))


@dataclass(frozen=True, kw_only=True)
class ScoreboardRowRead(ResponseModel):
    """A row. Rows are sorted by their keys in descending order; rows with equal keys share a rank."""

    participant_id: str
    name: str
    organization_id: str | None
    organization: str
    group_ids: list[str]
    kind: ParticipantKind
    is_ranked: bool
    is_disqualified: bool
    rank: int | None = field(
        metadata=doc(
            "Null for participants who are not ranked, and for the own row in a freeze. The own row of a virtual "
            "participation has the rank that it would have had."
        )
    )
    keys: list[int]
    solved: int | None = field(metadata=doc("Solved problems; null in formats with scores."))
    score: float | None = field(metadata=doc("Points; null in formats without scores."))
    penalty_sec: int | None
    cells: list[ScoreboardCellRead] = field(metadata=doc("In the order of the problems."))


@dataclass(frozen=True, kw_only=True)
class ScoreboardRead(ResponseModel):
    """A window of the rows of a scoreboard, in listing order."""

    view: str = field(metadata=doc("`public`, or `jury` for the jury and after the thaw."))
    phase: ContestPhase
    is_pass_fail: bool = field(metadata=doc("Whether rows have solved problems and penalties; else they have scores."))
    is_final: bool
    is_hidden: bool = field(metadata=doc("Whether the scoreboard is hidden from you; then there is only your own row."))
    frozen_min: int | None = field(
        metadata=doc("With how many minutes remaining the rows were frozen; null if they are not.")
    )
    replay_sec: int | None = field(
        metadata=doc(
            "The time of your virtual participation while it runs: the rows are those that the contest had at this "
            "time, and yours is ranked among them. Null otherwise."
        )
    )
    problems: list[ScoreboardProblemRead]
    groups: list[ScoreboardGroupRead]
    rows: list[ScoreboardRowRead]
    offset: int
    total: int = field(metadata=doc("Rows that match the filters."))
    own_row: ScoreboardRowRead | None
    event_id: str = field(metadata=doc("The last change; send it as `Last-Event-ID` to receive the later ones."))


@dataclass(frozen=True, kw_only=True)
class ScoreboardRowEvent(ResponseModel):
    """One row that changed. Ranks of other rows follow from its keys before and after."""

    row: ScoreboardRowRead
    position: int = field(metadata=doc("Where it is listed now, from 0, among the rows of the filter."))
    previous_keys: list[int] | None = field(
        metadata=doc("Null in the events that follow a reconnection: they have the row as it is now.")
    )


@dataclass(frozen=True, kw_only=True)
class ScoreboardFilters(ResponseModel):
    """What the rows of a scoreboard can be filtered by."""

    groups: list[ScoreboardGroupRead]
    organizations: list[ScoreboardGroupRead] = field(metadata=doc("By name; those that match the search."))
    organization_count: int = field(metadata=doc("All organisations of the rows."))


@dataclass(frozen=True, kw_only=True)
class CellSubmissionRead(ResponseModel):
    """A submission of a cell, as far as you may see it."""

    submission_id: str
    number: int
    received_at: Timestamp
    verdict: Verdict | None = field(metadata=doc("Null while pending, or hidden from you."))
    is_accepted: bool | None = field(metadata=doc("Null while pending, or hidden from you."))
    is_ignored: bool
    may_open: bool = field(metadata=doc("Whether you may open the submission."))


@dataclass(frozen=True, kw_only=True)
class CellSubmissionList(ResponseModel):
    """The submissions of one cell, oldest first."""

    participant: str
    problem: str
    items: list[CellSubmissionRead]


@dataclass(frozen=True, kw_only=True)
class AwardRead(ResponseModel):
    """An award."""

    id: str
    citation: str
    participant_ids: list[str]
    is_managed: bool = field(metadata=doc("Whether it is computed; else it was edited, and is kept."))


@dataclass(frozen=True, kw_only=True)
class AwardList(ResponseModel):
    """The awards of a contest, in the order of the ceremony."""

    items: list[AwardRead]


@dataclass(frozen=True, kw_only=True)
class ResolverAwardRead(ResponseModel):
    """An award that the ceremony announces."""

    id: str
    citation: str


@dataclass(frozen=True, kw_only=True)
class ResolverRead(ResponseModel):
    """The unfreezing ceremony: the frozen rows in listing order, and the steps to the final ones."""

    contest: str
    is_pass_fail: bool
    problems: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    steps: list[dict[str, Any]] = field(metadata=doc("`reveal`, `move` or `award`; each can be applied and undone."))
    awards: list[ResolverAwardRead]


@dataclass(frozen=True, kw_only=True)
class LanguageStatisticsRead(ResponseModel):
    """What was submitted in one language."""

    language: str
    submissions: int
    accepted: int
    participants: int


@dataclass(frozen=True, kw_only=True)
class TimelineBucketRead(ResponseModel):
    """The submissions of one stretch of contest time."""

    from_sec: int
    submissions: int
    accepted: int


@dataclass(frozen=True, kw_only=True)
class ProblemStatisticsRead(ResponseModel):
    """What happened on one problem."""

    label: str
    submissions: int
    pending: int
    participants: int
    solved: int
    first_solved_sec: int | None
    first_solved_by: str | None = field(metadata=doc("Who solved it first, by the rules of the scoreboard."))
    verdicts: dict[str, int]
    languages: list[LanguageStatisticsRead]
    timeline: list[TimelineBucketRead]


@dataclass(frozen=True, kw_only=True)
class ContestStatisticsRead(ResponseModel):
    """Statistics of a contest."""

    problems: list[ProblemStatisticsRead]
    languages: list[LanguageStatisticsRead]
    timeline: list[TimelineBucketRead]


@dataclass(frozen=True, kw_only=True)
class ScoreboardChangeRead(ResponseModel):
    """A row whose rank or result would change."""

    participant_id: str
    name: str
    old_rank: int | None
    new_rank: int | None
    old_result: str
    new_result: str


@dataclass(frozen=True, kw_only=True)
class FirstSolveChangeRead(ResponseModel):
    """A problem whose first solver would change."""

    label: str
    old_participant: str | None
    new_participant: str | None


@dataclass(frozen=True, kw_only=True)
class AwardChangeRead(ResponseModel):
    """An award that other participants would get."""

    id: str
    citation: str
    lost: list[str] = field(metadata=doc("Participants who would lose it."))
    gained: list[str] = field(metadata=doc("Participants who would get it."))


@dataclass(frozen=True, kw_only=True)
class ScoreboardPreviewRead(ResponseModel):
    """How a rejudge batch would change the scoreboard of a contest."""

    contest: str
    title: str
    rows: list[ScoreboardChangeRead]
    first_solves: list[FirstSolveChangeRead]
    awards: list[AwardChangeRead]


@dataclass(frozen=True, kw_only=True)
class ScoreboardPreviewList(ResponseModel):
    """One entry for each contest whose scoreboard would change."""

    items: list[ScoreboardPreviewRead]
