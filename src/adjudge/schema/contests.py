"""Contests, their problems, roles and removed intervals on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from adjudge.domain.contest import (
    ContestFeedback,
    ContestFormat,
    ContestPhase,
    ContestRole,
    ContestVisibility,
    RegistrationMode,
    ScoreboardVisibility,
)
from adjudge.domain.states import ContestState
from adjudge.schema.base import NextCursor, ResponseModel, Timestamp, doc
from adjudge.schema.problems import ProblemRead


@dataclass(frozen=True, kw_only=True)
class ContestSettingsRead(ResponseModel):
    """The settings of a contest. Contest time is the time since the start without removed intervals."""

    description: str
    format: ContestFormat
    format_cfg: dict[str, Any] = field(metadata=doc("Options of the format; see the scoring rules."))
    duration_sec: float
    freeze_after_sec: float | None = field(metadata=doc("Contest time at which the public scoreboard freezes."))
    window_sec: float | None = field(metadata=doc("Length of individual windows: everyone starts when they choose."))
    visibility: ContestVisibility
    scoreboard_visibility: ScoreboardVisibility
    feedback: ContestFeedback = field(metadata=doc("What participants see of their own judgements."))
    problems_public: bool = field(metadata=doc("Whether visitors see the problems while the contest runs."))
    submissions_public: bool = field(metadata=doc("Whether all details of submissions are public once finalized."))
    materials_public: bool = field(metadata=doc("Whether editorials, solutions and tests are public once thawed."))
    contest_only: bool = field(metadata=doc("Whether the installation serves only this contest."))
    contest_only_from: Timestamp | None = field(metadata=doc("When that begins; null: at once."))
    contest_only_until: Timestamp | None = field(metadata=doc("When that ends; null: when it is turned off."))
    address_ranges: list[str] | None = field(metadata=doc("Networks that participants must submit from."))
    registration: RegistrationMode
    registration_opens_at: Timestamp | None
    registration_closes_at: Timestamp | None
    allows_individuals: bool
    allows_teams: bool
    max_team_members: int
    allows_virtual: bool
    allows_practice: bool
    allowed_languages: list[str] | None
    submissions_per_minute: int | None
    submissions_per_problem: int | None
    verify_required: bool = field(metadata=doc("Whether a verdict counts only after a judge has verified it."))
    late_policy: str = field(metadata=doc("Submissions after the end: `refuse`, or `unofficial`."))
    clarification_categories: list[str]
    printing_enabled: bool
    balloons_enabled: bool
    freeze_balloon_minimum: int | None
    awards_cfg: dict[str, Any]
    bronze_extra: int
    rated: bool


@dataclass(frozen=True, kw_only=True)
class ContestRead(ResponseModel):
    """A contest in a list."""

    id: str
    slug: str
    title: str
    state: ContestState
    phase: ContestPhase = field(metadata=doc("The phase for you, by the clock of the server."))
    format: ContestFormat
    starts_at: Timestamp | None
    countdown_pause_sec: float | None = field(metadata=doc("Time left when the countdown was paused."))
    ends_at: Timestamp | None = field(metadata=doc("The end for you; null if unknown or paused."))
    is_paused: bool
    is_participant: bool
    roles: list[ContestRole]


@dataclass(frozen=True, kw_only=True)
class ContestDetail(ContestRead):
    """A contest."""

    settings: ContestSettingsRead
    contest_time_sec: float | None
    freezes_at: Timestamp | None
    thaw_at: Timestamp | None
    finalized_at: Timestamp | None
    end_of_updates_at: Timestamp | None
    version: int | None = field(metadata=doc("For the staff of the contest: changes may be hidden from others."))
    created_at: Timestamp
    updated_at: Timestamp | None = field(metadata=doc("For the staff of the contest."))


@dataclass(frozen=True, kw_only=True)
class ContestPage(ResponseModel):
    """A page of contests, newest first."""

    items: list[ContestRead]
    next: NextCursor


@dataclass(frozen=True, kw_only=True)
class ContestProblemRead(ResponseModel):
    """A problem of a contest."""

    label: str
    slug: str
    title: str = field(metadata=doc("The alias, or the title of the problem."))
    alias: str | None = field(metadata=doc("Its title in this contest; null if it keeps its own."))
    revision: int = field(metadata=doc("The number of the pinned revision."))
    ordinal: int
    rgb: str | None
    color: str | None
    points: float
    opens_after_sec: float | None = field(metadata=doc("Contest time at which it opens."))
    closes_after_sec: float | None = field(metadata=doc("Contest time at which it stops accepting."))
    accepts: bool
    judging_paused: bool
    allowed_languages: list[str] | None


@dataclass(frozen=True, kw_only=True)
class ContestProblemDetail(ContestProblemRead):
    """A problem of a contest with its statement."""

    problem: ProblemRead = field(metadata=doc("Without tags, difficulty, authors and origin."))


@dataclass(frozen=True, kw_only=True)
class ContestProblemList(ResponseModel):
    """The problems of a contest in order; empty while you may not see them."""

    items: list[ContestProblemRead]
    warnings: list[str] = field(default_factory=list, metadata=doc("What the organiser should know."))


@dataclass(frozen=True, kw_only=True)
class ContestRoleRead(ResponseModel):
    """A role of a user in a contest."""

    user_id: str
    user_name: str
    role: ContestRole
    created_at: Timestamp


@dataclass(frozen=True, kw_only=True)
class ContestRoleList(ResponseModel):
    """The roles in a contest."""

    items: list[ContestRoleRead]


@dataclass(frozen=True, kw_only=True)
class RemovedIntervalRead(ResponseModel):
    """Wall time that does not count; without ``to_at`` the contest is paused."""

    id: str
    from_at: Timestamp
    to_at: Timestamp | None
    undone_at: Timestamp | None
    reason: str | None
    created_at: Timestamp


@dataclass(frozen=True, kw_only=True)
class RemovedIntervalList(ResponseModel):
    """The removed intervals of a contest, undone ones included."""

    items: list[RemovedIntervalRead]


@dataclass(frozen=True, kw_only=True)
class ContestStateChangeRead(ResponseModel):
    """One change of the stored state."""

    from_state: ContestState
    to_state: ContestState
    version: int
    actor: str | None
    reason: str | None
    at: Timestamp


@dataclass(frozen=True, kw_only=True)
class ContestLog(ResponseModel):
    """The changes of the stored state, oldest first."""

    items: list[ContestStateChangeRead]


@dataclass(frozen=True, kw_only=True)
class FinalizeCheck(ResponseModel):
    """What prevents that the contest is finalized; empty if nothing does."""

    blockers: list[str]
