"""Login, logout, registration. Each success opens a session."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

from adjudge.cache.token_buckets import BucketRequest, TokenBuckets
from adjudge.domain.errors import Forbidden, InvalidInput, LoginFailed, RateLimited
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.ip_addresses import is_in_networks
from adjudge.domain.permissions import Role, parse_user_name
from adjudge.observe.logs import get_logger
from adjudge.services.admission import client_network, hashed_bucket_key
from adjudge.services.contest_addresses import find_refusing_contest
from adjudge.services.passwords import PasswordHashing, validate_new_password
from adjudge.services.viewer import CredentialCache, Viewer
from adjudge.settings.sections import AccountsSettings
from adjudge.store import Database, Tx
from adjudge.store.accounts import invitations, sessions, users
from adjudge.store.accounts.users import NewUser, UserRow
from adjudge.store.contests import accounts
from adjudge.store.ops import audit_log

if TYPE_CHECKING:  # httpx is imported only where OpenID Connect is used
    from adjudge.services.oidc import ExternalIdentity, OidcProvider

_HOUR_US: Final = 3_600_000_000
_MAX_AGENT_CHARS: Final = 200
_EMAIL: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
"""One plain address, as HTML defines it: no list, no name, no comment, which mail headers would allow."""
_NO_STAFF: Final = frozenset({Role.CONTESTANT, Role.SERVICE, Role.SETTER})
"""Roles of users who have no role in the contests of others; judges and admins log in from anywhere."""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """Address and user agent of a client, for the list of sessions."""

    address: str = ""
    user_agent: str = ""


@dataclass(frozen=True, slots=True)
class NewLogin:
    """A new session. ``secret`` is stored only in the cookie."""

    user: UserRow
    session_id: str
    secret: str
    max_age_sec: int


@dataclass(frozen=True, slots=True)
class Registration:
    """The data of a registration."""

    name: str
    password: str
    email: str | None = None
    display_name: str | None = None
    invitation: str | None = None


@dataclass(frozen=True, slots=True)
class LoginService:
    """Login, logout and registration; each successful one opens a session."""

    database: Database
    settings: AccountsSettings
    buckets: TokenBuckets
    credentials: CredentialCache
    passwords: PasswordHashing
    new_id: IdFactory = new_id
    oidc: OidcProvider | None = None
    """The identity provider for single sign-on, if one is configured."""

    async def login(self, name: str, password: str, origin: ClientInfo) -> NewLogin:
        """Check the password and open a session."""
        user = await self.check_password(name, password, origin)
        return await self.open_session(user, origin)

    async def check_password(self, name: str, password: str, origin: ClientInfo) -> UserRow:
        """Find the user; an unknown name cannot be distinguished from a wrong password, not even by response time."""
        await self._limit_login_attempts(name, origin.address)
        known = None
        try:
            spelled = parse_user_name(name)
        except InvalidInput:
            spelled = ""
        if spelled:
            known = await self.database.read(lambda tx: users.find_with_password_by_name(tx, spelled))
        stored = known.password_hash if known else None
        checked = await self.passwords.check(stored, password)
        if known is None or stored is None or not checked.right or known.user.disabled_at is not None:
            log.info("login_refused", user_id=known.user.id if known else None)
            raise LoginFailed
        await self.check_contests(known.user, origin.address)
        if checked.fresh_hash is not None:
            fresh, user_id = checked.fresh_hash, known.user.id
            await self.database.transact(lambda tx: users.update_password_hash(tx, user_id, stale=stored, fresh=fresh))
        return known.user

    async def check_contests(self, user: UserRow, address: str) -> None:
        """Refuse an account that was made for a contest after the contest, and participants from other networks."""
        for rule in await self.database.read(lambda tx: accounts.login_rules(tx, user.id)):
            if rule.has_expired:
                raise LoginFailed("This account was made for a contest that has ended.")
            if rule.is_disabled:
                raise LoginFailed("The organisers of the contest have disabled this account; ask them.")
            if rule.address_ranges and not is_in_networks(address, rule.address_ranges):
                log.info("login_refused", user_id=user.id, reason="address of the account")
                raise Forbidden("This account can log in only from the network of its contest; ask an organiser.")
        if user.role not in _NO_STAFF:
            return
        contest = await self.database.read(lambda tx: find_refusing_contest(tx, user.id, address))
        if contest is not None:
            log.info("login_refused", user_id=user.id, contest_id=contest.id, reason="address of the contest")
            raise Forbidden(
                f"You take part in the contest {contest.slug!r}, which runs now: log in from its network, "
                "or ask an organiser.",
                contest=contest.slug,
            )

    async def open_session(self, user: UserRow, origin: ClientInfo) -> NewLogin:
        accounts, secret = self.settings, secrets.token_urlsafe(32)
        session = sessions.NewSession(
            id=self.new_id(),
            user_id=user.id,
            secret=secret,
            idle_timeout_us=round(accounts.session_idle_hours * _HOUR_US),
            ttl_us=round(accounts.session_max_hours * _HOUR_US),
            address=origin.address or None,
            user_agent=_printable(origin.user_agent)[:_MAX_AGENT_CHARS] or None,
        )
        await self.database.transact(lambda tx: sessions.insert(tx, session))
        log.info("session_opened", user_id=user.id)
        return NewLogin(user, session.id, secret, round(accounts.session_max_hours * 3600))

    async def logout(self, viewer: Viewer) -> None:
        """Revoke the session of the request."""
        if viewer.credential_id is not None and viewer.csrf is not None:
            user_id, session_id = viewer.id, viewer.credential_id
            await self.database.transact(lambda tx: sessions.revoke(tx, user_id, session_id))
            self.credentials.invalidate_user(user_id)

    async def register(self, account: Registration, origin: ClientInfo) -> NewLogin:
        """Create an account, if registration is allowed, and open its first session."""
        mode = self.settings.registration
        if mode == "closed":
            raise Forbidden("Registration is closed; ask an admin for an account.")
        if mode == "invitation" and not account.invitation:
            raise Forbidden("Registration requires an invitation; ask an admin for one.", field="invitation")
        name = parse_user_name(account.name)
        await self._limit_login_attempts(name, origin.address)
        validate_new_password(account.password, name=name, min_length=self.settings.password_min_length)
        password_hash = await self.passwords.hash(account.password)
        user_id = self.new_id()

        async def create(tx: Tx) -> UserRow:
            role = await _invited_role(tx, account.invitation)
            new = NewUser(
                user_id,
                name,
                validate_email(account.email),
                password_hash,
                role,
                validate_display_name(account.display_name),
            )
            return await insert_user(tx, new, actor=user_id, reason="registered")

        return await self.open_session(await self.database.transact(create), origin)

    async def login_with_oidc(self, claims: ExternalIdentity, origin: ClientInfo) -> NewLogin:
        """Open a session for a user of the identity provider; create the account first if the settings allow it."""

        async def find(tx: Tx) -> UserRow | None:
            user_id = await users.find_user_by_identity(tx, issuer=claims.issuer, subject=claims.subject)
            return None if user_id is None else await users.find(tx, user_id)

        user = await self.database.read(find)
        if user is None:
            if not self.settings.oidc_registration:
                raise Forbidden("No account for this identity; ask an admin to create one.")
            user = await self._register_oidc_user(claims)
        if user.disabled_at is not None:
            raise LoginFailed("This account is disabled; ask an admin.")
        await self.check_contests(user, origin.address)
        return await self.open_session(user, origin)

    async def _register_oidc_user(self, claims: ExternalIdentity) -> UserRow:
        """Create an account with the name from the provider, with a suffix if that name is taken."""
        user_id = self.new_id()

        async def create(tx: Tx) -> UserRow:
            name = await _unused_name(tx, claims.name, user_id)
            new = NewUser(user_id, name, display_name=validate_display_name(claims.display_name))
            user = await insert_user(tx, new, actor=user_id, reason="first login")
            await users.link_identity(tx, issuer=claims.issuer, subject=claims.subject, user_id=user_id)
            return user

        return await self.database.transact(create)

    async def _limit_login_attempts(self, name: str, address: str) -> None:
        """Limit guessing: per name and address, per address, and with a higher limit per name."""
        per_min = self.settings.login_per_min
        who, where = hashed_bucket_key(name.strip().lower()), hashed_bucket_key(client_network(address))
        shares = {f"login:{who}:{where}": 1, f"login:from:{where}": 3, f"login:as:{who}": 5}
        wants = [BucketRequest(key, per_min * share / 60, max(1.0, per_min * share)) for key, share in shares.items()]
        wait_sec = max(await self.buckets.take_many(wants))
        if wait_sec > 0:
            log.warning("login_throttled")
            raise RateLimited("Too many login attempts: retry later.", retry_after_sec=ceil(wait_sec))


async def _unused_name(tx: Tx, wanted: str, user_id: str) -> str:
    kept = "".join(letter for letter in wanted.lower().partition("@")[0] if letter.isascii() and letter.isalnum())
    base, tail = kept[:24] or "user", user_id[-6:]
    for name in (base, f"{base}-{tail}"):
        if len(name) > 1 and await users.find_with_password_by_name(tx, name) is None:
            return name
    return f"user-{user_id[-12:]}"


async def insert_user(tx: Tx, user: NewUser, *, actor: str, reason: str) -> UserRow:
    """Create a user and record it in the audit log."""
    await users.insert(tx, user)
    details = {user.id: {"name": user.name, "role": str(user.role)}}
    await audit_log.record(tx, actor=actor, action="create", object_kind="user", objects=details, reason=reason)
    return await users.find(tx, user.id)


async def _invited_role(tx: Tx, code: str | None) -> Role:
    """The role of an invitation; without one, the role of open registration."""
    if not code:
        return Role.CONTESTANT
    used = await invitations.redeem(tx, code.strip())
    if used is None:
        raise InvalidInput("invitation: unknown, used up, expired or revoked.", field="invitation")
    return used[1]


def validate_email(given: str | None) -> str | None:
    """Return a valid email address, or None if it is empty."""
    address = (given or "").strip()
    if not address:
        return None
    if len(address) > 254 or not _EMAIL.fullmatch(address):
        raise InvalidInput("email: not a valid email address.", field="email")
    return address


def validate_display_name(given: str | None) -> str | None:
    """Return the display name without unprintable characters, or None if it is empty."""
    return _printable(given or "").strip()[:100] or None


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())
