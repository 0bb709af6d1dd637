"""The user's own account: profile, password, tokens, sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adjudge.cache.token_buckets import TokenBuckets
from adjudge.domain.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    LoginFailed,
    PasswordChangeRequired,
)
from adjudge.domain.ids import IdFactory, new_id, parse_id_or_not_found
from adjudge.domain.permissions import ALL_SCOPES, ROLE_PERMISSIONS, Permission
from adjudge.services.login import validate_display_name, validate_email
from adjudge.services.passwords import PasswordHashing, validate_new_password
from adjudge.services.reauthentication import limit_password_attempts
from adjudge.services.viewer import AuthMethod, CredentialCache, Viewer
from adjudge.settings.sections import AccountsSettings
from adjudge.store import Database, Tx
from adjudge.store.accounts import api_tokens, sessions, users
from adjudge.store.accounts.api_tokens import ApiTokenRow
from adjudge.store.accounts.sessions import SessionRow
from adjudge.store.accounts.users import UserRow
from adjudge.store.ops import audit_log

_DAY_US: Final = 86_400_000_000
_MAX_TOKENS: Final = 100


@dataclass(frozen=True, slots=True)
class CreatedToken:
    """A new token with its secret, which is shown once."""

    token: ApiTokenRow
    secret: str


def viewer_for_user(user: UserRow) -> Viewer:
    """A viewer for a user who has just been authenticated and has no credential yet."""
    return Viewer(user.id, user.name, user.role, ROLE_PERMISSIONS[user.role], AuthMethod.NOTHING)


@dataclass(frozen=True, slots=True)
class AccountService:
    """Operations on the viewer's own account."""

    database: Database
    settings: AccountsSettings
    buckets: TokenBuckets
    credentials: CredentialCache
    passwords: PasswordHashing
    new_id: IdFactory = new_id

    async def get_account(self, viewer: Viewer) -> UserRow:
        user_id = viewer.id
        return await self.database.read(lambda tx: users.find(tx, user_id))

    async def update_account(self, viewer: Viewer, changes: Mapping[str, str | None]) -> UserRow:
        """Change ``email`` and ``display_name``; omitted values stay."""
        user_id = viewer.id

        async def update(tx: Tx) -> UserRow:
            old = await users.find(tx, user_id)
            email = validate_email(changes["email"]) if "email" in changes else old.email
            shown = validate_display_name(changes["display_name"]) if "display_name" in changes else old.display_name
            await users.update_profile(tx, user_id, email=email, display_name=shown)
            await _audit(tx, viewer, "update", ("user", user_id), {"fields": sorted(changes)})
            return await users.find(tx, user_id)

        return await self.database.transact(update)

    async def change_password(
        self, viewer: Viewer, *, current: str, new: str, revoke_tokens: bool | None = None
    ) -> None:
        """Change the password; revoke all other sessions and, by default, all other tokens.

        A user who changes a password because another person knows it wants to end that person's access, including
        command line clients. The first change of a password set by an admin keeps tokens: that password cannot create
        any, so they were created by the operator.
        """
        user_id = viewer.id
        known = await self.database.read(lambda tx: users.find_with_password(tx, user_id))
        if known.password_hash is None:
            raise Conflict("This account has no password; it uses single sign-on.")
        await limit_password_attempts(self.buckets, self.settings.login_per_min, user_id)
        if not (await self.passwords.check(known.password_hash, current)).right:
            raise LoginFailed("current: wrong password.", field="current")
        validate_new_password(new, name=known.user.name, min_length=self.settings.password_min_length)
        if new == current:
            raise InvalidInput("new: must differ from the current password.", field="new")
        password_hash = await self.passwords.hash(new)
        here = viewer.credential_id or ""

        async def change(tx: Tx) -> None:
            await users.update_password(tx, user_id, password_hash, must_change=False)
            ended = {"sessions_ended": await sessions.revoke_others(tx, user_id, except_id=here)}
            if revoke_tokens is True or (revoke_tokens is None and not known.user.must_change_password):
                ended["tokens_ended"] = await api_tokens.revoke_all(tx, user_id, except_id=here)
            await _audit(tx, viewer, "change_password", ("user", user_id), ended)

        await self.database.transact(change)
        self.credentials.invalidate_user(user_id)

    async def list_tokens(self, viewer: Viewer) -> list[ApiTokenRow]:
        """The viewer's valid tokens."""
        user_id = viewer.id
        return await self.database.read(lambda tx: api_tokens.list_by_user(tx, user_id))

    async def create_token(
        self, viewer: Viewer, *, name: str, scopes: Sequence[str], expires_in_days: float | None
    ) -> CreatedToken:
        """Create a token with all or some of the viewer's permissions; rejected while a password change is required."""
        if viewer.must_change_password:
            raise PasswordChangeRequired
        wanted = _scopes(viewer, scopes)
        secret = api_tokens.new_secret()
        life_us = None if expires_in_days is None else round(expires_in_days * _DAY_US)
        new = api_tokens.NewApiToken(
            self.new_id(), viewer.id, validate_display_name(name) or "token", secret, wanted, life_us
        )

        async def create(tx: Tx) -> ApiTokenRow:
            if len(await api_tokens.list_by_user(tx, new.user_id)) >= _MAX_TOKENS:
                raise Conflict(f"Token limit reached ({_MAX_TOKENS}): revoke some first.")
            await api_tokens.insert(tx, new)
            await _audit(tx, viewer, "create", ("token", new.id), {"name": new.name, "scopes": list(wanted)})
            return next(token for token in await api_tokens.list_by_user(tx, new.user_id) if token.id == new.id)

        return CreatedToken(await self.database.transact(create), secret)

    async def revoke_token(self, viewer: Viewer, token_id: str) -> None:
        user_id, token_id = viewer.id, parse_id_or_not_found(token_id, "token")

        async def revoke(tx: Tx) -> None:
            await api_tokens.revoke(tx, user_id, token_id)
            await _audit(tx, viewer, "revoke", ("token", token_id), {})

        await self.database.transact(revoke)
        self.credentials.invalidate_user(user_id)

    async def list_sessions(self, viewer: Viewer) -> list[SessionRow]:
        """The viewer's active sessions."""
        user_id = viewer.id
        return await self.database.read(lambda tx: sessions.list_by_user(tx, user_id))

    async def revoke_session(self, viewer: Viewer, session_id: str) -> None:
        user_id, session_id = viewer.id, parse_id_or_not_found(session_id, "session")

        async def revoke(tx: Tx) -> None:
            await sessions.revoke(tx, user_id, session_id)
            await _audit(tx, viewer, "revoke", ("session", session_id), {})

        await self.database.transact(revoke)
        self.credentials.invalidate_user(user_id)


def _scopes(viewer: Viewer, wanted: Sequence[str]) -> tuple[str, ...]:
    """Check that a token's scopes do not exceed the permissions of the viewer, who may use a restricted token."""
    if viewer.role is None:
        raise Forbidden
    if ALL_SCOPES in wanted:
        if viewer.permissions != ROLE_PERMISSIONS[viewer.role]:
            raise Forbidden("scopes: '*' is not available to a restricted token; list the scopes.", field="scopes")
        return (ALL_SCOPES,)
    unknown = sorted(set(wanted) - set(Permission))
    if unknown or not wanted:
        known = ", ".join(sorted(viewer.permissions))
        raise InvalidInput(
            f"scopes: unknown or empty ({', '.join(unknown) or 'none'}); expected '*' or some of: {known}.",
            field="scopes",
        )
    missing = sorted(set(wanted) - viewer.permissions)
    if missing:
        raise Forbidden(f"scopes: you do not have {', '.join(missing)}.", field="scopes")
    return tuple(sorted(set(wanted)))


async def _audit(tx: Tx, viewer: Viewer, action: str, of: tuple[str, str], details: Mapping[str, object]) -> None:
    kind, object_id = of
    await audit_log.record(
        tx, actor=viewer.id, action=action, object_kind=kind, objects={object_id: details}, reason="self-service"
    )
