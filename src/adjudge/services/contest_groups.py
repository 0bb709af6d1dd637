"""Groups and organisations of the participants of a contest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from adjudge.contests import jury, scoreboard
from adjudge.contests.accounts import follow_timeline
from adjudge.contests.lifecycle import lock_changeable
from adjudge.domain.contest import ContestRole
from adjudge.domain.errors import Conflict, InvalidInput
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.permissions import Permission
from adjudge.services.contest_access import ContestAccess
from adjudge.services.contest_registration import parse_name
from adjudge.services.participants import find_as_organiser, find_groups, parse_code
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import commands, participants, teams
from adjudge.store.contests.models import ContestGroupRow, OrganizationRow
from adjudge.store.ops import audit_log

_COUNTRY: Final = re.compile(r"[A-Z]{3}")
_MAX_LISTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class ContestGroupService:
    """Operations of organisers on groups and organisations, and the public lists."""

    database: Database
    access: ContestAccess
    new_id: IdFactory = new_id

    async def list_groups(self, viewer: Viewer, name: str) -> list[ContestGroupRow]:
        """The groups of a contest; hidden ones only for the jury."""
        view = await self.access.find(viewer, name)
        found = await self.database.read(lambda tx: participants.groups(tx, view.contest.id))
        return [item for item in found if view.sees_all or not item.hidden]

    async def save_groups(self, viewer: Viewer, name: str, groups: Sequence[ContestGroupRow]) -> list[ContestGroupRow]:
        """Replace the groups; those that are not given are deleted, their participants stay."""
        check_codes([item.code for item in groups], "groups")

        async def operation(tx: Tx) -> list[ContestGroupRow]:
            view = await find_as_organiser(tx, viewer, name)
            contest_id = view.contest.id
            await lock_changeable(tx, contest_id)
            known = {item.code: item for item in await participants.groups(tx, contest_id)}
            rows = [
                replace(
                    item, id=self.new_id(), contest_id=contest_id, name=parse_name(item.name, "name"), ordinal=index
                )
                for index, item in enumerate(groups)
            ]
            await participants.upsert_groups(tx, rows)
            for gone in known.keys() - {item.code for item in groups}:
                await participants.delete_group(tx, contest_id, known[gone].id)
            await scoreboard.reset(tx, contest_id)
            details = {contest_id: {"groups": [item.code for item in groups]}}
            await audit_log.record(
                tx, actor=viewer.id, action="contest.set_groups", object_kind="contest", objects=details, reason=""
            )
            return await participants.groups(tx, contest_id)

        return await self.database.transact(operation)

    async def set_group_times(
        self, viewer: Viewer, name: str, group: str, *, delay_us: int | None, extra_us: int | None, reason: str
    ) -> int:
        """Set delay and extra time of all participants of a group; None keeps a value. Return their number."""

        async def operation(tx: Tx) -> int:
            view = await find_as_organiser(tx, viewer, name)
            await commands.lock(tx, view.contest.id)
            await lock_changeable(tx, view.contest.id)
            group_id = (await find_groups(tx, view.contest.id, [group]))[0]
            ids = [
                member for owner, member in await participants.group_members(tx, view.contest.id) if owner == group_id
            ]
            rows = [(item, delay_us, extra_us) for item in sorted(ids)]
            if rows:
                await jury.set_clocks(tx, view.contest.id, rows, actor=viewer.id, reason=reason)
                await follow_timeline(tx, view.contest.id)
            return len(rows)

        return await self.database.transact(operation)

    async def list_organizations(self, viewer: Viewer, name: str) -> list[OrganizationRow]:
        """All organisations, which contests share, by code; for the organisers of a contest."""
        await self.access.find_as(viewer, name, ContestRole.ORGANISER)
        return await self.database.read(lambda tx: teams.organizations(tx, limit=_MAX_LISTED))

    async def save_organization(self, viewer: Viewer, name: str, given: OrganizationRow) -> OrganizationRow:
        """Create an organisation. All contests share them: one that exists is changed only with ``contest:admin``."""
        parse_code(given.code, "code")
        if given.country and not _COUNTRY.fullmatch(given.country):
            raise InvalidInput("country: expected three capital letters, for example CHN.", field="country")
        row = replace(given, id=self.new_id(), name=parse_name(given.name, "name"))

        async def operation(tx: Tx) -> OrganizationRow:
            view = await find_as_organiser(tx, viewer, name)
            known = (await teams.find_organizations(tx, [row.code])).get(row.code)
            if known is not None and not viewer.can(Permission.CONTEST_ADMIN):
                raise Conflict(f"code: the organisation {row.code!r} exists ({known.name}); use it, or ask an admin.")
            saved = (await teams.upsert_organizations(tx, [row]))[row.code]
            await scoreboard.reset(tx, view.contest.id)
            await audit_log.record(
                tx,
                actor=viewer.id,
                action="organization.save",
                object_kind="organization",
                objects={saved.id: {"code": saved.code, "name": saved.name}},
                reason="",
            )
            return saved

        return await self.database.transact(operation)


def check_codes(codes: Sequence[str], field_name: str) -> None:
    """Check codes of a list, which must be different."""
    for index, code in enumerate(codes):
        parse_code(code, f"{field_name}[{index}].code")
        if code in codes[:index]:
            where = f"{field_name}[{index}].code"
            raise InvalidInput(f"{where}: {code!r} is used twice.", field=where)
