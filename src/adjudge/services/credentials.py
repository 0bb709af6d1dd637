"""Who holds a credential, remembered for a few seconds.

Finding the holder of a token or a session costs one read; most requests come with a credential that was just looked up.
So a holder is remembered for ``accounts.credential_cache_sec`` (5 s at most). What is revoked, disabled or changed *in
this process* is forgotten at once; another process believes it until its memory has passed, never longer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from cachetools import TLRUCache

from adjudge.domain.errors import AdjudgeError
from adjudge.domain.permissions import Permission, effective_permissions
from adjudge.observe.logs import get_logger
from adjudge.services.viewer import AuthMethod, Viewer
from adjudge.store import Database, Tx
from adjudge.store.accounts import api_tokens, sessions
from adjudge.store.accounts.api_tokens import Principal, digest_secret

_KEPT: Final = 10_000
_BEFORE_A_CHOICE: Final = frozenset({Permission.ACCOUNT_OWN})
"""What somebody may do who logged in with a password that was given by somebody else: choose their own.

Tokens are not held to that. No password leads to one before its owner has chosen it, so a token that exists by then was
made with ``adjudge user token``, by whoever operates the machine.
"""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _CachedViewer:
    viewer: Viewer
    life_sec: float


class CredentialCache:
    """Looks holders up."""

    def __init__(
        self,
        database: Database,
        *,
        remember_sec: float,
        session_idle_us: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._remember_sec = remember_sec
        self._session_idle_us = session_idle_us
        self._known: TLRUCache[str, _CachedViewer] = TLRUCache(_KEPT, lambda _, known, now: now + known.life_sec, clock)
        self._notes: set[asyncio.Task[None]] = set()

    async def viewer_for_token(self, secret: str) -> Viewer | None:
        """Whose API token that is."""
        return await self._viewer(AuthMethod.TOKEN, secret)

    def known_by_token(self, secret: str) -> Viewer | None:
        """Whose API token that is, if it was looked up a moment ago; nobody where it would have to be."""
        return self._remembered(_name_of(AuthMethod.TOKEN, secret))

    async def viewer_for_session(self, secret: str) -> Viewer | None:
        """Whose session that is."""
        return await self._viewer(AuthMethod.SESSION, secret)

    def invalidate_user(self, user_id: str) -> None:
        """Look everything of this user up again; call it once a change has committed."""
        for digest in [*self._known]:  # not items() and del: both fail for an entry that expires meanwhile
            known = self._known.get(digest)
            if known is not None and known.viewer.user_id == user_id:
                self._known.pop(digest, None)

    async def find_revoked(self, viewers: Collection[Viewer]) -> set[Viewer]:
        """Who of them would be somebody else now: the credential has ended, or gives other rights than it did."""
        by_token = {viewer.credential_id or "" for viewer in viewers if viewer.via is AuthMethod.TOKEN}
        by_session = {viewer.credential_id or "" for viewer in viewers if viewer.via is AuthMethod.SESSION}

        async def look(tx: Tx) -> dict[str, frozenset[Permission]]:
            found = [
                (AuthMethod.TOKEN, holder) for holder in (await api_tokens.find_valid(tx, by_token) if by_token else [])
            ]
            found += [
                (AuthMethod.SESSION, holder)
                for holder in (await sessions.find_valid(tx, by_session) if by_session else [])
            ]
            return {holder.credential_id: _permissions_of(holder, via) for via, holder in found}

        held = await self._database.read(look)
        return {viewer for viewer in viewers if held.get(viewer.credential_id or "") != viewer.permissions}

    async def close(self) -> None:
        """Finish the notes of last use."""
        if self._notes:
            await asyncio.wait(self._notes)

    async def _viewer(self, via: AuthMethod, secret: str) -> Viewer | None:
        digest = _name_of(via, secret)
        remembered = self._remembered(digest)
        if remembered is not None:
            return remembered
        holder = await self._holder(via, secret)
        if holder is None:
            self._known.pop(digest, None)
            return None
        viewer = _viewer_of(holder, via, secret)
        self._remember(digest, viewer, holder.expires_in_us)
        return viewer

    def _remembered(self, digest: str) -> Viewer | None:
        known = self._known.get(digest)
        return known.viewer if known is not None else None

    async def _holder(self, via: AuthMethod, secret: str) -> Principal | None:
        find = sessions.find_principal if via is AuthMethod.SESSION else api_tokens.find_principal
        holder = await self._database.read(lambda tx: find(tx, secret))
        if holder is not None and holder.needs_touch:
            note = asyncio.create_task(self._record_use(via, holder.credential_id))
            self._notes.add(note)
            note.add_done_callback(self._notes.discard)
        return holder

    async def _record_use(self, via: AuthMethod, credential_id: str) -> None:
        """Write down that it was used, beside the request and not before its answer."""
        idle_us = self._session_idle_us
        try:
            if via is AuthMethod.SESSION:
                await self._database.transact(lambda tx: sessions.touch(tx, credential_id, idle_us=idle_us))
            else:
                await self._database.transact(lambda tx: api_tokens.touch(tx, credential_id))
        except AdjudgeError as error:
            log.warning("credential_use_unrecorded", error=error.message)

    def _remember(self, digest: str, viewer: Viewer, left_us: int | None) -> None:
        life_sec = self._remember_sec if left_us is None else min(self._remember_sec, left_us / 1e6)
        if life_sec <= 0:
            return
        self._known[digest] = _CachedViewer(viewer, life_sec)


def _name_of(via: AuthMethod, secret: str) -> str:
    """What a credential is remembered by: never itself."""
    return digest_secret(f"{via}:{secret}")


def _must_change_password(holder: Principal, via: AuthMethod) -> bool:
    return holder.must_change_password and via is AuthMethod.SESSION


def _permissions_of(holder: Principal, via: AuthMethod) -> frozenset[Permission]:
    permissions = effective_permissions(holder.role, holder.scopes)
    return permissions & _BEFORE_A_CHOICE if _must_change_password(holder, via) else permissions


def _viewer_of(holder: Principal, via: AuthMethod, secret: str) -> Viewer:
    return Viewer(
        user_id=holder.user_id,
        name=holder.name,
        role=holder.role,
        permissions=_permissions_of(holder, via),
        via=via,
        credential_id=holder.credential_id,
        must_change_password=_must_change_password(holder, via),
        csrf=digest_secret(f"csrf:{secret}") if via is AuthMethod.SESSION else None,
    )
