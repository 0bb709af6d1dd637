"""What actions on accounts need: less than a server is made of, so that commands have accounts without one."""

from __future__ import annotations

from typing import Protocol

from adjudge.cache.token_buckets import TokenBuckets
from adjudge.domain.ids import IdFactory
from adjudge.services.credentials import CredentialCache
from adjudge.services.passwords import PasswordHashing
from adjudge.settings import Settings
from adjudge.store import Database


class AccountParts(Protocol):
    """``Parts`` are such; so is what ``adjudge user`` opens."""

    @property
    def settings(self) -> Settings:
        """Everything that was configured."""
        ...

    @property
    def database(self) -> Database:
        """Where accounts are kept."""
        ...

    @property
    def passwords(self) -> PasswordHashing:
        """What hashes them, and compares."""
        ...

    @property
    def credentials(self) -> CredentialCache:
        """What is remembered of tokens and sessions, and must be forgotten when they end."""
        ...

    @property
    def buckets(self) -> TokenBuckets:
        """How often something may be tried."""
        ...

    @property
    def new_id(self) -> IdFactory:
        """What makes ids."""
        ...
