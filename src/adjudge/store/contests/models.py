"""Dataclasses of contests: settings, problems, roles, intervals, participants, clarifications and staff queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.domain.contest import (
    ContestFeedback,
    ContestFormat,
    ContestRole,
    ContestVisibility,
    ParticipantKind,
    RegistrationMode,
    ScoreboardVisibility,
)
from adjudge.domain.states import ContestState


@dataclass(frozen=True, slots=True)
class ContestSettings:
    """What organisers set; every field is a column of ``contests``. Durations end in ``_us``."""

    title: str
    duration_us: int
    description: str = ""
    format: ContestFormat = ContestFormat.ICPC
    format_cfg: Mapping[str, Any] = field(default_factory=dict)
    starts_at: int | None = None
    countdown_pause_us: int | None = None
    freeze_ct_us: int | None = None
    window_us: int | None = None
    visibility: ContestVisibility = ContestVisibility.PUBLIC
    scoreboard_visibility: ScoreboardVisibility = ScoreboardVisibility.PUBLIC
    feedback: ContestFeedback = ContestFeedback.FULL
    problems_public: bool = False
    """Whether visitors see the problems while the contest runs."""
    submissions_public: bool = False
    """Whether everybody sees languages, times and runs of all submissions after the contest is finalized."""
    materials_public: bool = False
    """Whether everybody sees editorials, jury solutions and tests after the thaw."""
    contest_only: bool = False
    """The whole installation serves only this contest; only one contest can have it."""
    contest_only_from: int | None = None
    """When that begins; None: at once."""
    contest_only_until: int | None = None
    """When that ends; None: when it is turned off."""
    address_ranges: tuple[str, ...] | None = None
    """Networks that participants must log in and submit from while the contest runs."""
    registration: RegistrationMode = RegistrationMode.OPEN
    registration_code_hash: str | None = None
    registration_opens_at: int | None = None
    registration_closes_at: int | None = None
    allows_individuals: bool = True
    allows_teams: bool = True
    max_team_members: int = 3
    allows_virtual: bool = True
    allows_practice: bool = True
    allowed_languages: tuple[str, ...] | None = None
    submissions_per_minute: int | None = None
    submissions_per_problem: int | None = None
    verify_required: bool = False
    """A verdict counts only after a judge has verified it."""
    late_policy: str = "refuse"
    """What happens to submissions after the end: ``refuse``, or ``unofficial`` until a judge makes them official."""
    clarification_categories: tuple[str, ...] = ()
    printing_enabled: bool = False
    balloons_enabled: bool = False
    freeze_balloon_minimum: int | None = None
    """In the freeze, only participants with fewer balloons than this get one; None: all of them do."""
    awards_cfg: Mapping[str, Any] = field(default_factory=dict)
    bronze_extra: int = 0
    rated: bool = False


@dataclass(frozen=True, slots=True)
class ContestRow:
    """A contest."""

    id: str
    slug: str
    state: ContestState
    settings: ContestSettings
    frozen_at: int | None
    thaw_at: int | None
    finalized_at: int | None
    end_of_updates_at: int | None
    version: int
    created_by: str | None
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class ContestStateChange:
    """One change of the stored state of a contest."""

    from_state: ContestState
    to_state: ContestState
    version: int
    actor: str | None
    reason: str | None
    at: int


@dataclass(frozen=True, slots=True)
class ContestAnnouncement:
    """A transition that was announced: start, freeze, end, thaw, finalize, end of updates."""

    contest_id: str
    transition: str
    due_at: int
    announced_at: int


@dataclass(frozen=True, slots=True)
class ContestProblem:
    """A problem of a contest."""

    contest_id: str
    problem_id: str
    revision_id: str
    """The pinned revision."""
    label: str
    ordinal: int
    rgb: str | None = None
    color: str | None = None
    alias: str | None = None
    """The title in this contest."""
    points_micro: int = 100_000_000
    opens_ct_us: int | None = None
    closes_ct_us: int | None = None
    accepts: bool = True
    judging_paused: bool = False
    allowed_languages: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ContestProblemRow:
    """A problem of a contest with its slug, title and test data."""

    problem: ContestProblem
    slug: str
    title: str
    """The alias, or the title of the problem."""
    revision: int
    """The number of the pinned revision."""
    is_published: bool
    """Whether the problem is public outside of the contest."""
    version: int


@dataclass(frozen=True, slots=True)
class ContestRoleRow:
    """A role of a user in a contest."""

    contest_id: str
    user_id: str
    user_name: str
    role: ContestRole
    created_at: int


@dataclass(frozen=True, slots=True)
class RemovedIntervalRow:
    """Wall time that does not count; without ``to_at`` the contest is paused, with ``undone_at`` it counts again."""

    id: str
    contest_id: str
    from_at: int
    to_at: int | None
    undone_at: int | None
    reason: str | None
    created_by: str | None
    created_at: int


@dataclass(frozen=True, slots=True)
class ContestInvitationRow:
    """A code that admits to a contest."""

    id: str
    contest_id: str
    kind: ParticipantKind
    user_id: str | None
    note: str | None
    max_uses: int
    uses: int
    created_at: int
    expires_at: int | None
    revoked_at: int | None


@dataclass(frozen=True, slots=True)
class OrganizationRow:
    """A university, school or company."""

    id: str
    code: str
    name: str
    formal_name: str | None = None
    country: str | None = None
    icpc_id: str | None = None
    logo_digest: str | None = None


@dataclass(frozen=True, slots=True)
class TeamRow:
    """A team; it can take part in several contests."""

    id: str
    code: str
    name: str
    icpc_id: str | None = None
    organization_id: str | None = None
    photo_digest: str | None = None
    created_by: str | None = None


@dataclass(frozen=True, slots=True)
class TeamMemberRow:
    """A member of a team."""

    team_id: str
    user_id: str
    user_name: str
    is_captain: bool


@dataclass(frozen=True, slots=True)
class NewParticipant:
    """A participant to be created: a team or a user."""

    id: str
    contest_id: str
    code: str
    name: str
    kind: ParticipantKind = ParticipantKind.OFFICIAL
    team_id: str | None = None
    user_id: str | None = None
    run_no: int = 0
    organization_id: str | None = None
    label: str | None = None
    location: str | None = None
    hidden: bool = False
    started_at: int | None = None
    delay_us: int = 0
    extra_us: int = 0
    members: tuple[str, ...] = ()
    """Ids of the users who submit for it; that of ``user_id`` is added."""


@dataclass(frozen=True, slots=True)
class ParticipantRow:
    """A participant of a contest."""

    id: str
    contest_id: str
    code: str
    name: str
    kind: ParticipantKind
    team_id: str | None
    user_id: str | None
    run_no: int
    organization_id: str | None
    label: str | None
    location: str | None
    hidden: bool
    disqualified_at: int | None
    started_at: int | None
    delay_us: int
    extra_us: int
    penalty_adjust_sec: int
    version: int


@dataclass(frozen=True, slots=True)
class ScoreboardParticipant:
    """What the scoreboard shows of a participant."""

    id: str
    name: str
    kind: ParticipantKind
    organization_id: str | None
    organization_name: str
    hidden: bool
    disqualified_at: int | None
    icpc_id: str | None
    code: str


@dataclass(frozen=True, slots=True)
class ParticipantMemberRow:
    """A user who submits for a participant."""

    participant_id: str
    user_id: str
    user_name: str


@dataclass(frozen=True, slots=True)
class ContestGroupRow:
    """A group of participants, for example a region."""

    id: str
    contest_id: str
    code: str
    name: str
    icpc_id: str | None = None
    ranked: bool = True
    hidden: bool = False
    ordinal: int = 0


@dataclass(frozen=True, slots=True)
class ContestAccountRow:
    """An account that was made for a contest, or whose logins are bound to networks during it."""

    user_id: str
    contest_id: str
    address_ranges: tuple[str, ...] | None
    temporary: bool
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class LoginRule:
    """What restricts the logins of an account that was made for a contest."""

    address_ranges: tuple[str, ...] | None
    has_expired: bool
    is_disabled: bool
