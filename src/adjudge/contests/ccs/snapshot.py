"""The data of a contest that its Contest API objects are made of, and what one reader may see of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, Final

from adjudge.contests import clock
from adjudge.contests.formats import get_format
from adjudge.contests.formats.base import ScoringFormat
from adjudge.contests.formats.icpc import IcpcConfig
from adjudge.contests.times import ContestTimes, participant_clock
from adjudge.contests.visibility import Access
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.problem import Problem
from adjudge.domain.states import SubmissionStatus
from adjudge.store.contests.ccs import CcsCaseRow, CcsJudgeRunRow, CcsPersonRow, CcsSubmissionRow
from adjudge.store.contests.models import (
    ContestGroupRow,
    ContestProblemRow,
    ContestRow,
    OrganizationRow,
    ParticipantRow,
    TeamRow,
)

KINDS: Final = frozenset({ParticipantKind.OFFICIAL, ParticipantKind.UNOFFICIAL, ParticipantKind.TEST})
"""Participants of the contest itself. Virtual runs and practice come after it and are no teams of it."""


class VerdictLevel(IntEnum):
    """How much of a judgement a reader sees."""

    NONE = 0
    SIMPLIFIED = 1
    """Accepted or not."""
    VERDICT = 2
    """The verdict and the score."""
    DETAILS = 3
    """Also the times, and what the problem shows of its tests."""
    JURY = 4


@dataclass(frozen=True, slots=True)
class Audience:
    """What one reader may see now, by the table of ``contests.visibility``."""

    sees_all: bool
    lists_submissions: bool
    """Whether submissions of others are listed."""
    verdicts: Access
    """Of others."""
    shows_details: bool
    """Languages, files and runs of others."""
    own: Mapping[str, Access]
    """The own participants, and what is seen of their judgements."""
    problem_ids: frozenset[str]
    """The problems that are seen with everything."""
    shows_labels: bool
    """Whether the labels of the other problems are seen, as on the scoreboard."""
    sees_scoreboard: bool
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class ContestLanguage:
    """A language that the contest allows."""

    id: str
    name: str
    extensions: tuple[str, ...]
    compile: tuple[str, ...]
    run: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """What a file reference tells of an image."""

    media_type: str
    width: int
    height: int


@dataclass(frozen=True)  # without slots: cached properties
class ContestSnapshot:
    """A contest at one time, without its submissions."""

    contest: ContestRow
    times: ContestTimes
    audience: Audience
    problems: Sequence[ContestProblemRow] = ()
    definitions: Mapping[str, Problem] = field(default_factory=dict)
    """By revision."""
    languages: Sequence[ContestLanguage] = ()
    """Those that the contest allows, the default ones first."""
    all_participants: Sequence[ParticipantRow] = ()
    groups: Sequence[ContestGroupRow] = ()
    memberships: Sequence[tuple[str, str]] = ()
    """Pairs of group and participant."""
    all_organizations: Sequence[OrganizationRow] = ()
    teams: Mapping[str, TeamRow] = field(default_factory=dict)
    """By id."""
    people: Sequence[CcsPersonRow] = ()
    images: Mapping[str, ImageInfo] = field(default_factory=dict)
    """By digest."""

    @cached_property
    def format(self) -> ScoringFormat[Any]:
        return get_format(self.contest.settings.format)

    @property
    def is_pass_fail(self) -> bool:
        return self.format.is_pass_fail

    @cached_property
    def icpc(self) -> IcpcConfig:
        """The options of the ICPC format; the default ones for other formats."""
        config = self.format.parse_config(self.contest.settings.format_cfg)
        return config if isinstance(config, IcpcConfig) else IcpcConfig()

    @property
    def duration_us(self) -> int:
        """The duration with the longest delay and extra time: clients ignore submissions after it."""
        return self.contest.settings.duration_us + self.times.longest_us

    @cached_property
    def participants(self) -> dict[str, ParticipantRow]:
        """The teams that the reader may know of, by id."""
        return {item.id: item for item in self.all_participants if item.kind in KINDS and self._sees_team(item)}

    def _sees_team(self, row: ParticipantRow) -> bool:
        is_public = not row.hidden and row.kind is not ParticipantKind.TEST
        return is_public or self.audience.sees_all or row.id in self.audience.own

    @cached_property
    def shown_groups(self) -> dict[str, ContestGroupRow]:
        """The groups that the reader may know of, by id."""
        return {item.id: item for item in self.groups if self.audience.sees_all or not item.hidden}

    @cached_property
    def groups_of(self) -> dict[str, list[ContestGroupRow]]:
        """The groups of participants, hidden ones too."""
        known = {item.id: item for item in self.groups}
        found: dict[str, list[ContestGroupRow]] = {}
        for group_id, participant_id in self.memberships:
            found.setdefault(participant_id, []).append(known[group_id])
        return found

    @cached_property
    def organizations(self) -> dict[str, OrganizationRow]:
        """The organisations of the teams that the reader may know of, by id."""
        used = {item.organization_id for item in self.participants.values()}
        return {item.id: item for item in self.all_organizations if item.id in used}

    @cached_property
    def labels(self) -> dict[str, str]:
        """The ids of the problems that the reader may name."""
        return {
            row.problem.problem_id: row.problem.label
            for row in self.problems
            if row.problem.problem_id in self.audience.problem_ids or self.audience.shows_labels
        }

    @cached_property
    def points_micro(self) -> dict[str, int]:
        """What problems are worth, by id."""
        return {row.problem.problem_id: row.problem.points_micro for row in self.problems}

    @cached_property
    def problem_definitions(self) -> dict[str, Problem]:
        """The packages of the problems, by id of the problem."""
        found = ((row.problem.problem_id, self.definitions.get(row.problem.revision_id)) for row in self.problems)
        return {problem_id: problem for problem_id, problem in found if problem is not None}

    def is_ranked(self, row: ParticipantRow) -> bool:
        """Whether a team gets a rank; the others are not on the scoreboard of the Contest API."""
        in_ranked_groups = all(item.ranked for item in self.groups_of.get(row.id, ()))
        is_shown = not row.hidden and row.disqualified_at is None
        return row.kind is ParticipantKind.OFFICIAL and is_shown and in_ranked_groups

    def contest_time_us(self, at: int) -> int:
        """The contest time of a timestamp."""
        return clock.contest_time(self.times.timeline, at) or 0

    def participant_time_us(self, participant_id: str, at: int) -> int:
        """The time of a participant, which counts for penalties."""
        own = participant_clock(self.participants[participant_id])
        time_us = clock.participant_time(self.times.timeline, own, at)
        return self.contest_time_us(at) if time_us is None else time_us


@dataclass(frozen=True)  # without slots: cached properties
class SubmissionsSnapshot:
    """Submissions of a contest, in number order, with their judge runs and tests."""

    snapshot: ContestSnapshot
    all_rows: Sequence[CcsSubmissionRow]
    judge_runs: Sequence[CcsJudgeRunRow] = ()
    """Those that determine or determined a verdict, and those that are running, oldest first."""
    results: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Result documents of superseded judge runs."""
    cases: Sequence[CcsCaseRow] = ()

    @cached_property
    def rows(self) -> list[CcsSubmissionRow]:
        """Those that the reader may know of, without those that cannot count."""
        return [row for row in self.all_rows if self._is_listed(row) and self._may_count(row)]

    @cached_property
    def runs_of(self) -> dict[str, list[CcsJudgeRunRow]]:
        """The judge runs of submissions."""
        found: dict[str, list[CcsJudgeRunRow]] = {}
        for run in self.judge_runs:
            found.setdefault(run.submission_id, []).append(run)
        return found

    def _is_listed(self, row: CcsSubmissionRow) -> bool:
        audience = self.snapshot.audience
        if row.participant_id not in self.snapshot.participants:
            return False
        return row.participant_id in audience.own or audience.sees_all or audience.lists_submissions

    def _may_count(self, row: CcsSubmissionRow) -> bool:
        """Whether the submission counts, or is so late that clients know that it does not."""
        if row.ignored_at is not None or row.status is SubmissionStatus.CANCELED:
            return False
        participant = self.snapshot.participants[row.participant_id]
        if row.official or participant.kind is ParticipantKind.TEST:
            return True
        if clock.is_counted(self.snapshot.times.timeline, participant_clock(participant), row.received_at):
            return True
        return self.snapshot.participant_time_us(row.participant_id, row.received_at) >= self.snapshot.duration_us

    def level(self, row: CcsSubmissionRow) -> VerdictLevel:
        """How much of the judgement of a submission the reader sees."""
        audience = self.snapshot.audience
        if audience.sees_all:
            return VerdictLevel.JURY
        own = audience.own.get(row.participant_id)
        if own is not None:
            return _OWN.get(own, VerdictLevel.NONE)
        if audience.verdicts is Access.FULL:
            return VerdictLevel.DETAILS if audience.shows_details else VerdictLevel.VERDICT
        if audience.verdicts is Access.BEFORE_FREEZE and self.is_frozen(row):
            return VerdictLevel.NONE
        is_public = audience.verdicts in (Access.BEFORE_FREEZE, Access.ACCEPTED_OR_NOT) and self.snapshot.is_pass_fail
        return VerdictLevel.SIMPLIFIED if is_public else VerdictLevel.NONE  # a score would tell more than that

    def is_frozen(self, row: CcsSubmissionRow) -> bool:
        """Whether the submission was received since the freeze."""
        timeline = self.snapshot.times.timeline
        return clock.is_after_freeze(timeline, clock.contest_time(timeline, row.received_at), row.received_at)


_OWN: Final = {Access.FULL: VerdictLevel.DETAILS, Access.VERDICT_AND_SCORE: VerdictLevel.VERDICT}
