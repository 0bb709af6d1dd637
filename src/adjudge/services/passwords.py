"""Password hashing: argon2id, in threads, with limited concurrency.

A hash takes tens of milliseconds and 64 MiB on purpose. It runs in a thread to keep the event loop free, and a
semaphore limits the memory used by concurrent attempts. Unknown user names take as long as existing ones.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from adjudge.domain.errors import InvalidInput

LONGEST: Final = 1_024
"""Longer passwords would only cost CPU time."""
_MAX_CONCURRENT: Final = 2
_QUICK: Final = PasswordHasher(time_cost=1, memory_cost=1_024, parallelism=1)
_LETTERS: Final = "abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""Without letters and digits that look alike in print."""
_ACCOUNT_LENGTH: Final = 12


@dataclass(frozen=True, slots=True)
class PasswordCheck:
    """Whether a password is correct, and a new hash if the stored one has outdated parameters."""

    right: bool
    fresh_hash: str | None = None


class PasswordHashing:
    """Hashes and checks passwords."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._turn = asyncio.Semaphore(_MAX_CONCURRENT)
        self._decoy: str | None = None

    async def hash(self, password: str) -> str:
        async with self._turn:
            return await asyncio.to_thread(self._hasher.hash, _encode(password))

    async def hash_given(self, passwords: Mapping[str, str]) -> dict[str, str]:
        """Hash passwords that people chose, by name, as ``hash`` does; logins take turns with them."""
        return {name: await self.hash(password) for name, password in passwords.items()}

    async def hash_generated(self, passwords: Mapping[str, str]) -> dict[str, str]:
        """Hash passwords of ``generate_account_password`` by name, thousands in seconds.

        One pass over 1 MiB: 68 random bits cannot be guessed whatever the parameters are, so only passwords that
        nobody chose may be hashed so. The first login replaces the hash by one with the ordinary parameters.
        """
        async with self._turn:
            return await asyncio.to_thread(
                lambda: {name: _QUICK.hash(_encode(password)) for name, password in passwords.items()}
            )

    async def check(self, stored: str | None, password: str) -> PasswordCheck:
        """Compare with the stored hash; without one, do the same work and return a failure."""
        if self._decoy is None:
            self._decoy = await self.hash(secrets.token_hex(16))
        async with self._turn:
            return await asyncio.to_thread(self._check, stored, self._decoy, _encode(password[:LONGEST]))

    def _check(self, stored: str | None, decoy: str, password: bytes) -> PasswordCheck:
        try:
            self._hasher.verify(stored or decoy, password)
        except (VerificationError, InvalidHashError):
            return PasswordCheck(False)
        if stored is None:
            return PasswordCheck(False)
        return PasswordCheck(True, self._hasher.hash(password) if self._hasher.check_needs_rehash(stored) else None)


def _encode(password: str) -> bytes:
    """The bytes to hash; lone surrogates, which JSON can express, are encoded too."""
    return password.encode(errors="surrogatepass")


def validate_new_password(password: str, *, name: str, min_length: int) -> str:
    """Return a valid new password, or raise with the reason."""
    if not min_length <= len(password) <= LONGEST:
        raise InvalidInput(f"password: expected {min_length} to {LONGEST} characters.", field="password")
    if "\0" in password or len(set(password)) < 4 or name.lower() in password.lower():
        raise InvalidInput(
            "password: too weak; use at least 4 different characters and do not include your username.",
            field="password",
        )
    return password


def generate_one_time_password() -> str:
    """Generate a password that must be changed at the first login."""
    return "-".join(secrets.token_hex(2) for _ in range(5))


def generate_account_password() -> str:
    """Generate a password for a printed card: 68 bits."""
    return "".join(secrets.choice(_LETTERS) for _ in range(_ACCOUNT_LENGTH))
