"""Passwords: argon2id, off the event loop, a few at a time.

Hashing takes tens of milliseconds and 64 MiB on purpose; in a thread it stops nobody else, and a queue in front of it
keeps many attempts at once from taking all the memory. A name that nobody has costs as long as one that somebody has.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from adjudge.domain.errors import InvalidInput

LONGEST: Final = 1_024
"""Longer ones would only make us work; nobody types them."""
_AT_ONCE: Final = 2


@dataclass(frozen=True, slots=True)
class PasswordCheck:
    """Whether a password was right, and its hash under the present parameters if the stored one is older."""

    right: bool
    fresh_hash: str | None = None


class PasswordHashing:
    """Hashes and checks."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._decoy: str | None = None

    async def hash(self, password: str) -> str:
        """What is stored of a password."""
        async with self._turn:
            return await asyncio.to_thread(self._hasher.hash, _encode(password))

    async def check(self, stored: str | None, password: str) -> PasswordCheck:
        """Compare; without a stored hash the work is done all the same, and the answer is no."""
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
    """What is hashed; half a character, which JSON can spell, is no reason to fail."""
    return password.encode(errors="surrogatepass")


def validate_new_password(password: str, *, name: str, min_length: int) -> str:
    """Return a password that somebody chose, or say what is wrong with it."""
    if not min_length <= len(password) <= LONGEST:
        raise InvalidInput(f"password: expected {min_length} to {LONGEST} characters.", field="password")
    if "\0" in password or len(set(password)) < 4 or name.lower() in password.lower():
        raise InvalidInput(
            "password: too weak; use at least 4 different characters and do not include your username.",
            field="password",
        )
    return password


def generate_one_time_password() -> str:
    """Make a password to be handed over once and changed at once."""
    return "-".join(secrets.token_hex(2) for _ in range(5))
