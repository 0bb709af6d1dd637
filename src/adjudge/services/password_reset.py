"""Password resets by one-time links: requested by users by mail, or created by admins."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from math import ceil
from typing import Final

from adjudge.cache.token_buckets import BucketRequest, TokenBuckets
from adjudge.domain.errors import InvalidInput, RateLimited
from adjudge.domain.ids import IdFactory, new_id, parse_id_or_not_found
from adjudge.observe.logs import get_logger
from adjudge.services.admission import client_network, hashed_bucket_key
from adjudge.services.mail_texts import password_reset_text
from adjudge.services.passwords import PasswordHashing, validate_new_password
from adjudge.services.viewer import CredentialCache
from adjudge.store import Database, Tx
from adjudge.store.accounts import api_tokens, password_resets, sessions, users
from adjudge.store.ops import audit_log, mails
from adjudge.store.ops.mails import NewMail

PATH: Final = "/reset-password"
_MAIL_TTL_SEC: Final = 3_600
_ADMIN_TTL_SEC: Final = 3 * 86_400
_PER_HOUR: Final = 5
_RESPONSE_SEC: Final = 0.3
"""How long a request takes at least; more than the transaction for a known user does."""

log = get_logger(__name__)


class ResetLinkInvalid(InvalidInput):
    """The link is used, expired or unknown: request a new one."""

    code = "RESET_LINK_INVALID"


@dataclass(frozen=True, slots=True)
class PasswordResetService:
    """Creates and uses one-time links."""

    database: Database
    buckets: TokenBuckets
    credentials: CredentialCache
    passwords: PasswordHashing
    password_min_length: int
    public_url: str
    """The base of links in mails. Never taken from a request: its Host header could send the token elsewhere."""
    has_mail: bool
    new_id: IdFactory = new_id

    @property
    def is_offered(self) -> bool:
        """Whether users can request a link by mail."""
        return self.has_mail and bool(self.public_url)

    async def request(self, who: str, address: str) -> None:
        """Send a link to the user with this name or address.

        An unknown one cannot be distinguished from a known one: each response takes the same time.
        """
        given = who.strip()
        if not given:
            raise InvalidInput("who: give your username or e-mail address.", field="who")
        if not self.is_offered:
            raise InvalidInput("Password resets by mail are not set up here; ask an admin for a link.")
        await self._limit(given, address)
        began = time.monotonic()
        await self._send_link(given)
        await asyncio.sleep(max(0.0, _RESPONSE_SEC - (time.monotonic() - began)))

    async def _send_link(self, given: str) -> None:
        user = await self.database.read(lambda tx: users.find_for_reset(tx, given))
        if user is None or user.email is None:
            log.info("password_reset_skipped")
            return
        token, recipient = password_resets.new_token(), user.email
        subject, body = password_reset_text(user.name, f"{self.public_url}{PATH}?token={token}")

        async def create(tx: Tx) -> None:
            await password_resets.insert(tx, self.new_id(), user.id, token, ttl_sec=_MAIL_TTL_SEC)
            await mails.enqueue(tx, [NewMail(recipient, subject, body)], new_id=self.new_id)

        await self.database.transact(create)
        log.info("password_reset_requested", user_id=user.id)

    async def create_link(self, actor: str, user_id: str, *, reason: str) -> str:
        """Create a link for a user, valid for three days; return its path, which is shown once."""
        known, token = parse_id_or_not_found(user_id, "user"), password_resets.new_token()

        async def create(tx: Tx) -> None:
            await users.find(tx, known)
            await password_resets.insert(tx, self.new_id(), known, token, ttl_sec=_ADMIN_TTL_SEC)
            await audit_log.record(
                tx, actor=actor, action="create_reset_link", object_kind="user", objects=[known], reason=reason
            )

        await self.database.transact(create)
        return f"{PATH}?token={token}"

    async def check(self, token: str) -> None:
        """Refuse a link that cannot be used."""
        if await self.database.read(lambda tx: password_resets.find_user_id(tx, token)) is None:
            raise ResetLinkInvalid

    async def reset(self, token: str, password: str) -> None:
        """Set the password, and end all sessions and tokens of the user. The link is used up by that alone."""
        user_id = await self.database.read(lambda tx: password_resets.find_user_id(tx, token))
        if user_id is None:
            raise ResetLinkInvalid
        user = await self.database.read(lambda tx: users.find(tx, user_id))
        validate_new_password(password, name=user.name, min_length=self.password_min_length)
        password_hash = await self.passwords.hash(password)

        async def change(tx: Tx) -> None:
            if await password_resets.use(tx, token) is None:
                raise ResetLinkInvalid
            await users.update_password(tx, user_id, password_hash, must_change=False)
            ended = {
                "sessions_ended": await sessions.revoke_others(tx, user_id),
                "tokens_ended": await api_tokens.revoke_all(tx, user_id),
            }
            await audit_log.record(
                tx,
                actor=user_id,
                action="reset_password_by_link",
                object_kind="user",
                objects={user_id: ended},
                reason="one-time link",
            )

        await self.database.transact(change)
        self.credentials.invalidate_user(user_id)

    async def _limit(self, who: str, address: str) -> None:
        keys = {
            f"reset:{hashed_bucket_key(who.lower())}": _PER_HOUR,
            f"reset:from:{hashed_bucket_key(client_network(address))}": 10 * _PER_HOUR,
        }
        wants = [BucketRequest(key, per_hour / 3_600, float(per_hour)) for key, per_hour in keys.items()]
        wait_sec = max(await self.buckets.take_many(wants))
        if wait_sec > 0:
            raise RateLimited("Too many requests for password resets: retry later.", retry_after_sec=ceil(wait_sec))
