"""Accounts that were made for a contest: create them for teams, new passwords, disable and enable all of them.

Only hashes of passwords are stored: a printed card can be replaced by one with a new password, not printed again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge.contests.accounts import account_expiry
from adjudge.domain.contest import OWN_CLOCK, ContestRole
from adjudge.domain.errors import Forbidden, InvalidInput
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.permissions import parse_user_name
from adjudge.services.contest_access import ContestAccess, ContestView
from adjudge.services.participants import find_as_organiser
from adjudge.services.passwords import PasswordHashing, generate_account_password
from adjudge.services.viewer import CredentialCache, Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import accounts, commands, participants, team_import
from adjudge.store.contests.accounts import ContestAccountDetail
from adjudge.store.contests.models import ContestAccountRow, ParticipantRow
from adjudge.store.ops import audit_log

_ALL: Final = 1_000_000
_MAX_NAME: Final = 39
_UNUSABLE: Final = re.compile(r"[^a-z0-9._-]+")
_PREFIX: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,19}")


@dataclass(frozen=True, slots=True)
class AccountCard:
    """Name and generated password of an account, for the printed sheet; shown once."""

    username: str
    name: str
    team: str | None
    password: str = field(repr=False)
    location: str | None = None


@dataclass(frozen=True, slots=True)
class ContestAccountService:
    """Operations of organisers on the accounts of their contest."""

    database: Database
    access: ContestAccess
    passwords: PasswordHashing
    credentials: CredentialCache
    new_id: IdFactory = new_id

    async def list_accounts(
        self, viewer: Viewer, name: str, *, after: str, limit: int
    ) -> tuple[ContestView, list[ContestAccountDetail]]:
        """Accounts that were made for the contest, by user name."""
        view = await self.access.find_as(viewer, name, ContestRole.ORGANISER)
        return view, await self.database.read(lambda tx: accounts.page(tx, view.contest.id, after=after, limit=limit))

    async def create(
        self, viewer: Viewer, name: str, *, prefix: str = "", participants_given: Sequence[str] = ()
    ) -> list[AccountCard]:
        """Make one account for each given team, or for each team without members."""
        if prefix and not _PREFIX.fullmatch(prefix):
            raise InvalidInput(
                "prefix: up to 20 lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit.",
                field="prefix",
            )
        found = await self.database.read(lambda tx: _teams(tx, viewer, name, participants_given))
        secrets = {row.id: generate_account_password() for row in found}
        hashes = await self.passwords.hash_generated(secrets)

        async def operation(tx: Tx) -> list[AccountCard]:
            view = await find_as_organiser(tx, viewer, name)
            await commands.lock(tx, view.contest.id)  # the expiry is that of a timeline which does not change meanwhile
            view = await find_as_organiser(tx, viewer, name)
            teams = [row for row in await _teams(tx, viewer, name, participants_given) if row.id in secrets]
            names = await _unused_names(tx, view.contest.id, prefix, teams)
            ids = {row.id: self.new_id() for row in teams}
            await team_import.insert_users(
                tx, [(ids[row.id], names[row.id], row.name[:100], hashes[row.id]) for row in teams]
            )
            expires_at = account_expiry(view.times)
            bound = [ContestAccountRow(ids[row.id], view.contest.id, None, True, expires_at) for row in teams]
            await accounts.bind_accounts(tx, view.contest.id, bound)
            await team_import.add_members(tx, view.contest.id, [(ids[row.id], row.id) for row in teams])
            await _audit(tx, view, "create_accounts", {"names": sorted(names.values())})
            return [
                AccountCard(names[row.id], row.name, row.code, secrets[row.id], row.location)
                for row in sorted(teams, key=lambda item: names[item.id])
            ]

        return await self.database.transact(operation)

    async def renew_passwords(self, viewer: Viewer, name: str, names: Sequence[str] = ()) -> list[AccountCard]:
        """Give the named accounts, or all without a role, new passwords; their sessions and tokens are revoked."""
        chosen = await self.database.read(lambda tx: _chosen(tx, viewer, name, names))
        secrets = {item.user_id: generate_account_password() for item in chosen}
        hashes = await self.passwords.hash_generated(secrets)

        async def operation(tx: Tx) -> list[ContestAccountDetail]:
            view = await find_as_organiser(tx, viewer, name)
            changed = [item for item in await _chosen(tx, viewer, name, names) if item.user_id in hashes]
            ids = [item.user_id for item in changed]
            await team_import.set_passwords(tx, view.contest.id, [(user_id, hashes[user_id]) for user_id in ids])
            await accounts.revoke_credentials(tx, ids)
            details = {"names": [item.user_name for item in changed]}
            await _audit(tx, view, "renew_passwords", details)
            return changed

        changed = await self.database.transact(operation)
        self.credentials.invalidate_users({item.user_id for item in changed})
        return [
            AccountCard(
                item.user_name,
                item.participant_name or item.display_name or item.user_name,
                item.participant_code,
                secrets[item.user_id],
                item.location,
            )
            for item in changed
        ]

    async def set_disabled(
        self, viewer: Viewer, name: str, *, disabled: bool, names: Sequence[str] = (), reason: str = ""
    ) -> int:
        """Disable or enable the named accounts, or all without a role in the contest; return how many changed."""

        async def operation(tx: Tx) -> tuple[int, set[str]]:
            view = await find_as_organiser(tx, viewer, name)
            chosen = await _chosen(tx, viewer, name, names)
            ids = {item.user_id for item in chosen}
            count = await accounts.set_disabled(tx, view.contest.id, sorted(ids), disabled=disabled)
            details = {"names": [item.user_name for item in chosen], "changed": count}
            action = "disable_accounts" if disabled else "enable_accounts"
            await _audit(tx, view, action, details, reason)
            return count, ids

        count, ids = await self.database.transact(operation)
        self.credentials.invalidate_users(ids)
        return count


async def _teams(tx: Tx, viewer: Viewer, name: str, codes: Sequence[str]) -> list[ParticipantRow]:
    """The given teams, or the teams without members; raises if one has as many members as the contest allows."""
    view = await find_as_organiser(tx, viewer, name)
    if codes:
        known = await participants.find_by_codes(tx, view.contest.id, codes)
        for index, code in enumerate(codes):
            if code not in known or known[code].team_id is None:
                where = f"participants[{index}]"
                raise InvalidInput(f"{where}: there is no team {code[:36]!r} in this contest.", field=where)
        rows = list(known.values())
    else:
        rows = await participants.page(tx, view.contest.id, limit=_ALL)
    rows = [row for row in rows if row.team_id is not None and row.kind not in OWN_CLOCK]
    counts: dict[str, int] = {}
    for member in await participants.members(tx, [row.id for row in rows]):
        counts[member.participant_id] = counts.get(member.participant_id, 0) + 1
    if not codes:
        return [row for row in rows if row.id not in counts]
    most = view.contest.settings.max_team_members
    full = next((row for row in rows if counts.get(row.id, 0) >= most), None)
    if full is not None:
        raise InvalidInput(
            f"participants: the team {full.code!r} has {counts[full.id]} members; at most {most}.", field="participants"
        )
    return rows


async def _chosen(tx: Tx, viewer: Viewer, name: str, names: Sequence[str]) -> list[ContestAccountDetail]:
    """The named accounts, or all of the contest that have no role in it: organisers must not lock themselves out.

    Accounts with a role in the installation are left out, and refused if they are named: who sets their passwords would
    get rights outside the contest.
    """
    view = await find_as_organiser(tx, viewer, name)
    if not names:
        every = await accounts.page(tx, view.contest.id, limit=_ALL)
        return [item for item in every if not (item.has_role or item.has_site_role)]
    wanted = [item.strip().lower() for item in names]
    found = await accounts.find_by_names(tx, view.contest.id, wanted)
    known = {item.user_name for item in found}
    for index, item in enumerate(wanted):
        if item not in known:
            where = f"names[{index}]"
            raise InvalidInput(f"{where}: no account of this contest is named {item[:64]!r}.", field=where)
    staff = {item.user_name for item in found if item.has_site_role}
    for index, item in enumerate(wanted):
        if item in staff:
            raise Forbidden(f"names[{index}]: {item!r} has a role in the installation; ask an administrator.")
    return found


async def _unused_names(tx: Tx, contest_id: str, prefix: str, teams: Sequence[ParticipantRow]) -> dict[str, str]:
    """A user name for each team: the prefix and its code, with the end of its id if the name is taken."""
    wanted = {row.id: _user_name(prefix, row.code, "") for row in teams}
    taken = {*await team_import.find_accounts(tx, contest_id, list(wanted.values()))}
    used, names = set[str](), dict[str, str]()
    for row in teams:
        name = wanted[row.id]
        if name in taken or name in used:
            name = _user_name(prefix, row.code, f"-{row.id[-8:]}")
        used.add(name)
        names[row.id] = parse_user_name(name)
    return names


def _user_name(prefix: str, code: str, suffix: str) -> str:
    letters = _UNUSABLE.sub("-", f"{prefix}{code}".lower()).lstrip("._-")
    shown = letters if len(letters) > 1 else f"team{letters}"
    return shown[: _MAX_NAME - len(suffix)] + suffix


async def _audit(tx: Tx, view: ContestView, action: str, details: Mapping[str, Any], reason: str = "") -> None:
    await audit_log.record(
        tx,
        actor=view.viewer.id,
        action=f"contest.{action}",
        object_kind="contest",
        objects={view.contest.id: dict(details)},
        reason=reason,
    )
