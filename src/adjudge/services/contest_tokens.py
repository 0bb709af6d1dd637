"""API tokens of the accounts that were made for a contest, for rehearsals with simulated teams.

An organiser already decides on the passwords of these accounts, so tokens give no further access. Accounts that may log
in only from some networks get none, because a token is valid from everywhere; neither do disabled ones, staff of the
contest, and users with another role in the installation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from adjudge.domain.errors import Conflict
from adjudge.domain.ids import IdFactory, new_id
from adjudge.services.login import validate_display_name
from adjudge.services.participants import find_as_organiser
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.accounts import api_tokens
from adjudge.store.accounts.api_tokens import NewApiToken
from adjudge.store.contests import accounts
from adjudge.store.ops import audit_log

_ALL: Final = 1_000_000
_HOUR_US: Final = 3_600_000_000


@dataclass(frozen=True, slots=True)
class ContestAccountToken:
    """A token of an account; the secret is shown once."""

    username: str
    participant: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ContestTokenService:
    """Creates tokens for the accounts of a contest."""

    database: Database
    new_id: IdFactory = new_id

    async def create_tokens(
        self, viewer: Viewer, contest: str, *, name: str, expires_in_hours: float
    ) -> Sequence[ContestAccountToken]:
        """Create a token for each account that was made for a participant of the contest, by user name."""
        token_name, ttl_us = validate_display_name(name) or "token", round(expires_in_hours * _HOUR_US)

        async def operation(tx: Tx) -> Sequence[ContestAccountToken]:
            view = await find_as_organiser(tx, viewer, contest)
            if view.contest.settings.address_ranges:
                raise Conflict("address_ranges: tokens would be valid outside the networks of the contest; clear them.")
            found = [
                item
                for item in await accounts.page(tx, view.contest.id, limit=_ALL)
                if item.participant_code is not None
                and not (item.has_role or item.has_site_role)
                and not item.address_ranges
                and item.disabled_at is None
            ]
            made = [
                NewApiToken(self.new_id(), item.user_id, token_name, api_tokens.new_secret(), ttl_us=ttl_us)
                for item in found
            ]
            await api_tokens.insert_many(tx, made)
            await audit_log.record(
                tx,
                actor=viewer.id,
                action="contest.create_tokens",
                object_kind="contest",
                objects={view.contest.id: {"tokens": len(made)}},
                reason="",
            )
            return [
                ContestAccountToken(account.user_name, account.participant_code or "", token.secret)
                for account, token in zip(found, made, strict=True)
            ]

        return await self.database.transact(operation)
