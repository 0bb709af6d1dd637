"""Accounts, put together from settings: for a server, and for commands that do without one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from adjudge.api.account_parts import AccountParts
from adjudge.cache.token_buckets import TokenBuckets
from adjudge.cli.wiring.drivers import open_buckets, open_existing_database
from adjudge.domain.ids import IdFactory, new_id
from adjudge.services.credentials import CredentialCache
from adjudge.services.passwords import PasswordHashing
from adjudge.settings import Settings
from adjudge.store import Database, open_database


@dataclass(frozen=True, slots=True)
class _Registry:
    settings: Settings
    database: Database
    passwords: PasswordHashing
    credentials: CredentialCache
    buckets: TokenBuckets
    new_id: IdFactory = new_id


@asynccontextmanager
async def open_account_services(settings: Settings, *, may_be_new: bool) -> AsyncIterator[AccountParts]:
    """Accounts on the database of the settings, and nothing else of a server; whoever adds the first may make it."""
    async with (
        open_database(settings.database.url.reveal()) if may_be_new else open_existing_database(settings) as database,
        open_buckets(settings) as buckets,
    ):
        credentials = make_credentials(settings, database)
        try:
            yield _Registry(settings, database, PasswordHashing(), credentials, buckets)
        finally:
            await credentials.close()


def make_credentials(settings: Settings, database: Database) -> CredentialCache:
    """Who holds a token or a session, remembered for as long as the settings allow."""
    return CredentialCache(
        database,
        remember_sec=settings.accounts.credential_cache_sec,
        session_idle_us=round(settings.accounts.session_idle_hours * 3_600_000_000),
    )
