"""Asks users to confirm who they are before an action that changes results.

A session confirms by the password, or by a login of the last minutes. A program with an API token has nobody to ask: it
states that the action is intended, and its token needs the permission of the action.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

from adjudge.cache.token_buckets import TokenBuckets
from adjudge.domain.errors import LoginFailed, RateLimited, ReauthenticationRequired
from adjudge.domain.permissions import Permission
from adjudge.services.passwords import PasswordHashing
from adjudge.services.viewer import AuthMethod, Viewer
from adjudge.settings.sections import AccountsSettings
from adjudge.store import Database
from adjudge.store.accounts import sessions, users

_MINUTE_US: Final = 60_000_000


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a request contains to confirm an action."""

    password: str = ""
    is_confirmed: bool = False
    """The statement of a program that the action is intended; a session needs more."""


@dataclass(frozen=True, slots=True)
class ReauthenticationService:
    """Checks confirmations."""

    database: Database
    settings: AccountsSettings
    buckets: TokenBuckets
    passwords: PasswordHashing

    async def require(self, viewer: Viewer, permission: Permission, given: Confirmation) -> None:
        """Raise, unless the viewer has the permission and has confirmed the action."""
        viewer.require(permission)
        if given.password:
            await self._check_password(viewer, given.password)
        elif viewer.via is AuthMethod.TOKEN:
            if not given.is_confirmed:
                raise ReauthenticationRequired("confirmed: must be true in a request with an API token.")
        elif not await self.is_recent(viewer):
            raise ReauthenticationRequired

    async def is_recent(self, viewer: Viewer) -> bool:
        """Whether the session was opened by a login of the last minutes."""
        session_id = viewer.credential_id
        if viewer.via is not AuthMethod.SESSION or session_id is None:
            return False
        age_us = await self.database.read(lambda tx: sessions.find_age_us(tx, session_id))
        return age_us is not None and age_us < self.settings.reauthentication_minutes * _MINUTE_US

    async def _check_password(self, viewer: Viewer, password: str) -> None:
        user_id = viewer.id
        await limit_password_attempts(self.buckets, self.settings.login_per_min, user_id)
        known = await self.database.read(lambda tx: users.find_with_password(tx, user_id))
        if not (await self.passwords.check(known.password_hash, password)).right:
            raise LoginFailed("password: wrong password.", field="password")


async def limit_password_attempts(buckets: TokenBuckets, per_min: float, user_id: str) -> None:
    """Limit password attempts, so that an open session cannot be used to guess the password."""
    wait_sec = await buckets.take(f"password:{user_id}", rate_per_sec=per_min / 60, burst=max(1.0, per_min))
    if wait_sec > 0:
        raise RateLimited("Too many attempts: retry later.", retry_after_sec=ceil(wait_sec))
