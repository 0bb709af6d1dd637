"""The acting user of a request, with role and permissions; the caches of viewers and of the contest-only mode."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Collection, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from cachetools import TLRUCache, TTLCache

from adjudge.domain.errors import AdjudgeError, Forbidden, PasswordChangeRequired, Unauthenticated
from adjudge.domain.permissions import (
    ANONYMOUS_PERMISSIONS,
    ROLE_PERMISSIONS,
    Permission,
    Role,
    effective_permissions,
)
from adjudge.observe.logs import get_logger
from adjudge.store import Database, Tx
from adjudge.store.accounts import api_tokens, sessions, users
from adjudge.store.accounts.api_tokens import Principal
from adjudge.store.accounts.users import UserWithPassword
from adjudge.store.contests import contest_only
from adjudge.store.contests.contest_only import ContestOnlyRow

_MAX_ENTRIES: Final = 10_000
_KEY: Final = "mode"
_PASSWORD_CHANGE_ONLY: Final = frozenset({Permission.ACCOUNT_OWN})
"""Permissions of a user who logged in with a password set by someone else: only to choose a new one.

API tokens are not restricted. Such a password cannot create a token, so a token that exists at that time was created by
the operator with ``adjudge user token``.
"""

log = get_logger(__name__)


class AuthMethod(StrEnum):
    """How the viewer was authenticated."""

    NOTHING = "nothing"
    TOKEN = "token"  # noqa: S105  # a name, not a secret
    SESSION = "session"
    BASIC = "basic"
    """Name and password in every request, for the Contest API."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """The user or visitor who makes a request."""

    user_id: str | None
    name: str
    role: Role | None
    permissions: frozenset[Permission]
    via: AuthMethod
    credential_id: str | None = None
    """The id of the token or session, for the audit log and for revoking it; of a password, a digest of its hash."""
    must_change_password: bool = False
    csrf: str | None = None
    """The CSRF token that pages must send with unsafe requests of this session."""
    only_contest_id: str | None = None
    """In contest-only mode: the only contest that exists for this viewer; None for staff, and when the mode is off."""

    def can(self, permission: Permission) -> bool:
        return permission in self.permissions

    def require(self, permission: Permission) -> None:
        """Raise, unless the viewer has the permission."""
        if self.can(permission):
            return
        if self.user_id is None:
            raise Unauthenticated
        if self.must_change_password:
            raise PasswordChangeRequired
        message = f"Permission required: {permission}."
        if self.role is not None and permission in ROLE_PERMISSIONS[self.role]:
            message += f" Your role has it, but this API token does not: use a token with the scope {permission}."
        raise Forbidden(message, permission=str(permission))

    @property
    def id(self) -> str:
        """The user id; raises ``Unauthenticated`` for visitors."""
        if self.user_id is None:
            raise Unauthenticated
        return self.user_id


VISITOR: Final = Viewer(None, "visitor", None, ANONYMOUS_PERMISSIONS, AuthMethod.NOTHING)
OUTSIDER: Final = Viewer(None, "visitor", None, frozenset(), AuthMethod.NOTHING)
"""A visitor without any permission, for installations that require a login."""


@dataclass(frozen=True, slots=True)
class _CachedViewer:
    viewer: Viewer
    life_sec: float


class CredentialCache:
    """Finds the viewer of an API token or a session.

    Looking one up costs a read, and most requests have a credential that was used just before. Therefore the result is
    cached for ``accounts.credential_cache_sec`` (5 s at most). A change or revocation *in this process* invalidates the
    entry at once; other processes use theirs until it expires.
    """

    def __init__(
        self,
        database: Database,
        *,
        cache_sec: float,
        session_idle_us: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._cache_sec = cache_sec
        self._session_idle_us = session_idle_us
        self._entries: TLRUCache[str, _CachedViewer] = TLRUCache(
            _MAX_ENTRIES, lambda _, entry, now: now + entry.life_sec, clock
        )
        self._pending_writes: set[asyncio.Task[None]] = set()

    async def viewer_for_token(self, secret: str) -> Viewer | None:
        """The viewer of an API token; None if it is not valid."""
        return await self._viewer(AuthMethod.TOKEN, secret)

    def cached_viewer_for_token(self, secret: str) -> Viewer | None:
        """The viewer of an API token, if it is in the cache."""
        return self._cached(_cache_key(AuthMethod.TOKEN, secret))

    async def viewer_for_session(self, secret: str) -> Viewer | None:
        """The viewer of a session; None if it is not valid."""
        return await self._viewer(AuthMethod.SESSION, secret)

    def invalidate_user(self, user_id: str) -> None:
        """Drop all cached credentials of a user; call it after the change is committed."""
        self.invalidate_users({user_id})

    def invalidate_users(self, user_ids: Set[str]) -> None:
        """Drop all cached credentials of several users."""
        for digest in [*self._entries]:  # not items() and del: both fail for an entry that expires during the loop
            entry = self._entries.get(digest)
            if entry is not None and entry.viewer.user_id in user_ids:
                self._entries.pop(digest, None)

    async def find_revoked(self, viewers: Collection[Viewer]) -> set[Viewer]:
        """The viewers whose credential is no longer valid or has other permissions now."""
        by_token = {viewer.credential_id or "" for viewer in viewers if viewer.via is AuthMethod.TOKEN}
        by_session = {viewer.credential_id or "" for viewer in viewers if viewer.via is AuthMethod.SESSION}
        by_password = {viewer.id for viewer in viewers if viewer.via is AuthMethod.BASIC}

        async def read(tx: Tx) -> dict[str, frozenset[Permission]]:
            of_tokens = await api_tokens.find_valid(tx, by_token) if by_token else []
            of_sessions = await sessions.find_valid(tx, by_session) if by_session else []
            of_passwords = await users.find_valid_with_password(tx, by_password) if by_password else []
            found = [viewer_of_password(item) for item in of_passwords]
            return {
                **{viewer.credential_id or "": viewer.permissions for viewer in found},
                **{item.credential_id: _permissions_of(item, AuthMethod.TOKEN) for item in of_tokens},
                **{item.credential_id: _permissions_of(item, AuthMethod.SESSION) for item in of_sessions},
            }

        current = await self._database.read(read)
        return {viewer for viewer in viewers if current.get(viewer.credential_id or "") != viewer.permissions}

    def cached_viewer(self, digest: str) -> Viewer | None:
        """The viewer of another kind of credential, by its digest, if it is in the cache."""
        return self._cached(digest)

    def store_viewer(self, digest: str, viewer: Viewer) -> None:
        """Cache the viewer of another kind of credential."""
        self._store(digest, viewer, None)

    async def close(self) -> None:
        """Wait for the pending writes of last-use times."""
        if self._pending_writes:
            await asyncio.wait(self._pending_writes)

    async def _viewer(self, via: AuthMethod, secret: str) -> Viewer | None:
        digest = _cache_key(via, secret)
        cached = self._cached(digest)
        if cached is not None:
            return cached
        principal = await self._find_principal(via, secret)
        if principal is None:
            self._entries.pop(digest, None)
            return None
        viewer = _viewer_of(principal, via, secret)
        self._store(digest, viewer, principal.expires_in_us)
        return viewer

    def _cached(self, digest: str) -> Viewer | None:
        entry = self._entries.get(digest)
        return entry.viewer if entry is not None else None

    async def _find_principal(self, via: AuthMethod, secret: str) -> Principal | None:
        find = sessions.find_principal if via is AuthMethod.SESSION else api_tokens.find_principal
        principal = await self._database.read(lambda tx: find(tx, secret))
        if principal is not None and principal.needs_touch:
            task = asyncio.create_task(self._record_use(via, principal.credential_id))
            self._pending_writes.add(task)
            task.add_done_callback(self._pending_writes.discard)
        return principal

    async def _record_use(self, via: AuthMethod, credential_id: str) -> None:
        """Record the time of use in the background, without delaying the response."""
        idle_us = self._session_idle_us
        try:
            if via is AuthMethod.SESSION:
                await self._database.transact(lambda tx: sessions.touch(tx, credential_id, idle_us=idle_us))
            else:
                await self._database.transact(lambda tx: api_tokens.touch(tx, credential_id))
        except AdjudgeError as error:
            log.warning("credential_use_unrecorded", error=error.message)

    def _store(self, digest: str, viewer: Viewer, expires_in_us: int | None) -> None:
        life_sec = self._cache_sec if expires_in_us is None else min(self._cache_sec, expires_in_us / 1e6)
        if life_sec <= 0:
            return
        self._entries[digest] = _CachedViewer(viewer, life_sec)


@dataclass(frozen=True, slots=True)
class _CachedMode:
    contest: ContestOnlyRow | None


class ContestOnlyMode:
    """Which contest is served alone, and whom that limits; both are cached as long as credentials are."""

    def __init__(self, database: Database, *, cache_sec: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._mode: TTLCache[str, _CachedMode] = TTLCache(1, cache_sec, clock)
        self._staff: TTLCache[tuple[str, str], bool] = TTLCache(_MAX_ENTRIES, cache_sec, clock)

    async def find(self) -> ContestOnlyRow | None:
        """The contest that is served alone now."""
        known = self._mode.get(_KEY)
        if known is None:
            known = _CachedMode(await self._database.read(contest_only.find))
            self._mode[_KEY] = known
        return known.contest

    @property
    def is_known_off(self) -> bool:
        """Whether the mode is off for certain, without asking the database."""
        known = self._mode.get(_KEY)
        return known is not None and known.contest is None

    def forget(self) -> None:
        """Read the mode again with the next request; call it after a contest was changed."""
        self._mode.clear()
        self._staff.clear()

    async def limit(self, viewer: Viewer, contest: ContestOnlyRow) -> Viewer:
        """The viewer with the limit of the mode; staff of the installation or of the contest have none."""
        if is_staff(viewer) or (viewer.user_id is not None and await self._has_role(contest.id, viewer.user_id)):
            return viewer
        return replace(viewer, only_contest_id=contest.id)

    async def _has_role(self, contest_id: str, user_id: str) -> bool:
        key = (contest_id, user_id)
        found = self._staff.get(key)
        if found is None:
            found = await self._database.read(lambda tx: contest_only.has_role(tx, contest_id, user_id))
            self._staff[key] = found
        return found


def is_staff(viewer: Viewer) -> bool:
    """Whether a viewer is more than a contestant, whatever the scopes of the token: setter, judge, admin, service."""
    if viewer.role is None:
        return False
    return viewer.role is Role.SERVICE or Permission.CONTEST_CREATE in ROLE_PERMISSIONS[viewer.role]


def _cache_key(via: AuthMethod, secret: str) -> str:
    """The cache key of a credential: a digest, never the secret itself."""
    return _digest(f"{via}:{secret}")


def _must_change_password(principal: Principal, via: AuthMethod) -> bool:
    return principal.must_change_password and via is AuthMethod.SESSION


def _permissions_of(principal: Principal, via: AuthMethod) -> frozenset[Permission]:
    permissions = effective_permissions(principal.role, principal.scopes)
    return permissions & _PASSWORD_CHANGE_ONLY if _must_change_password(principal, via) else permissions


def _viewer_of(principal: Principal, via: AuthMethod, secret: str) -> Viewer:
    return Viewer(
        user_id=principal.user_id,
        name=principal.name,
        role=principal.role,
        permissions=_permissions_of(principal, via),
        via=via,
        credential_id=principal.credential_id,
        must_change_password=_must_change_password(principal, via),
        csrf=_digest(f"csrf:{secret}") if via is AuthMethod.SESSION else None,
    )


def viewer_of_password(found: UserWithPassword) -> Viewer:
    """The viewer of a user whose password was verified; one that must be changed permits nothing else."""
    user = found.user
    permissions = ROLE_PERMISSIONS[user.role]
    return Viewer(
        user_id=user.id,
        name=user.name,
        role=user.role,
        permissions=permissions & _PASSWORD_CHANGE_ONLY if user.must_change_password else permissions,
        via=AuthMethod.BASIC,
        credential_id=_digest(f"password:{user.id}:{found.password_hash}"),
        must_change_password=user.must_change_password,
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
