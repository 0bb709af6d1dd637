"""Browser sessions. Only the digest of a session's secret is stored.

A session ends after its idle timeout, after its maximum lifetime, when it is revoked, or when its user is disabled,
whichever comes first.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from adjudge.domain.errors import NotFound
from adjudge.domain.permissions import ALL_SCOPES
from adjudge.store.accounts.api_tokens import Principal, digest_secret
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.rows import column_values
from adjudge.store.engine.statement import Statement

_STALE_US = 60_000_000


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to be created. ``secret`` is sent as a cookie and never stored."""

    id: str
    user_id: str
    secret: str
    idle_timeout_us: int
    ttl_us: int
    address: str | None = None
    user_agent: str | None = None


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as its owner may see it."""

    id: str
    address: str | None
    user_agent: str | None
    created_at: int
    seen_at: int
    expires_at: int


_PRINCIPAL_COLUMNS = {
    "user_id": "users.id",
    "credential_id": "sessions.id",
    "scopes": f"'[\"{ALL_SCOPES}\"]'",
    "expires_in_us": "CASE WHEN sessions.idle_until < sessions.expires_at THEN sessions.idle_until "
    "ELSE sessions.expires_at END - {now}",
}

INSERT = Statement(
    "sessions.insert",
    "Insert a session with the digest of its secret.",
    """
    INSERT INTO sessions (id, user_id, token_hash, address, user_agent, created_at, seen_at, idle_until, expires_at)
    VALUES (:id, :user_id, :token_hash, :address, :user_agent, {now}, {now}, {now} + CAST(:idle_timeout_us AS bigint),
            {now} + CAST(:ttl_us AS bigint))
    """,
)

SELECT_PRINCIPAL = Statement(
    "sessions.select_principal",
    "Find the user of a valid session.",
    """
    SELECT {columns:users} FROM sessions JOIN users ON users.id = sessions.user_id
    WHERE sessions.token_hash = :token_hash AND sessions.revoked_at IS NULL AND users.disabled_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM contest_accounts WHERE contest_accounts.user_id = users.id
                      AND temporary AND (contest_accounts.disabled_at IS NOT NULL
                                     OR contest_accounts.expires_at <= {now}))
      AND sessions.idle_until > {now} AND sessions.expires_at > {now}
    """,
    row=Principal,
    columns={**_PRINCIPAL_COLUMNS, "needs_touch": "sessions.seen_at < {now} - CAST(:stale_us AS bigint)"},
)

SELECT_VALID = Statement(
    "sessions.select_valid",
    "Find which of the given sessions are valid, with their users.",
    """
    SELECT {columns:users} FROM {given} JOIN sessions ON sessions.id = given_id
    JOIN users ON users.id = sessions.user_id
    WHERE sessions.revoked_at IS NULL AND users.disabled_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM contest_accounts WHERE contest_accounts.user_id = users.id
                      AND temporary AND (contest_accounts.disabled_at IS NOT NULL
                                     OR contest_accounts.expires_at <= {now}))
      AND sessions.idle_until > {now} AND sessions.expires_at > {now}
    """,
    input_columns={"given_id": "text"},
    row=Principal,
    columns={**_PRINCIPAL_COLUMNS, "needs_touch": "FALSE"},
)

TOUCH = Statement(
    "sessions.touch",
    "Extend a session's idle timeout.",
    "UPDATE sessions SET seen_at = {now}, idle_until = {now} + CAST(:idle_us AS bigint) WHERE id = :id",
)

SELECT_BY_USER = Statement(
    "sessions.select_by_user",
    "List a user's valid sessions, newest first.",
    """
    SELECT {columns} FROM sessions
    WHERE user_id = :user_id AND revoked_at IS NULL AND idle_until > {now} AND expires_at > {now} ORDER BY id DESC
    """,
    row=SessionRow,
)

SELECT_AGE = Statement(
    "sessions.select_age",
    "Read how long ago a session was opened.",
    "SELECT {now} - created_at AS age_us FROM sessions WHERE id = :id",
)

REVOKE = Statement(
    "sessions.revoke",
    "Revoke one of a user's sessions.",
    "UPDATE sessions SET revoked_at = {now} WHERE id = :id AND user_id = :user_id AND revoked_at IS NULL",
)

REVOKE_OTHERS = Statement(
    "sessions.revoke_others",
    "Revoke all of a user's sessions except one.",
    "UPDATE sessions SET revoked_at = {now} WHERE user_id = :user_id AND id <> :except_id AND revoked_at IS NULL",
)

DELETE_EXPIRED = Statement(
    "sessions.delete_expired",
    "Delete sessions expired before the retention period.",
    """
    DELETE FROM sessions WHERE id IN (
        SELECT id FROM sessions WHERE expires_at < {now} - CAST(:older_than_us AS bigint) LIMIT :limit)
    """,
)


async def insert(tx: Tx, session: NewSession) -> None:
    await tx.execute(INSERT, token_hash=digest_secret(session.secret), **column_values(session))


async def delete_expired(tx: Tx, *, older_than_ms: int, limit: int = 500) -> int:
    """Delete sessions that expired ``older_than_ms`` ago; return their number."""
    return await tx.execute(DELETE_EXPIRED, older_than_us=older_than_ms * 1_000, limit=limit)


async def find_principal(tx: Tx, secret: str) -> Principal | None:
    """The principal of ``secret``; None if the session is unknown or has ended."""
    return await fetch_one(tx, SELECT_PRINCIPAL, token_hash=digest_secret(secret), stale_us=_STALE_US)


async def find_valid(tx: Tx, session_ids: Collection[str]) -> list[Principal]:
    return await tx.fetch(SELECT_VALID, [(session_id,) for session_id in session_ids])


async def touch(tx: Tx, session_id: str, *, idle_us: int) -> None:
    """Extend the idle timeout of a session."""
    await tx.execute(TOUCH, id=session_id, idle_us=idle_us)


async def list_by_user(tx: Tx, user_id: str) -> list[SessionRow]:
    """List a user's valid sessions."""
    return await tx.fetch(SELECT_BY_USER, user_id=user_id)


async def find_age_us(tx: Tx, session_id: str) -> int | None:
    """How long ago a session was opened by a login; None if there is no such session."""
    row = await fetch_one(tx, SELECT_AGE, id=session_id)
    return None if row is None else int(row["age_us"])


async def revoke(tx: Tx, user_id: str, session_id: str) -> None:
    """Revoke one session; the session of another user is NotFound."""
    if not await tx.execute(REVOKE, id=session_id, user_id=user_id):
        raise NotFound("session", session_id)


async def revoke_others(tx: Tx, user_id: str, *, except_id: str = "") -> int:
    """Revoke all sessions of a user except one; return their number."""
    return await tx.execute(REVOKE_OTHERS, user_id=user_id, except_id=except_id)
