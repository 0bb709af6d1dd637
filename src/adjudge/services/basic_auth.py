"""HTTP Basic authentication of the Contest API: the viewer of a user name and a password.

Checking a password is expensive on purpose, and clients send it with every request. A password that was verified is
remembered for ten minutes as a keyed digest together with the stored hash; while the user still has that hash, only the
user and the rules of contest accounts are read again. Failed attempts are limited as logins are.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cachetools import TTLCache

from adjudge.services.login import ClientInfo, LoginService
from adjudge.services.viewer import CredentialCache, Viewer, viewer_of_password
from adjudge.store import Database
from adjudge.store.accounts import users
from adjudge.store.accounts.users import UserWithPassword

_VERIFIED_SEC: Final = 600
_MAX_ENTRIES: Final = 10_000


@dataclass(frozen=True, slots=True)
class _VerifiedPassword:
    user_id: str
    password_hash: str | None


class BasicAuthentication:
    """Finds viewers by name and password."""

    def __init__(
        self,
        database: Database,
        logins: LoginService,
        credentials: CredentialCache,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._logins = logins
        self._credentials = credentials
        self._key = secrets.token_bytes(32)
        """Of this process: a digest is worth nothing to anybody else."""
        self._verified: TTLCache[str, _VerifiedPassword] = TTLCache(_MAX_ENTRIES, _VERIFIED_SEC, clock)

    async def find_viewer(self, name: str, password: str, address: str) -> Viewer:
        """The viewer; raises as a login does, if the password is wrong or the user may not log in from there."""
        digest = self._digest(name, password, address)
        cached = self._credentials.cached_viewer(digest)
        if cached is not None:
            return cached
        found = await self._verified_user(digest, address)
        if found is None:
            user = await self._logins.check_password(name, password, ClientInfo(address))
            found = await self._database.read(lambda tx: users.find_with_password(tx, user.id))
            self._verified[digest] = _VerifiedPassword(user.id, found.password_hash)
        viewer = viewer_of_password(found)
        self._credentials.store_viewer(digest, viewer)
        return viewer

    async def _verified_user(self, digest: str, address: str) -> UserWithPassword | None:
        """The user, if this password was verified and is still that of the user."""
        known = self._verified.get(digest)
        if known is None:
            return None
        found = await self._database.read(lambda tx: users.find_with_password(tx, known.user_id))
        if found.password_hash != known.password_hash or found.user.disabled:
            self._verified.pop(digest, None)
            return None
        await self._logins.check_contests(found.user, address)
        return found

    def _digest(self, name: str, password: str, address: str) -> str:
        parts = (name.strip().lower(), password, address)
        text = "\0".join(parts).encode(errors="surrogatepass")
        return "basic:" + hmac.new(self._key, text, hashlib.sha256).hexdigest()
