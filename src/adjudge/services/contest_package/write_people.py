"""Writes the people of a contest package: users, groups, organisations, participants, accounts and roles."""

from __future__ import annotations

from collections.abc import Mapping

from adjudge.contests.accounts import account_expiry
from adjudge.contests.registration import add_participants
from adjudge.contests.times import load_times
from adjudge.domain.contest import ContestRole
from adjudge.domain.ids import IdFactory
from adjudge.domain.permissions import Permission
from adjudge.packages.contest_package.model import (
    AccountExtension,
    ContestPackage,
    Extension,
    GroupExtension,
    ParticipantExtension,
)
from adjudge.packages.team_files import ImportedTeam
from adjudge.services.team_import import ACCOUNT_ROLES
from adjudge.services.viewer import Viewer
from adjudge.store import Tx
from adjudge.store.contests import accounts, commands, package_import, participants, queries, team_import, teams
from adjudge.store.contests.models import (
    ContestAccountRow,
    ContestGroupRow,
    NewParticipant,
    OrganizationRow,
    TeamRow,
)
from adjudge.store.contests.package_import import ParticipantMarks

REASON = "imported"


class PeopleWriter:
    """Writes them for one contest; users and organisations that exist are used as they are."""

    def __init__(self, tx: Tx, viewer: Viewer, package: ContestPackage, contest_id: str, *, new_id: IdFactory) -> None:
        self._tx, self._viewer, self._package, self._contest_id, self._new_id = tx, viewer, package, contest_id, new_id
        self._extension = package.extension or Extension(1)
        self._created: set[str] = set()
        self.users: dict[str, str] = {}
        """Name → id."""
        self.groups: dict[str, str] = {}
        """Id in the package → id."""
        self.participants: dict[str, str] = {}
        """Id in the package → id."""

    async def write_users(self, hashes: Mapping[str, str]) -> set[str]:
        """Create the users that do not exist; return their names."""
        items = self._package.people.accounts
        known = await team_import.find_accounts(self._tx, self._contest_id, [item.code for item in items])
        self.users = {name: row.user_id for name, row in known.items()}
        new = [item for item in items if item.code not in known]
        ids = {item.code: self._new_id() for item in new}
        rows = [(ids[item.code], item.code, item.name[:100], hashes.get(item.code)) for item in new]
        await team_import.insert_users(self._tx, rows)
        self.users |= ids
        self._created = set(ids)
        return self._created

    async def bind_accounts(self) -> None:
        """Bind the new accounts that were made for the contest; they expire with it."""
        known = {item.username: item for item in self._extension.accounts}
        contest = await queries.find_contest(self._tx, self._contest_id)
        expires_at = account_expiry(await load_times(self._tx, contest))
        rows = []
        for item in self._package.people.accounts:
            if item.code not in self._created:
                continue
            ip_only = (item.ip,) if item.ip else None
            extension = known.get(item.code, AccountExtension(item.code, temporary=True, address_ranges=ip_only))
            is_temporary, ranges = extension.temporary, extension.address_ranges
            if is_temporary or ranges:
                user_id, until = self.users[item.code], expires_at if is_temporary else None
                rows.append(ContestAccountRow(user_id, self._contest_id, ranges, is_temporary, until))
        await accounts.bind_accounts(self._tx, self._contest_id, rows)

    async def write_roles(self) -> None:
        """Grant the roles; the viewer is an organiser if nobody else is, or could not manage the contest."""
        if self._package.extension is None:
            pairs = [
                (item.code, role) for item in self._package.people.accounts for role in ACCOUNT_ROLES.get(item.type, ())
            ]
        else:
            pairs = [(item.username, role) for item in self._extension.accounts for role in item.roles]
        grants = [(self.users[name], role) for name, role in pairs]
        has_organiser = any(role is ContestRole.ORGANISER for _, role in grants)
        if not has_organiser or not self._viewer.can(Permission.CONTEST_ADMIN):
            grants.append((self._viewer.id, ContestRole.ORGANISER))
        await commands.grant_roles(
            self._tx, self._contest_id, sorted(set(grants)), actor=self._viewer.id, granted_by=self._viewer.id
        )

    async def write_groups(self) -> None:
        """Create the groups."""
        known = {item.id: item for item in self._extension.groups}
        rows = []
        for index, item in enumerate(self._package.people.groups):
            extension = known.get(item.code, GroupExtension(item.code, ordinal=index))
            self.groups[item.code] = self._new_id()
            rows.append(
                ContestGroupRow(
                    self.groups[item.code],
                    self._contest_id,
                    item.code,
                    item.name,
                    item.icpc_id,
                    extension.ranked,
                    item.hidden,
                    extension.ordinal,
                )
            )
        await participants.upsert_groups(self._tx, rows)

    async def write_participants(self, photos: Mapping[str, str]) -> None:
        """Create participants and teams, in the order of the package; ``photos`` are digests by team."""
        organizations = await self._write_organizations()
        known = {item.id: item for item in self._extension.participants}
        members = self._members(known)
        new, marks, new_teams, team_ids = [], [], list[TeamRow](), dict[str, str]()
        for item in self._package.people.teams:
            extension = known.get(item.code, ParticipantExtension(item.code))
            organization_id = None if item.organization is None else organizations[item.organization].id
            self.participants[item.code] = self._new_id()
            team_id = None
            if extension.user is None:
                first = extension.team or item.code
                if first not in team_ids:
                    team_ids[first] = self._new_id()
                    photo = photos.get(item.code)
                    new_teams.append(self._team(team_ids[first], item, organization_id, photo))
                team_id = team_ids[first]
            new.append(
                NewParticipant(
                    id=self.participants[item.code],
                    contest_id=self._contest_id,
                    code=item.code,
                    name=item.name,
                    kind=extension.kind,
                    team_id=team_id,
                    user_id=None if extension.user is None else self.users[extension.user],
                    run_no=extension.run_no,
                    organization_id=organization_id,
                    label=item.label,
                    location=extension.location,
                    hidden=item.hidden,
                    started_at=extension.started_at,
                    delay_us=extension.delay_us,
                    extra_us=extension.extra_us,
                    members=tuple(self.users[name] for name in members.get(item.code, ())),
                )
            )
            if extension.disqualified_at is not None or extension.penalty_adjust_sec:
                marks.append(ParticipantMarks(new[-1].id, extension.disqualified_at, extension.penalty_adjust_sec))
        await teams.upsert_teams(self._tx, new_teams)
        await add_participants(self._tx, self._contest_id, new, actor=self._viewer.id, reason=REASON)
        await package_import.set_participant_marks(self._tx, marks)
        pairs = [
            (self.groups[code], self.participants[item.code])
            for item in self._package.people.teams
            for code in item.groups
        ]
        await participants.set_groups(self._tx, [], pairs)

    def _team(self, team_id: str, item: ImportedTeam, organization_id: str | None, photo: str | None) -> TeamRow:
        return TeamRow(team_id, team_id, item.name, item.icpc_id, organization_id, photo, self._viewer.id)

    def _members(self, known: Mapping[str, ParticipantExtension]) -> dict[str, list[str]]:
        found = {code: list(item.members) for code, item in known.items()}
        for account in self._package.people.accounts:
            if account.team is not None and account.team not in known:
                found.setdefault(account.team, []).append(account.code)
        return found

    async def _write_organizations(self) -> dict[str, OrganizationRow]:
        items = self._package.people.organizations
        used = {item.organization for item in self._package.people.teams if item.organization is not None}
        known = await teams.find_organizations(self._tx, {item.code for item in items} | used)
        created = [
            OrganizationRow(self._new_id(), item.code, item.name, item.formal_name, item.country, item.icpc_id)
            for item in items
            if item.code not in known
        ]
        return known | await teams.upsert_organizations(self._tx, created)
