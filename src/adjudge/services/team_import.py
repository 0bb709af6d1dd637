"""Imports teams, groups, organisations and accounts into a contest: first a preview, then all or nothing.

An import changes only what belongs to the contest: participants, groups, and accounts that were made for it. It creates
organisations but does not change those that exist, and it never changes the password of another account.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adjudge.contests import scoreboard
from adjudge.contests.accounts import account_expiry
from adjudge.contests.lifecycle import lock_changeable
from adjudge.contests.registration import add_participants
from adjudge.domain.contest import ContestRole, ParticipantKind
from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.permissions import parse_user_name
from adjudge.packages.findings import Finding, Severity
from adjudge.packages.team_files import ImportedAccount, ImportedTeam, TeamFiles, read_team_files
from adjudge.services.contest_access import ContestView
from adjudge.services.contest_accounts import AccountCard
from adjudge.services.participants import find_as_organiser
from adjudge.services.passwords import PasswordHashing, generate_account_password, validate_new_password
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import accounts, commands, participants, team_import, teams
from adjudge.store.contests.models import (
    ContestAccountRow,
    ContestGroupRow,
    NewParticipant,
    OrganizationRow,
    ParticipantRow,
    TeamRow,
)
from adjudge.store.contests.team_import import KnownAccount
from adjudge.store.ops import audit_log

_MAX_GIVEN_PASSWORDS: Final = 200
"""Passwords of a file are hashed with the ordinary parameters: 200 take some 15 seconds of one request."""
ACCOUNT_ROLES: Final = {
    "judge": (ContestRole.JUDGE,),
    "admin": (ContestRole.ORGANISER,),
    "analyst": (ContestRole.API_READER,),
    "staff": (ContestRole.BALLOON, ContestRole.PRINT),
    "balloon": (ContestRole.BALLOON,),
}
"""Roles in the contest by type of account."""


class ImportAction(StrEnum):
    """What an import does with an object."""

    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class ImportItem:
    """What happens with one object."""

    kind: str
    code: str
    name: str
    action: ImportAction


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import does or did, and everything that is wrong."""

    items: list[ImportItem]
    findings: tuple[Finding, ...]
    cards: list[AccountCard]

    @property
    def has_errors(self) -> bool:
        return any(item.severity is Severity.ERROR for item in self.findings)


@dataclass(frozen=True, slots=True)
class _Known:
    """What the database has of the objects."""

    organizations: dict[str, OrganizationRow]
    groups: dict[str, ContestGroupRow]
    group_codes: dict[str, set[str]]
    """Participant → codes of its groups."""
    participants: dict[str, ParticipantRow]
    members: dict[str, list[str]]
    """Participant → names of its users."""
    accounts: dict[str, KnownAccount]


@dataclass(frozen=True, slots=True)
class TeamImportService:
    """Previews and applies imports."""

    database: Database
    passwords: PasswordHashing
    password_min_length: int
    new_id: IdFactory = new_id

    async def preview(self, viewer: Viewer, name: str, files: Sequence[tuple[str, str]]) -> ImportReport:
        """What an import would do; nothing is written."""
        given = read_team_files(files)

        async def look(tx: Tx) -> ImportReport:
            view = await find_as_organiser(tx, viewer, name)
            return self._report(view, given, await _load(tx, view, given), [])

        return await self.database.read(look)

    async def apply(self, viewer: Viewer, name: str, files: Sequence[tuple[str, str]]) -> ImportReport:
        """Import all objects in one transaction; with any error nothing is imported."""
        checked = await self.preview(viewer, name, files)
        if checked.has_errors:
            raise _refused(checked.findings)
        given = read_team_files(files)
        generated = {item.code: generate_account_password() for item in given.accounts if item.password is None}
        hashes = await self.passwords.hash_generated(generated)
        hashes |= await self.passwords.hash_given(
            {item.code: item.password for item in given.accounts if item.password}
        )

        async def operation(tx: Tx) -> ImportReport:
            view = await find_as_organiser(tx, viewer, name)
            await commands.lock(tx, view.contest.id)  # the expiry of accounts depends on the timeline
            await lock_changeable(tx, view.contest.id)
            view = await find_as_organiser(tx, viewer, name)
            known = await _load(tx, view, given)
            cards = [
                AccountCard(item.code, item.name, item.team, generated[item.code])
                for item in given.accounts
                if item.password is None and item.code not in known.accounts
            ]
            report = self._report(view, given, known, cards)
            if report.has_errors:
                raise _refused(report.findings)
            await self._write(tx, view, given, known, hashes)
            details = {"teams": len(given.teams), "groups": len(given.groups), "accounts": len(given.accounts)}
            await audit_log.record(
                tx,
                actor=viewer.id,
                action="contest.import_teams",
                object_kind="contest",
                objects={view.contest.id: details},
                reason="",
            )
            return report

        return await self.database.transact(operation)

    def _report(self, view: ContestView, given: TeamFiles, known: _Known, cards: list[AccountCard]) -> ImportReport:
        self._check(view, given, known)
        items = [
            *(
                ImportItem("organization", item.code, item.name, _action(item.code in known.organizations, same=True))
                for item in given.organizations
            ),
            *(
                ImportItem("group", item.code, item.name, _action(*_compare_group(known, item.code, item.name)))
                for item in given.groups
            ),
            *(ImportItem("team", item.code, item.name, self._team_action(item, known)) for item in given.teams),
            *(ImportItem("account", item.code, item.name, _account_action(item, known)) for item in given.accounts),
        ]
        return ImportReport(items, given.findings.in_order(), cards)

    def _check(self, view: ContestView, given: TeamFiles, known: _Known) -> None:
        findings = given.findings
        organizations = {*known.organizations, *(item.code for item in given.organizations)}
        groups = {*known.groups, *(item.code for item in given.groups)}
        codes = {*known.participants, *(item.code for item in given.teams)}
        for item in given.organizations:
            row = known.organizations.get(item.code)
            if row is not None and row.name != item.name:
                findings.warning(item.path, f"name: {item.code!r} exists as {row.name!r}; it is kept.", line=item.line)
        for team in given.teams:
            if team.organization is not None and team.organization not in organizations:
                message = f"organization_id: there is no organisation {team.organization[:36]!r}."
                findings.error(team.path, message, "Add it to the organizations file.", team.line)
            for group in team.groups:
                if group not in groups:
                    message = f"group_ids: there is no group {group[:36]!r}."
                    findings.error(team.path, message, "Add it to the groups file.", team.line)
            entry = known.participants.get(team.code)
            if entry is not None and entry.team_id is None:
                findings.error(team.path, f"id: {team.code!r} is a participant without a team.", line=team.line)
        for account in given.accounts:
            self._check_account(account, codes, known, given)
        _check_sizes(view, given, known)
        _check_given_passwords(given)

    def _check_account(self, item: ImportedAccount, codes: set[str], known: _Known, given: TeamFiles) -> None:
        def error(field_name: str, message: str) -> None:
            given.findings.error(item.path, f"{field_name}: {message}", line=item.line)

        try:
            parse_user_name(item.code)
            if item.password is not None:
                validate_new_password(item.password, name=item.code, min_length=self.password_min_length)
        except InvalidInput as refused:
            field_name = str(refused.fields.get("field", ""))
            error("username" if field_name == "name" else field_name, refused.message.partition(": ")[2])
        if item.ip is not None and not is_network(item.ip):
            error("ip", f"{item.ip[:64]!r} is not an address or a network.")
        if item.team is not None and item.team not in codes:
            error("team_id", f"there is no team {item.team[:36]!r}.")
        account = known.accounts.get(item.code)
        if account is None:
            return
        team = known.participants.get(item.team or "")
        is_elsewhere = team is None or team.id != account.participant_id
        if account.participant_id is not None and item.team is not None and is_elsewhere:
            error("team_id", f"the user {item.code!r} takes part in this contest for another team.")
        if not account.is_temporary:
            message = f"username: {item.code!r} exists; it is used, and its password stays."
            given.findings.warning(item.path, message, line=item.line)

    def _team_action(self, item: ImportedTeam, known: _Known) -> ImportAction:
        row = known.participants.get(item.code)
        if row is None:
            return ImportAction.CREATE
        organization = known.organizations.get(item.organization or "")
        same = (row.name, row.label, row.hidden) == (item.name, item.label, item.hidden)
        same = same and row.organization_id == (None if organization is None else organization.id)
        same = same and (item.organization is None or organization is not None)
        return _action(True, same=same and known.group_codes.get(row.id, set()) == set(item.groups))

    async def _write(self, tx: Tx, view: ContestView, given: TeamFiles, known: _Known, hashes: dict[str, str]) -> None:
        contest_id = view.contest.id
        created = [
            OrganizationRow(self.new_id(), item.code, item.name, item.formal_name, item.country, item.icpc_id)
            for item in given.organizations
            if item.code not in known.organizations
        ]
        organizations = known.organizations | await teams.upsert_organizations(tx, created)
        await self._write_groups(tx, contest_id, given, known)
        await self._write_teams(tx, view, given, known, organizations)
        await self._write_accounts(tx, view, given, known, hashes)
        await scoreboard.reset(tx, contest_id)

    async def _write_groups(self, tx: Tx, contest_id: str, given: TeamFiles, known: _Known) -> None:
        rows = []
        for index, item in enumerate(given.groups):
            old = known.groups.get(item.code)
            ranked, ordinal = (True, len(known.groups) + index) if old is None else (old.ranked, old.ordinal)
            hidden = item.hidden or (old is not None and old.hidden)
            rows.append(
                ContestGroupRow(self.new_id(), contest_id, item.code, item.name, item.icpc_id, ranked, hidden, ordinal)
            )
        await participants.upsert_groups(tx, rows)

    async def _write_teams(
        self, tx: Tx, view: ContestView, given: TeamFiles, known: _Known, organizations: dict[str, OrganizationRow]
    ) -> None:
        contest_id, new, changed, pairs = view.contest.id, list[NewParticipant](), [], list[tuple[str, str]]()
        groups = {item.code: item.id for item in await participants.groups(tx, contest_id)}
        new_teams = []
        for item in given.teams:
            organization_id = None if item.organization is None else organizations[item.organization].id
            row = known.participants.get(item.code)
            participant_id = self.new_id() if row is None else row.id
            pairs += [(groups[code], participant_id) for code in item.groups]
            if row is not None:
                changed.append((row.id, item.name, item.label, organization_id, item.hidden))
                continue
            team_id = self.new_id()
            team = TeamRow(team_id, team_id, item.name, item.icpc_id, organization_id, None, view.viewer.id)
            new_teams.append(team)
            new.append(
                NewParticipant(
                    id=participant_id,
                    contest_id=contest_id,
                    code=item.code,
                    name=item.name,
                    kind=ParticipantKind.OFFICIAL,
                    team_id=team_id,
                    organization_id=organization_id,
                    label=item.label,
                    hidden=item.hidden,
                )
            )
        await teams.upsert_teams(tx, new_teams)
        await add_participants(tx, contest_id, new, actor=view.viewer.id, reason="import")
        await team_import.update_participants(tx, contest_id, changed)
        await participants.set_groups(tx, [row[0] for row in changed], pairs)

    async def _write_accounts(
        self, tx: Tx, view: ContestView, given: TeamFiles, known: _Known, hashes: dict[str, str]
    ) -> None:
        contest_id, expires_at = view.contest.id, account_expiry(view.times)
        ids = {item.code: self.new_id() for item in given.accounts if item.code not in known.accounts}
        shown = {item.code: item.name[:100] for item in given.accounts}
        await team_import.insert_users(tx, [(ids[code], code, shown[code], hashes[code]) for code in ids])
        own = {code: item.user_id for code, item in known.accounts.items() if item.is_temporary}
        stale = [(own[item.code], hashes[item.code]) for item in given.accounts if item.code in own and item.password]
        await team_import.set_passwords(tx, contest_id, stale)
        bound = [
            ContestAccountRow((ids | own)[item.code], contest_id, (item.ip,) if item.ip else None, True, expires_at)
            for item in given.accounts
            if item.code in ids or item.code in own
        ]
        await accounts.bind_accounts(tx, contest_id, bound)
        everyone = {code: item.user_id for code, item in known.accounts.items()} | ids
        by_code = await participants.find_by_codes(tx, contest_id, [item.team for item in given.accounts if item.team])
        members = [(everyone[item.code], by_code[item.team].id) for item in given.accounts if item.team]
        await team_import.add_members(tx, contest_id, members)
        grants = [(everyone[item.code], role) for item in given.accounts for role in ACCOUNT_ROLES.get(item.type, ())]
        await commands.grant_roles(tx, contest_id, grants, actor=view.viewer.id, granted_by=view.viewer.id)


async def _load(tx: Tx, view: ContestView, given: TeamFiles) -> _Known:
    contest_id = view.contest.id
    wanted = {item.code for item in given.organizations} | {item.organization or "" for item in given.teams}
    groups = await participants.groups(tx, contest_id)
    codes, group_codes = {item.id: item.code for item in groups}, dict[str, set[str]]()
    for group_id, participant_id in await participants.group_members(tx, contest_id):
        group_codes.setdefault(participant_id, set()).add(codes[group_id])
    teams_named = {item.code for item in given.teams} | {item.team or "" for item in given.accounts}
    rows = await participants.find_by_codes(tx, contest_id, teams_named - {""})
    members = dict[str, list[str]]()
    for member in await participants.members(tx, [row.id for row in rows.values()]):
        members.setdefault(member.participant_id, []).append(member.user_name)
    return _Known(
        organizations=await teams.find_organizations(tx, wanted - {""}),
        groups={item.code: item for item in groups},
        group_codes=group_codes,
        participants=rows,
        members=members,
        accounts=await team_import.find_accounts(tx, contest_id, [item.code for item in given.accounts]),
    )


def _compare_group(known: _Known, code: str, name: str) -> tuple[bool, bool]:
    row = known.groups.get(code)
    return row is not None, row is not None and row.name == name


def _action(exists: bool, same: bool) -> ImportAction:
    if not exists:
        return ImportAction.CREATE
    return ImportAction.UNCHANGED if same else ImportAction.UPDATE


def _account_action(item: ImportedAccount, known: _Known) -> ImportAction:
    account = known.accounts.get(item.code)
    if account is None:
        return ImportAction.CREATE
    team = known.participants.get(item.team or "")
    is_member = item.team is None or (team is not None and team.id == account.participant_id)
    return _action(True, same=is_member and not (account.is_temporary and item.password))


def is_network(text: str) -> bool:
    """Whether a text is an address or a network."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _check_sizes(view: ContestView, given: TeamFiles, known: _Known) -> None:
    """Teams must not get more members than the contest allows, those of before the import included."""
    most = view.contest.settings.max_team_members
    members = {code: set(known.members.get(row.id, ())) for code, row in known.participants.items()}
    for item in given.accounts:
        if item.team is None:
            continue
        team = members.setdefault(item.team, set())
        team.add(item.code)
        if len(team) == most + 1:
            message = f"team_id: the team {item.team!r} has more than {most} members."
            given.findings.error(item.path, message, "Change max_team_members of the contest.", item.line)


def _check_given_passwords(given: TeamFiles) -> None:
    chosen = [item for item in given.accounts if item.password is not None]
    if len(chosen) > _MAX_GIVEN_PASSWORDS:
        item = chosen[_MAX_GIVEN_PASSWORDS]
        message = f"password: more than {_MAX_GIVEN_PASSWORDS} accounts of one import have one."
        fix = "Leave passwords out, so that they are generated, or import the accounts in parts."
        given.findings.error(item.path, message, fix, item.line)


def _refused(findings: Sequence[Finding]) -> InvalidInput:
    problems = [str(item) for item in findings if item.severity is Severity.ERROR]
    return InvalidInput("\n  ".join(["Nothing was imported:", *problems[:20]]), field="files", problems=problems)
