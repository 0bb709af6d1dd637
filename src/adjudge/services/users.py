"""Administration of users, for viewers with ``user:read`` and ``user:write``; and invitations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from adjudge.domain.errors import Conflict, InvalidInput
from adjudge.domain.ids import IdFactory, new_id, parse_id_or_not_found
from adjudge.domain.permissions import Role, parse_user_name
from adjudge.services.login import insert_user, validate_display_name, validate_email
from adjudge.services.mail_texts import invitation_text
from adjudge.services.passwords import PasswordHashing, generate_one_time_password, validate_new_password
from adjudge.services.viewer import CredentialCache, Viewer
from adjudge.settings.sections import AccountsSettings
from adjudge.store import Database, Tx
from adjudge.store.accounts import api_tokens, invitations, sessions, users
from adjudge.store.accounts.invitations import InvitationRow
from adjudge.store.accounts.users import NewUser, UserRow
from adjudge.store.ops import audit_log, mails
from adjudge.store.ops.mails import NewMail

_DAY_US: Final = 86_400_000_000


@dataclass(frozen=True, slots=True)
class UserSpec:
    """A user to be created by an admin."""

    name: str
    role: Role = Role.CONTESTANT
    email: str | None = None
    display_name: str | None = None
    password: str | None = field(default=None, repr=False)
    """None: generate a one-time password, except for service users, which use only tokens."""
    must_change_password: bool = True


@dataclass(frozen=True, slots=True)
class CreatedUser:
    """A new user, or one with a new password, which is shown once."""

    user: UserRow
    one_time_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class CreatedInvitation:
    """A new invitation with its code, which is shown once."""

    id: str
    code: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class UserService:
    """Administration of users and invitations."""

    database: Database
    settings: AccountsSettings
    credentials: CredentialCache
    passwords: PasswordHashing
    new_id: IdFactory = new_id
    public_url: str = ""
    """The base of links in mails; empty if no mail can be sent."""

    async def list_users(self, *, search: str, role: str, after: str, limit: int) -> list[UserRow]:
        return await self.database.read(lambda tx: users.page(tx, search=search, role=role, after=after, limit=limit))

    async def get_user(self, user_id: str) -> UserRow:
        known = parse_id_or_not_found(user_id, "user")
        return await self.database.read(lambda tx: users.find(tx, known))

    async def find_by_name(self, name: str) -> UserRow | None:
        known = await self.database.read(lambda tx: users.find_with_password_by_name(tx, name))
        return known.user if known else None

    async def create_user(self, order: UserSpec, *, actor: str, reason: str = "manual") -> CreatedUser:
        """Create a user; a password set by an admin must be changed at the first login."""
        name, min_length = parse_user_name(order.name), self.settings.password_min_length
        once = None
        if order.password is not None:
            validate_new_password(order.password, name=name, min_length=min_length)
        elif order.role is not Role.SERVICE:
            once = generate_one_time_password()
        password = order.password or once
        password_hash = await self.passwords.hash(password) if password else None
        new = NewUser(
            self.new_id(),
            name,
            validate_email(order.email),
            password_hash,
            order.role,
            validate_display_name(order.display_name),
            must_change_password=order.must_change_password and password_hash is not None,
        )
        user = await self.database.transact(lambda tx: insert_user(tx, new, actor=actor, reason=reason))
        return CreatedUser(user, once)

    async def create_first_admin(self) -> CreatedUser | None:
        """Create an admin if there are no users; return None if there are, or if another process was first."""
        if await self.database.read(users.any_exist):
            return None
        try:
            return await self.create_user(UserSpec("admin", Role.ADMIN), actor="cli:setup", reason="first start")
        except Conflict:
            return None

    async def change_role(self, viewer: Viewer, user_id: str, role: Role, *, reason: str) -> UserRow:
        """Change the role of a user; at least one admin must remain."""
        known = parse_id_or_not_found(user_id, "user")

        async def change(tx: Tx) -> UserRow:
            old = await users.find(tx, known)
            if old.role is Role.ADMIN and role is not Role.ADMIN:
                await _require_another_admin(tx, known)
            await users.update_role(tx, known, role)
            await _record(
                tx, known, viewer.id, "change_role", reason=reason, details={"from": str(old.role), "to": str(role)}
            )
            return await users.find(tx, known)

        user = await self.database.transact(change)
        self.credentials.invalidate_user(known)
        return user

    async def set_user_disabled(self, actor: str, user_id: str, *, disabled: bool, reason: str) -> UserRow:
        """Disable or enable a user; at least one admin must remain."""
        known = parse_id_or_not_found(user_id, "user")

        async def change(tx: Tx) -> UserRow:
            old = await users.find(tx, known)
            if disabled and old.role is Role.ADMIN:
                await _require_another_admin(tx, known)
            await users.set_disabled(tx, known, disabled=disabled)
            if disabled:
                await sessions.revoke_others(tx, known)
            await _record(tx, known, actor, "disable" if disabled else "enable", reason=reason, details={})
            return await users.find(tx, known)

        user = await self.database.transact(change)
        self.credentials.invalidate_user(known)
        return user

    async def reset_password(
        self, actor: str, user_id: str, *, reason: str, password: str | None = None
    ) -> CreatedUser:
        """Set a one-time password and revoke all sessions and tokens of the user."""
        known = parse_id_or_not_found(user_id, "user")
        once = password or generate_one_time_password()
        password_hash = await self.passwords.hash(once)

        async def reset(tx: Tx) -> UserRow:
            await users.update_password(tx, known, password_hash, must_change=True)
            ended = {
                "sessions": await sessions.revoke_others(tx, known),
                "tokens": await api_tokens.revoke_all(tx, known),
            }
            await _record(tx, known, actor, "reset_password", reason=reason, details={"ended": ended})
            return await users.find(tx, known)

        user = await self.database.transact(reset)
        self.credentials.invalidate_user(known)
        return CreatedUser(user, None if password else once)

    async def create_invitation(
        self,
        viewer: Viewer,
        *,
        role: Role,
        uses: int,
        expires_in_days: float | None,
        note: str | None,
        email: str | None = None,
    ) -> CreatedInvitation:
        """Create an invitation, and send its link to ``email`` if that is given."""
        recipient = validate_email(email)
        if recipient is not None and not self.public_url:
            raise InvalidInput(
                "email: no mail can be sent; set mail.smtp_url, mail.sender and server.public_url, or pass the code on "
                "yourself.",
                field="email",
            )
        code, user_id = invitations.new_code(), viewer.id
        life_us = None if expires_in_days is None else round(expires_in_days * _DAY_US)
        new = invitations.NewInvitation(self.new_id(), code, user_id, role, validate_display_name(note), uses, life_us)

        async def add(tx: Tx) -> None:
            await invitations.insert(tx, new)
            if recipient is not None:
                subject, body = invitation_text(f"{self.public_url}/register?invitation={code}", new.note)
                await mails.enqueue(tx, [NewMail(recipient, subject, body)], new_id=self.new_id)
            details = {new.id: {"role": str(role), "uses": uses}}
            await audit_log.record(
                tx,
                actor=viewer.id,
                action="create",
                object_kind="invitation",
                objects=details,
                reason=note or ("manual"),
            )

        await self.database.transact(add)
        return CreatedInvitation(new.id, code)

    async def list_invitations(self, *, before: str, limit: int) -> list[InvitationRow]:
        """List invitations, newest first."""
        return await self.database.read(lambda tx: invitations.page(tx, before=before, limit=limit))

    async def revoke_invitation(self, viewer: Viewer, invitation_id: str) -> None:
        known = parse_id_or_not_found(invitation_id, "invitation")

        async def revoke(tx: Tx) -> None:
            await invitations.revoke(tx, known)
            await audit_log.record(
                tx, actor=viewer.id, action="revoke", object_kind="invitation", objects=[known], reason="manual"
            )

        await self.database.transact(revoke)


async def _require_another_admin(tx: Tx, user_id: str) -> None:
    if not await users.count_other_admins(tx, user_id):
        raise Conflict("Cannot remove the last admin: create another one first.")


async def _record(tx: Tx, user_id: str, actor: str, action: str, *, reason: str, details: dict[str, object]) -> None:
    await audit_log.record(
        tx, actor=actor, action=action, object_kind="user", objects={user_id: details}, reason=reason
    )
