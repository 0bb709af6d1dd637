"""A stored contest as a contest package: everything but its submissions, read in one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from adjudge.contests.formats import get_format
from adjudge.domain.contest import MINUTE_US, ContestRole
from adjudge.packages.contest_package.model import (
    EXTENSION_VERSION,
    AccountExtension,
    AwardExtension,
    CannedAnswerExtension,
    ClarificationExtension,
    ContestObject,
    ContestPackage,
    ContestSettingsExtension,
    Extension,
    GroupExtension,
    IntervalExtension,
    MaterialExtension,
    ParticipantExtension,
    ProblemExtension,
    ProblemObject,
)
from adjudge.packages.problem_json import problem_from_json
from adjudge.packages.team_files import (
    ImportedAccount,
    ImportedGroup,
    ImportedOrganization,
    ImportedTeam,
    TeamFiles,
)
from adjudge.services.problems import can_view_draft
from adjudge.services.viewer import Viewer
from adjudge.store import Tx
from adjudge.store.contests import awards, clarifications, materials, package_export, participants, queries, teams
from adjudge.store.contests.activity_models import ClarificationRow, MaterialRow
from adjudge.store.contests.models import (
    ContestAccountRow,
    ContestGroupRow,
    ContestProblemRow,
    ContestRow,
    ContestSettings,
    OrganizationRow,
    ParticipantRow,
    TeamRow,
)
from adjudge.store.contests.package_export import PackagedUser
from adjudge.store.problems import queries as problem_queries
from adjudge.store.problems.models import RevisionFileRow

_PAGE: Final = 1_000
_SETTINGS: Final = frozenset(item.name for item in fields(ContestSettings))
EXTENSION_SETTINGS: Final = tuple(item.name for item in fields(ContestSettingsExtension) if item.name in _SETTINGS)
"""The settings that are in the extension under their own names."""
_TYPES: Final = (
    (ContestRole.ORGANISER, "admin"),
    (ContestRole.JUDGE, "judge"),
    (ContestRole.API_READER, "analyst"),
    (ContestRole.PRINT, "staff"),
    (ContestRole.BALLOON, "balloon"),
)
"""The type of an account by the role with the most rights."""


@dataclass(frozen=True, slots=True)
class StoredPackage:
    """A stored contest as a package, and the names and files that the package refers to."""

    package: ContestPackage
    contest: ContestRow
    teams: Mapping[str, str]
    """Participant → its id in the package."""
    problems: Mapping[str, str]
    """Problem → its id in the package."""
    users: Mapping[str, str]
    """User → name."""
    problem_files: Mapping[str, Sequence[RevisionFileRow]]
    """Problem package → its files."""
    photos: Mapping[str, str]
    """Team → digest of its photo."""
    materials: Sequence[MaterialRow]


async def load_contest(tx: Tx, viewer: Viewer, contest: ContestRow) -> StoredPackage:
    """Read a contest. Problem packages are left out where the viewer may not read the tests."""
    people = await _People.load(tx, contest.id)
    rows = await queries.problems(tx, contest.id)
    problems = {row.problem.problem_id: row.slug for row in rows}
    objects, extensions, problem_files = await _problems(tx, viewer, rows)
    files, codes = await materials.list_all(tx, contest.id), people.codes
    extension = Extension(
        version=EXTENSION_VERSION,
        contest=_contest_extension(contest),
        problems=extensions,
        groups=tuple(GroupExtension(item.code, item.ranked, item.ordinal) for item in people.groups),
        participants=people.participants(),
        accounts=people.accounts(),
        removed_intervals=tuple(
            IntervalExtension(item.from_at, item.to_at, item.undone_at, item.reason)
            for item in sorted(await queries.intervals(tx, [contest.id]), key=lambda item: item.from_at)
        ),
        clarifications=await _clarifications(tx, contest.id, people, problems),
        canned_answers=tuple(
            CannedAnswerExtension(item.title, item.body) for item in await clarifications.canned_answers(tx, contest.id)
        ),
        awards=tuple(
            AwardExtension(item.code, item.citation, tuple(codes[team] for team in item.participants), item.managed)
            for item in await awards.awards(tx, contest.id)
        ),
        materials=tuple(MaterialExtension(item.name, item.title, item.visible) for item in files),
    )
    return StoredPackage(
        package=ContestPackage(_contest_object(contest), objects, people.files(), extension),
        contest=contest,
        teams=people.codes,
        problems=problems,
        users={item.id: item.name for item in people.users},
        problem_files=problem_files,
        photos=people.photos,
        materials=files,
    )


def _contest_object(contest: ContestRow) -> ContestObject:
    settings, scoring = contest.settings, get_format(contest.settings.format)
    minutes = getattr(scoring.parse_config(settings.format_cfg), "penalty_minutes", None)
    freeze_us = None if settings.freeze_ct_us is None else settings.duration_us - settings.freeze_ct_us
    return ContestObject(
        id=contest.slug,
        name=settings.title,
        duration_us=settings.duration_us,
        start_at=settings.starts_at,
        countdown_pause_us=settings.countdown_pause_us,
        freeze_us=freeze_us,
        thaw_at=contest.thaw_at,
        is_pass_fail=scoring.is_pass_fail,
        penalty_us=None if minutes is None else minutes * MINUTE_US,
    )


def _contest_extension(contest: ContestRow) -> ContestSettingsExtension:
    settings: dict[str, Any] = {name: getattr(contest.settings, name) for name in EXTENSION_SETTINGS}
    return ContestSettingsExtension(
        state=contest.state,
        frozen_at=contest.frozen_at,
        finalized_at=contest.finalized_at,
        end_of_updates_at=contest.end_of_updates_at,
        **settings,
    )


async def _problems(
    tx: Tx, viewer: Viewer, rows: Sequence[ContestProblemRow]
) -> tuple[tuple[ProblemObject, ...], tuple[ProblemExtension, ...], dict[str, list[RevisionFileRow]]]:
    objects, extensions, found = [], [], dict[str, list[RevisionFileRow]]()
    definitions = await problem_queries.find_revisions(tx, [row.problem.revision_id for row in rows])
    for row in rows:
        item, revision = row.problem, definitions[row.problem.revision_id]
        stored = await problem_queries.find(tx, item.problem_id)
        definition = problem_from_json(revision.definition)
        path = None
        files = await problem_queries.list_files(tx, item.revision_id)
        if files and stored is not None and can_view_draft(viewer, stored):
            path = f"problems/{row.slug}/{row.slug}.zip"
            found[path] = files
        objects.append(
            ProblemObject(
                id=row.slug,
                label=item.label,
                name=row.title,
                rgb=item.rgb,
                color=item.color,
                time_limit_sec=definition.limits.run.cpu_ms / 1_000,
                test_data_count=len(definition.cases) or None,
                package=path,
            )
        )
        extensions.append(
            ProblemExtension(
                id=row.slug,
                alias=item.alias,
                points_micro=item.points_micro,
                opens_ct_us=item.opens_ct_us,
                closes_ct_us=item.closes_ct_us,
                accepts=item.accepts,
                judging_paused=item.judging_paused,
                allowed_languages=item.allowed_languages,
                tags=() if stored is None else stored.tags,
                digest=revision.manifest_digest,
            )
        )
    return tuple(objects), tuple(extensions), found


async def _clarifications(
    tx: Tx, contest_id: str, people: _People, problems: Mapping[str, str]
) -> tuple[ClarificationExtension, ...]:
    rows: list[ClarificationRow] = []
    while page := await clarifications.page(tx, contest_id, before=rows[-1].number if rows else 2**62, limit=_PAGE):
        rows += page
    groups = await clarifications.groups_of(tx, [row.id for row in rows])
    names = {item.id: item.name for item in people.users}
    numbers = {row.id: row.number for row in rows}
    return tuple(
        ClarificationExtension(
            number=row.number,
            audience=row.audience,
            body=row.body,
            created_by=names[row.created_by],
            created_at=row.created_at,
            from_team=people.codes.get(row.from_participant_id or ""),
            to_team=people.codes.get(row.to_participant_id or ""),
            to_groups=tuple(groups[row.id]),
            reply_to=numbers.get(row.reply_to_id or ""),
            problem=problems.get(row.problem_id or ""),
            category=row.category,
            claimed_by=names.get(row.claimed_by or ""),
            answered_at=row.answered_at,
        )
        for row in reversed(rows)
    )


@dataclass(slots=True)
class _People:
    """Participants, groups, organisations and accounts of a contest."""

    rows: list[ParticipantRow]
    users: list[PackagedUser]
    groups: list[ContestGroupRow]
    organizations: list[OrganizationRow]
    teams: Mapping[str, TeamRow]
    bound: Mapping[str, ContestAccountRow]
    members: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    participants_of: defaultdict[str, list[ParticipantRow]] = field(default_factory=lambda: defaultdict(list))
    """User name → participants that they submit for."""
    group_codes: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    roles: defaultdict[str, list[ContestRole]] = field(default_factory=lambda: defaultdict(list))
    photos: dict[str, str] = field(default_factory=dict)

    @property
    def codes(self) -> dict[str, str]:
        """Participant → its id in the package."""
        return {row.id: row.code for row in self.rows}

    @classmethod
    async def load(cls, tx: Tx, contest_id: str) -> _People:
        rows: list[ParticipantRow] = []
        while page := await participants.page(tx, contest_id, after=rows[-1].id if rows else "", limit=_PAGE):
            rows += page
        found = cls(
            rows=rows,
            users=await package_export.users_of_contest(tx, contest_id),
            groups=await participants.groups(tx, contest_id),
            organizations=await teams.organizations_of_contest(tx, contest_id),
            teams=await package_export.teams_of_contest(tx, contest_id),
            bound=await package_export.accounts_of_contest(tx, contest_id),
        )
        by_id = {row.id: row for row in rows}
        for member in await participants.members(tx, list(by_id)):
            found.members[member.participant_id].append(member.user_name)
            found.participants_of[member.user_name].append(by_id[member.participant_id])
        codes = {item.id: item.code for item in found.groups}
        for group_id, participant_id in await participants.group_members(tx, contest_id):
            found.group_codes[participant_id].append(codes[group_id])
        for role in await queries.roles(tx, contest_id):
            found.roles[role.user_name].append(role.role)
        for row in rows:
            team = found.teams.get(row.team_id or "")
            if team is not None and team.photo_digest is not None:
                found.photos[row.code] = team.photo_digest
        return found

    def files(self) -> TeamFiles:
        """The objects of the Contest API."""
        return TeamFiles(
            organizations=[
                ImportedOrganization(item.code, item.name, "", 0, item.formal_name, item.country, item.icpc_id)
                for item in self.organizations
            ],
            groups=[ImportedGroup(item.code, item.name, "", 0, item.icpc_id, item.hidden) for item in self.groups],
            teams=self._teams(),
            accounts=[self._account(item) for item in self.users],
        )

    def _teams(self) -> list[ImportedTeam]:
        organizations, found = {item.id: item.code for item in self.organizations}, []
        for row in self.rows:
            team = self.teams.get(row.team_id or "")
            icpc_id = None if team is None else team.icpc_id
            organization = organizations.get(row.organization_id or "")
            groups = tuple(sorted(self.group_codes[row.id]))
            found.append(ImportedTeam(row.code, row.name, "", 0, icpc_id, row.label, organization, groups, row.hidden))
        return found

    def _account(self, item: PackagedUser) -> ImportedAccount:
        own = self.participants_of[item.name]
        team = min(own, key=lambda row: (row.run_no, row.id)).code if own else None
        roles = self.roles[item.name]
        kind = next((name for role, name in _TYPES if role in roles), "other" if team is None else "team")
        account = self.bound.get(item.id)
        ranges = () if account is None else account.address_ranges or ()
        name = item.display_name or item.name
        return ImportedAccount(item.name, name, "", 0, kind, team, None, ranges[0] if len(ranges) == 1 else None)

    def participants(self) -> tuple[ParticipantExtension, ...]:
        """What the Contest API cannot say of participants."""
        first: dict[str, str] = {}
        names = {item.id: item.name for item in self.users}
        found = []
        for row in self.rows:
            code = row.code if row.team_id is None else first.setdefault(row.team_id, row.code)
            item = ParticipantExtension(
                id=row.code,
                kind=row.kind,
                user=None if row.user_id is None else names[row.user_id],
                team=None if code == row.code else code,
                run_no=row.run_no,
                location=row.location,
                started_at=row.started_at,
                disqualified_at=row.disqualified_at,
                delay_us=row.delay_us,
                extra_us=row.extra_us,
                penalty_adjust_sec=row.penalty_adjust_sec,
                members=tuple(self.members[row.id]),
            )
            found.append(item)
        return tuple(found)

    def accounts(self) -> tuple[AccountExtension, ...]:
        """What the Contest API cannot say of accounts."""
        found = []
        for item in self.users:
            account = self.bound.get(item.id)
            ranges = None if account is None else account.address_ranges
            is_temporary = account is not None and account.temporary
            found.append(AccountExtension(item.name, is_temporary, ranges, tuple(sorted(self.roles[item.name]))))
        return tuple(found)
