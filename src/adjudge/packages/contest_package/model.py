"""Dataclasses of a contest package: the objects of the Contest API, and the extension with what these cannot say.

In the extension (``adjudge.json``), times that end in ``_at`` are microseconds since the Unix epoch, durations that end
in ``_us`` are microseconds. Users are named by user name, participants, groups and problems by their id in the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge.domain.contest import (
    ContestFeedback,
    ContestFormat,
    ContestRole,
    ContestVisibility,
    MaterialVisibility,
    ParticipantKind,
    RegistrationMode,
    ScoreboardVisibility,
)
from adjudge.domain.programs import SourceFormat
from adjudge.domain.states import ContestState, SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.packages.findings import Findings
from adjudge.packages.team_files import TeamFiles

EXTENSION_VERSION: Final = 1
EXTENSION_FILE: Final = "adjudge.json"
SUBMISSIONS_FILE: Final = "adjudge/submissions.ndjson"
SOURCES_FOLDER: Final = "adjudge/sources"
MATERIALS_FOLDER: Final = "adjudge/materials"


@dataclass(frozen=True, slots=True)
class ContestObject:
    """``contest.json`` or ``contest.yaml``."""

    id: str
    name: str
    duration_us: int
    start_at: int | None = None
    countdown_pause_us: int | None = None
    freeze_us: int | None = None
    """How long before the end the scoreboard freezes."""
    thaw_at: int | None = None
    is_pass_fail: bool = True
    penalty_us: int | None = None
    main_group: str | None = None
    """Teams outside of this group are hidden (2026-01)."""


@dataclass(frozen=True, slots=True)
class ProblemObject:
    """An object of ``problems.json`` or ``problems.yaml``."""

    id: str
    label: str
    name: str
    rgb: str | None = None
    color: str | None = None
    time_limit_sec: float | None = None
    test_data_count: int | None = None
    package: str | None = None
    """Where the problem package is in the contest package: an archive, or a folder if it ends with a slash."""
    line: int = 0


# The extension.


@dataclass(frozen=True, slots=True)
class ContestSettingsExtension:
    """Settings and times of a contest beyond ``contest.json``; the settings are those of the HTTP API."""

    state: ContestState = ContestState.DRAFT
    format: ContestFormat = ContestFormat.ICPC
    format_cfg: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    window_us: int | None = None
    frozen_at: int | None = None
    finalized_at: int | None = None
    end_of_updates_at: int | None = None
    visibility: ContestVisibility = ContestVisibility.PUBLIC
    scoreboard_visibility: ScoreboardVisibility = ScoreboardVisibility.PUBLIC
    feedback: ContestFeedback = ContestFeedback.FULL
    problems_public: bool = False
    submissions_public: bool = False
    materials_public: bool = False
    address_ranges: tuple[str, ...] | None = None
    registration: RegistrationMode = RegistrationMode.OPEN
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
    late_policy: str = "refuse"
    clarification_categories: tuple[str, ...] = ()
    printing_enabled: bool = False
    balloons_enabled: bool = False
    freeze_balloon_minimum: int | None = None
    awards_cfg: Mapping[str, Any] = field(default_factory=dict)
    bronze_extra: int = 0
    rated: bool = False


@dataclass(frozen=True, slots=True)
class ProblemExtension:
    """A problem of the contest."""

    id: str
    alias: str | None = None
    points_micro: int = 100_000_000
    opens_ct_us: int | None = None
    closes_ct_us: int | None = None
    accepts: bool = True
    judging_paused: bool = False
    allowed_languages: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()
    digest: str = ""
    """The digest of everything that decides verdicts in the pinned revision."""


@dataclass(frozen=True, slots=True)
class GroupExtension:
    """A group."""

    id: str
    ranked: bool = True
    ordinal: int = 0


@dataclass(frozen=True, slots=True)
class ParticipantExtension:
    """A participant; its name, organisation and groups are in ``teams.json``."""

    id: str
    kind: ParticipantKind = ParticipantKind.OFFICIAL
    user: str | None = None
    """The user who takes part alone."""
    team: str | None = None
    """The participant whose team this is; None for the first participant of a team."""
    run_no: int = 0
    location: str | None = None
    started_at: int | None = None
    disqualified_at: int | None = None
    delay_us: int = 0
    extra_us: int = 0
    penalty_adjust_sec: int = 0
    members: tuple[str, ...] = ()
    """Users who submit for it."""


@dataclass(frozen=True, slots=True)
class AccountExtension:
    """An account."""

    username: str
    temporary: bool = False
    """Made for the contest: it expires with it."""
    address_ranges: tuple[str, ...] | None = None
    roles: tuple[ContestRole, ...] = ()


@dataclass(frozen=True, slots=True)
class IntervalExtension:
    """A removed interval."""

    from_at: int
    to_at: int | None = None
    undone_at: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ClarificationExtension:
    """A question, an answer or an announcement."""

    number: int
    audience: str
    body: str
    created_by: str
    created_at: int
    from_team: str | None = None
    to_team: str | None = None
    to_groups: tuple[str, ...] = ()
    reply_to: int | None = None
    problem: str | None = None
    category: str | None = None
    claimed_by: str | None = None
    answered_at: int | None = None


@dataclass(frozen=True, slots=True)
class CannedAnswerExtension:
    """A canned answer."""

    title: str
    body: str


@dataclass(frozen=True, slots=True)
class AwardExtension:
    """An award that was stored: edited ones are kept."""

    id: str
    citation: str
    teams: tuple[str, ...]
    managed: bool = True


@dataclass(frozen=True, slots=True)
class MaterialExtension:
    """A file of ``adjudge/materials``."""

    name: str
    title: str
    visible: MaterialVisibility


@dataclass(frozen=True, slots=True)
class Extension:
    """``adjudge.json``."""

    version: int
    contest: ContestSettingsExtension = field(default_factory=ContestSettingsExtension)
    problems: tuple[ProblemExtension, ...] = ()
    groups: tuple[GroupExtension, ...] = ()
    participants: tuple[ParticipantExtension, ...] = ()
    accounts: tuple[AccountExtension, ...] = ()
    removed_intervals: tuple[IntervalExtension, ...] = ()
    clarifications: tuple[ClarificationExtension, ...] = ()
    canned_answers: tuple[CannedAnswerExtension, ...] = ()
    awards: tuple[AwardExtension, ...] = ()
    materials: tuple[MaterialExtension, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """The result of one test case."""

    name: str
    verdict: Verdict
    time_ms: int
    wall_ms: int
    mem_kb: int
    group: str | None = None
    score: float | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    limit_hit: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class SubmissionRecord:
    """A line of ``adjudge/submissions.ndjson``: a submission with its result and the decisions of the jury."""

    number: int
    team: str
    user: str
    problem: str
    language: str
    source: str
    """The SHA-256 digest of the source; its content is in ``adjudge/sources``."""
    source_format: SourceFormat
    created_at: int
    received_at: int
    status: SubmissionStatus
    verdict: Verdict | None = None
    score: float | None = None
    time_ms: int | None = None
    mem_kb: int | None = None
    finished_at: int | None = None
    official: bool = False
    score_micro: int | None = None
    max_score_micro: int | None = None
    subtasks: Mapping[str, int] | None = None
    ignored_at: int | None = None
    verified_at: int | None = None
    verified_by: str | None = None
    verified_verdict: Verdict | None = None
    override_verdict: Verdict | None = None
    override_score_micro: int | None = None
    overridden_at: int | None = None
    overridden_by: str | None = None
    override_reason: str | None = None
    result: Mapping[str, Any] | None = None
    """The result document of the judge run."""
    cases: tuple[CaseRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class ContestPackage:
    """Everything of a package but its submissions and files."""

    contest: ContestObject
    problems: tuple[ProblemObject, ...]
    people: TeamFiles
    extension: Extension | None = None
    photos: Mapping[str, str] = field(default_factory=dict)
    """Team → path of its photo."""
    has_submissions: bool = False
    findings: Findings = field(default_factory=Findings)
