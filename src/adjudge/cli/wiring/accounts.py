"""Composes the account services: for a server, and for commands that run without one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from adjudge.cache.token_buckets import TokenBuckets
from adjudge.cli.wiring.drivers import open_buckets, open_existing_database
from adjudge.cli.wiring.mail import mail_base_url
from adjudge.services.account import AccountService
from adjudge.services.password_reset import PasswordResetService
from adjudge.services.passwords import PasswordHashing
from adjudge.services.users import UserService
from adjudge.services.viewer import CredentialCache
from adjudge.settings import Settings
from adjudge.store import Database, open_database


@dataclass(frozen=True, slots=True)
class AccountServices:
    """The services of the account commands."""

    users: UserService
    accounts: AccountService
    password_resets: PasswordResetService


@asynccontextmanager
async def open_account_services(settings: Settings, *, may_be_new: bool) -> AsyncIterator[AccountServices]:
    """The account services on the configured database; ``may_be_new`` creates it if it does not exist."""
    async with (
        open_database(settings.database.url.reveal()) if may_be_new else open_existing_database(settings) as database,
        open_buckets(settings) as buckets,
    ):
        credentials, passwords = make_credentials(settings, database), PasswordHashing()
        try:
            yield AccountServices(
                UserService(database, settings.accounts, credentials, passwords),
                AccountService(database, settings.accounts, buckets, credentials, passwords),
                make_password_resets(settings, database, buckets, credentials, passwords),
            )
        finally:
            await credentials.close()


def make_password_resets(
    settings: Settings,
    database: Database,
    buckets: TokenBuckets,
    credentials: CredentialCache,
    passwords: PasswordHashing,
) -> PasswordResetService:
    """One-time links that set a password."""
    base_url = mail_base_url(settings)
    return PasswordResetService(
        database,
        buckets,
        credentials,
        passwords,
        settings.accounts.password_min_length,
        base_url,
        has_mail=bool(base_url),
    )


def make_credentials(settings: Settings, database: Database) -> CredentialCache:
    """The cache of tokens and sessions, with the lifetimes of the settings."""
    return CredentialCache(
        database,
        cache_sec=settings.accounts.credential_cache_sec,
        session_idle_us=round(settings.accounts.session_idle_hours * 3_600_000_000),
    )
