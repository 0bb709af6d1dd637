"""Participants of a contest as its organisers manage them: list, add, change, disqualify, remove."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adjudge.contests import jury, scoreboard
from adjudge.contests.accounts import follow_timeline
from adjudge.contests.lifecycle import lock_changeable
from adjudge.contests.registration import add_participants
from adjudge.contests.visibility import Access, RouteClass
from adjudge.domain.contest import OWN_CLOCK, ContestRole, ParticipantKind
from adjudge.domain.errors import Conflict, InvalidInput, NotFound
from adjudge.domain.ids import IdFactory, new_id
from adjudge.services.contest_access import ContestAccess, ContestView, find_view
from adjudge.services.contest_registration import parse_name
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.accounts import users
from adjudge.store.contests import commands, participants, registration, teams
from adjudge.store.contests.models import (
    NewParticipant,
    OrganizationRow,
    ParticipantRow,
    TeamRow,
)
from adjudge.store.contests.registration import ParticipantFilter
from adjudge.store.ops import audit_log
from adjudge.store.ops.audit_log import AuditLogRow

CODE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,34}[A-Za-z0-9_-]|[A-Za-z0-9_]")
"""An id of the Contest API."""
_MAX_SEC: Final = 366 * 86_400
_TIME_FIELDS: Final = frozenset({"kind", "delay_us", "extra_us"})
"""The fields that the end of the contest for all depends on."""
_BOARD_FIELDS: Final = ("kind", "disqualified_at", "hidden", "delay_us", "extra_us", "penalty_adjust_sec")
"""The fields of a participant that the ranking depends on."""


@dataclass(frozen=True, slots=True)
class ParticipantDetail:
    """A participant with its members, groups and organisation."""

    row: ParticipantRow
    organization: OrganizationRow | None
    groups: tuple[str, ...]
    """Codes."""
    members: tuple[str, ...]
    """Names of users; empty for those who may not see them."""


@dataclass(frozen=True, slots=True)
class ParticipantSpec:
    """A participant that an organiser adds: a user, or a team with members."""

    user: str | None = None
    """Name or id; without it, a team is created."""
    name: str = ""
    """By default the display name of the user."""
    code: str = ""
    kind: ParticipantKind = ParticipantKind.OFFICIAL
    organization: str | None = None
    groups: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    label: str | None = None
    location: str | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class ParticipantService:
    """Operations of organisers on participants, and the public list."""

    database: Database
    access: ContestAccess
    new_id: IdFactory = new_id

    async def list_participants(
        self, viewer: Viewer, name: str, wanted: ParticipantFilter, *, group: str = "", after: str, limit: int
    ) -> tuple[ContestView, list[ParticipantDetail]]:
        """Participants by id; hidden ones, testers, virtual runs, practice and members are listed only for the jury."""

        async def look(tx: Tx) -> tuple[ContestView, list[ParticipantDetail]]:
            view = await find_view(tx, viewer, name)
            if view.access(RouteClass.TEAMS) is Access.NONE:
                return view, []
            groups = {item.code: item.id for item in await participants.groups(tx, view.contest.id)}
            if group and group not in groups:
                raise InvalidInput(f"group: there is no group {group[:36]!r} in this contest.", field="group")
            narrowed = replace(wanted, group_id=groups.get(group), with_hidden=wanted.with_hidden and view.sees_all)
            rows = await registration.list_participants(tx, view.contest.id, narrowed, after=after, limit=limit)
            return view, await load_details(tx, view, rows)

        return await self.database.read(look)

    async def get(self, viewer: Viewer, name: str, code: str) -> tuple[ContestView, ParticipantDetail]:
        """A participant by code or id, for the jury."""

        async def look(tx: Tx) -> tuple[ContestView, ParticipantDetail]:
            view = await find_view(tx, viewer, name)
            view.require(ContestRole.ORGANISER, ContestRole.JUDGE)
            row = await find_participant(tx, view.contest.id, code)
            return view, (await load_details(tx, view, [row]))[0]

        return await self.database.read(look)

    async def list_changes(self, viewer: Viewer, name: str, code: str) -> list[AuditLogRow]:
        """What was done to a participant, newest first, for organisers."""

        async def look(tx: Tx) -> list[AuditLogRow]:
            view = await find_view(tx, viewer, name)
            view.require(ContestRole.ORGANISER)
            row = await find_participant(tx, view.contest.id, code)
            return await audit_log.page_by_object(tx, "participant", row.id)

        return await self.database.read(look)

    async def add(self, viewer: Viewer, name: str, spec: ParticipantSpec) -> ParticipantDetail:
        """Add a user, or a team with members."""

        async def operation(tx: Tx) -> ParticipantDetail:
            view = await find_as_organiser(tx, viewer, name)
            await lock_changeable(tx, view.contest.id)
            new = await self._new_participant(tx, view, spec)
            await add_participants(tx, view.contest.id, [new], actor=viewer.id)
            await self._join_groups(tx, view, new.id, spec.groups)
            return (await load_details(tx, view, [await participants.find(tx, new.id)]))[0]

        return await self.database.transact(operation)

    async def update(
        self,
        viewer: Viewer,
        name: str,
        code: str,
        changes: Mapping[str, Any],
        *,
        reason: str = "",
        version: int | None = None,
    ) -> ParticipantDetail:
        """Change the given fields of a participant; its row on the scoreboard is computed again.

        ``groups`` and ``members`` replace the present ones; ``disqualified`` is true or false.
        """

        async def operation(tx: Tx) -> ParticipantDetail:
            view = await find_as_organiser(tx, viewer, name)
            changes_times = bool(_TIME_FIELDS & changes.keys())
            if changes_times:
                await commands.lock(tx, view.contest.id)
            row = await find_participant(tx, view.contest.id, code)
            changed = await _changed_row(tx, view, row, dict(changes))
            if changed.disqualified_at != row.disqualified_at and not reason.strip():
                raise InvalidInput("reason: required to disqualify a participant, or to undo that.", field="reason")
            if version is not None:
                changed = replace(changed, version=version)
            if row.kind not in OWN_CLOCK and ("groups" in changes or _changes_board(row, changed)):
                await lock_changeable(tx, view.contest.id)
            if "members" in changes:
                await _set_members(tx, view, row, changes["members"])
            if "groups" in changes:
                await self._join_groups(tx, view, row.id, changes["groups"], replace_all=True)
            await jury.update_participant(tx, changed, actor=viewer.id, reason=reason)
            if changes_times:
                await follow_timeline(tx, view.contest.id)
            return (await load_details(tx, view, [await participants.find(tx, row.id)]))[0]

        return await self.database.transact(operation)

    async def remove(self, viewer: Viewer, name: str, code: str, *, reason: str = "") -> None:
        """Remove a participant without submissions."""

        async def operation(tx: Tx) -> None:
            view = await find_as_organiser(tx, viewer, name)
            row = await find_participant(tx, view.contest.id, code)
            if row.kind not in OWN_CLOCK:
                await lock_changeable(tx, view.contest.id)
            await audit_log.record(
                tx,
                actor=viewer.id,
                action="participant.remove",
                object_kind="participant",
                objects={row.id: {"code": row.code}},
                reason=reason,
            )
            await participants.delete(tx, view.contest.id, row.id)
            await scoreboard.reset(tx, view.contest.id)

        await self.database.transact(operation)

    async def _new_participant(self, tx: Tx, view: ContestView, spec: ParticipantSpec) -> NewParticipant:
        if spec.kind in OWN_CLOCK:
            raise InvalidInput("kind: expected official, unofficial or test.", field="kind")
        organization_id = await _find_organization(tx, spec.organization)
        new = NewParticipant(
            id=self.new_id(),
            contest_id=view.contest.id,
            code=spec.code,
            name=spec.name,
            kind=spec.kind,
            organization_id=organization_id,
            label=spec.label,
            location=spec.location,
            hidden=spec.hidden,
        )
        if spec.user is not None:
            user = await users.find(tx, await find_member(tx, spec.user, "user"))
            shown = parse_name(spec.name or user.display_name or user.name, "name")
            return replace(new, user_id=user.id, name=shown, code=parse_code(spec.code or user.name[:36], "code"))
        team_id, shown = self.new_id(), parse_name(spec.name, "name")
        members = [await find_member(tx, member, f"members[{index}]") for index, member in enumerate(spec.members)]
        _check_members(view, members)
        await teams.upsert_teams(tx, [TeamRow(team_id, team_id, shown, None, organization_id, None, view.viewer.id)])
        await teams.add_members(tx, [(team_id, member, False) for member in members])
        code = parse_code(spec.code or f"team-{team_id[-12:]}", "code")
        return replace(new, team_id=team_id, name=shown, code=code, members=tuple(members))

    async def _join_groups(
        self, tx: Tx, view: ContestView, participant_id: str, codes: Sequence[str], *, replace_all: bool = False
    ) -> None:
        ids = await find_groups(tx, view.contest.id, codes)
        if ids or replace_all:
            await participants.set_groups(tx, [participant_id], [(item, participant_id) for item in ids])


async def load_details(tx: Tx, view: ContestView, rows: Sequence[ParticipantRow]) -> list[ParticipantDetail]:
    """Participants with groups and organisation; members only for the jury."""
    organizations = await teams.organizations_by_id(tx, [row.organization_id for row in rows if row.organization_id])
    codes = {
        item.id: item.code
        for item in await participants.groups(tx, view.contest.id)
        if view.sees_all or not item.hidden
    }
    groups: dict[str, list[str]] = {}
    for group_id, participant_id in await participants.groups_of(tx, [row.id for row in rows]):
        if group_id in codes:
            groups.setdefault(participant_id, []).append(codes[group_id])
    members: dict[str, list[str]] = {}
    if view.sees_all:
        for member in await participants.members(tx, [row.id for row in rows]):
            members.setdefault(member.participant_id, []).append(member.user_name)
    return [
        ParticipantDetail(
            row,
            organizations.get(row.organization_id or ""),
            tuple(sorted(groups.get(row.id, ()))),
            tuple(members.get(row.id, ())),
        )
        for row in rows
    ]


async def find_participant(tx: Tx, contest_id: str, code: str) -> ParticipantRow:
    """A participant of the contest by code or id."""
    found = (await participants.find_by_codes(tx, contest_id, [code])).get(code)
    if found is not None:
        return found
    row = await participants.find(tx, code)
    if row.contest_id != contest_id:
        raise NotFound("participant", code)
    return row


def parse_code(code: str, field_name: str) -> str:
    """The code of a participant, group or organisation: an id of the Contest API."""
    if not CODE.fullmatch(code):
        raise InvalidInput(
            f"{field_name}: must match [A-Za-z0-9_.-]{{1,36}}, not begin with '-' or '.' and not end with '.'.",
            field=field_name,
        )
    return code


async def _changed_row(tx: Tx, view: ContestView, row: ParticipantRow, changes: dict[str, Any]) -> ParticipantRow:
    changes = {key: value for key, value in changes.items() if key not in ("members", "groups")}
    if "disqualified" in changes:
        is_out = changes.pop("disqualified")
        changes["disqualified_at"] = (row.disqualified_at or view.times.now_us) if is_out else None
    if "organization" in changes:
        changes["organization_id"] = await _find_organization(tx, changes.pop("organization"))
    if "name" in changes:
        changes["name"] = parse_name(changes["name"], "name")
    if "code" in changes:
        parse_code(changes["code"], "code")
    if "kind" in changes and changes["kind"] is not row.kind and OWN_CLOCK & {changes["kind"], row.kind}:
        raise InvalidInput("kind: virtual runs and practice cannot be changed, nor become so.", field="kind")
    for name in ("delay_us", "extra_us"):
        if not 0 <= changes.get(name, 0) <= _MAX_SEC * 1_000_000:
            wire = name.replace("_us", "_sec")
            raise InvalidInput(f"{wire}: expected 0 to {_MAX_SEC} seconds.", field=wire)
    return replace(row, **changes)


def _changes_board(before: ParticipantRow, after: ParticipantRow) -> bool:
    return any(getattr(before, name) != getattr(after, name) for name in _BOARD_FIELDS)


async def _set_members(tx: Tx, view: ContestView, row: ParticipantRow, names: Sequence[str]) -> None:
    if row.team_id is None:
        raise InvalidInput("members: only a team has members.", field="members")
    ids = [await find_member(tx, name, f"members[{index}]") for index, name in enumerate(names)]
    _check_members(view, ids)
    await participants.set_members(tx, row, ids)


def _check_members(view: ContestView, members: Sequence[str]) -> None:
    most = view.contest.settings.max_team_members
    if len(set(members)) > most:
        raise InvalidInput(f"members: {len(members)} given; at most {most}.", field="members")


async def find_as_organiser(tx: Tx, viewer: Viewer, name: str) -> ContestView:
    """The contest, for a change by an organiser."""
    view = await find_view(tx, viewer, name)
    view.require(ContestRole.ORGANISER)
    if view.contest.end_of_updates_at is not None:
        raise Conflict("The results of this contest are final; nothing of it can change any more.")
    return view


async def find_groups(tx: Tx, contest_id: str, codes: Sequence[str]) -> list[str]:
    """The ids of groups by their codes."""
    known = {item.code: item.id for item in await participants.groups(tx, contest_id)} if codes else {}
    for code in codes:
        if code not in known:
            raise InvalidInput(f"groups: there is no group {code[:36]!r} in this contest.", field="groups")
    return [known[code] for code in codes]


async def _find_organization(tx: Tx, code: str | None) -> str | None:
    if not code:
        return None
    found = (await teams.find_organizations(tx, [code])).get(code)
    if found is None:
        raise InvalidInput(
            f"organization: there is no organisation {code[:36]!r}; add or import it first.", field="organization"
        )
    return found.id


async def find_member(tx: Tx, user: str, field_name: str) -> str:
    """The id of the user with this name or id."""
    found = await users.find_id(tx, user.strip().lower())
    if found is None:
        raise InvalidInput(f"{field_name}: there is no user {user[:64]!r}.", field=field_name)
    return found
