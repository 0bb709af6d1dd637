"""API tokens. Only digests are stored, so that read access to the database does not give access to accounts."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from adjudge.domain.errors import NotFound
from adjudge.domain.permissions import ALL_SCOPES, Role
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.rows import column_values
from adjudge.store.engine.statement import Statement

PREFIX = "adj_"
"""Lets secret scanners recognise a leaked token."""

_STALE_US = 60_000_000
"""Age of the recorded last use after which it is written again."""


@dataclass(frozen=True, slots=True)
class NewApiToken:
    """A token to be created. ``secret`` is shown to its owner once and never stored."""

    id: str
    user_id: str
    name: str
    secret: str
    scopes: tuple[str, ...] = (ALL_SCOPES,)
    ttl_us: int | None = None
    """Lifetime; None for a token that does not expire."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The user and the scopes of a valid credential: a token or a session."""

    user_id: str
    name: str
    role: Role
    credential_id: str
    scopes: frozenset[str]
    must_change_password: bool = False
    expires_in_us: int | None = None
    """Remaining lifetime; None for a token that does not expire."""
    needs_touch: bool = False
    """Whether the recorded last use is old enough to be written again."""


@dataclass(frozen=True, slots=True)
class ApiTokenRow:
    """A token as its owner may see it."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created_at: int
    expires_at: int | None
    last_used_at: int | None


_PRINCIPAL_COLUMNS = {
    "user_id": "users.id",
    "credential_id": "api_tokens.id",
    "scopes": "api_tokens.scopes",
    "expires_in_us": "api_tokens.expires_at - {now}",
}

INSERT = Statement(
    "api_tokens.insert",
    "Insert an API token with the digest of its secret.",
    """
    INSERT INTO api_tokens (id, user_id, name, token_hash, scopes, created_at, expires_at)
    VALUES (:id, :user_id, :name, :token_hash, :scopes, {now}, {now} + CAST(:ttl_us AS bigint))
    """,
)

INSERT_MANY = Statement(
    "api_tokens.insert_many",
    "Insert API tokens of several users.",
    """
    INSERT INTO api_tokens (id, user_id, name, token_hash, scopes, created_at, expires_at)
    SELECT given_id, given_user_id, given_name, given_token_hash, given_scopes, {now}, {now} + given_ttl_us
    FROM {given}
    """,
    input_columns={
        "given_id": "text",
        "given_user_id": "text",
        "given_name": "text",
        "given_token_hash": "text",
        "given_scopes": "jsonb",
        "given_ttl_us": "bigint",
    },
)

SELECT_PRINCIPAL = Statement(
    "api_tokens.select_principal",
    "Find the user, scopes and remaining lifetime of a valid token.",
    """
    SELECT {columns:users} FROM api_tokens JOIN users ON users.id = api_tokens.user_id
    WHERE api_tokens.token_hash = :token_hash AND api_tokens.revoked_at IS NULL AND users.disabled_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM contest_accounts WHERE contest_accounts.user_id = users.id
                      AND temporary AND (contest_accounts.disabled_at IS NOT NULL
                                     OR contest_accounts.expires_at <= {now}))
      AND (api_tokens.expires_at IS NULL OR api_tokens.expires_at > {now})
    """,
    row=Principal,
    columns={
        **_PRINCIPAL_COLUMNS,
        "needs_touch": "COALESCE(api_tokens.last_used_at, 0) < {now} - CAST(:stale_us AS bigint)",
    },
)

SELECT_VALID = Statement(
    "api_tokens.select_valid",
    "Find which of the given tokens are valid, with their users and scopes.",
    """
    SELECT {columns:users} FROM {given} JOIN api_tokens ON api_tokens.id = given_id
    JOIN users ON users.id = api_tokens.user_id
    WHERE api_tokens.revoked_at IS NULL AND users.disabled_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM contest_accounts WHERE contest_accounts.user_id = users.id
                      AND temporary AND (contest_accounts.disabled_at IS NOT NULL
                                     OR contest_accounts.expires_at <= {now}))
      AND (api_tokens.expires_at IS NULL OR api_tokens.expires_at > {now})
    """,
    input_columns={"given_id": "text"},
    row=Principal,
    columns={**_PRINCIPAL_COLUMNS, "needs_touch": "FALSE"},
)

TOUCH = Statement(
    "api_tokens.touch", "Record the last use of a token.", "UPDATE api_tokens SET last_used_at = {now} WHERE id = :id"
)

SELECT_BY_USER = Statement(
    "api_tokens.select_by_user",
    "List a user's valid tokens, newest first.",
    """
    SELECT {columns} FROM api_tokens
    WHERE user_id = :user_id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > {now})
    ORDER BY id DESC
    """,
    row=ApiTokenRow,
)

REVOKE = Statement(
    "api_tokens.revoke",
    "Revoke one of a user's tokens.",
    "UPDATE api_tokens SET revoked_at = {now} WHERE id = :id AND user_id = :user_id AND revoked_at IS NULL",
)

REVOKE_OTHERS = Statement(
    "api_tokens.revoke_others",
    "Revoke all of a user's tokens except one.",
    "UPDATE api_tokens SET revoked_at = {now} WHERE user_id = :user_id AND id <> :except_id AND revoked_at IS NULL",
)


DELETE_ENDED = Statement(
    "api_tokens.delete_ended",
    "Delete API tokens that expired or were revoked before the retention period.",
    """
    DELETE FROM api_tokens WHERE id IN (
        SELECT id FROM api_tokens
        WHERE expires_at < {now} - CAST(:older_than_us AS bigint) OR revoked_at < {now} - CAST(:older_than_us AS bigint)
        LIMIT :limit)
    """,
)


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def digest_secret(secret: str) -> str:
    """The stored digest of a secret. A plain hash is enough, because the secret has 256 random bits."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


async def insert(tx: Tx, token: NewApiToken) -> None:
    await tx.execute(INSERT, token_hash=digest_secret(token.secret), **column_values(token))


async def insert_many(tx: Tx, tokens: Sequence[NewApiToken]) -> None:
    """Insert tokens of several users in one statement."""
    rows = [
        (item.id, item.user_id, item.name, digest_secret(item.secret), json.dumps(item.scopes), item.ttl_us)
        for item in tokens
    ]
    if rows:
        await tx.execute(INSERT_MANY, rows)


async def delete_ended(tx: Tx, *, older_than_ms: int, limit: int = 500) -> int:
    """Delete tokens that expired or were revoked long ago; return their number."""
    return await tx.execute(DELETE_ENDED, older_than_us=older_than_ms * 1_000, limit=limit)


async def find_principal(tx: Tx, secret: str) -> Principal | None:
    """The principal of ``secret``; None if it is unknown, expired, revoked, or its user is disabled."""
    return await fetch_one(tx, SELECT_PRINCIPAL, token_hash=digest_secret(secret), stale_us=_STALE_US)


async def find_valid(tx: Tx, token_ids: Collection[str]) -> list[Principal]:
    return await tx.fetch(SELECT_VALID, [(token_id,) for token_id in token_ids])


async def touch(tx: Tx, token_id: str) -> None:
    """Record the use of a token."""
    await tx.execute(TOUCH, id=token_id)


async def list_by_user(tx: Tx, user_id: str) -> list[ApiTokenRow]:
    """List a user's valid tokens."""
    return await tx.fetch(SELECT_BY_USER, user_id=user_id)


async def revoke(tx: Tx, user_id: str, token_id: str) -> None:
    """Revoke one token; the token of another user is NotFound."""
    if not await tx.execute(REVOKE, id=token_id, user_id=user_id):
        raise NotFound("token", token_id)


async def revoke_all(tx: Tx, user_id: str, *, except_id: str = "") -> int:
    """Revoke all tokens of a user except one; return their number."""
    return await tx.execute(REVOKE_OTHERS, user_id=user_id, except_id=except_id)
