"""API tokens: only their digests are kept, so that whoever reads the database cannot act for anybody."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection
from dataclasses import dataclass

from adjudge.domain.errors import NotFound
from adjudge.domain.permissions import ALL_SCOPES, Role
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Row, Statement

PREFIX = "adj_"
"""So that a leaked token is recognised for what it is."""

_STALE_US = 60_000_000
"""How old the note of a credential's last use may be before it is written again."""

INSERT = Statement(
    "api_tokens.insert",
    "Insert an API token with the digest of its secret.",
    """
    INSERT INTO api_tokens (id, user_id, name, token_hash, scopes, created_at, expires_at)
    VALUES (:id, :user_id, :name, :token_hash, :scopes, {now}, {now} + CAST(:life_us AS bigint))
    """,
)

SELECT_PRINCIPAL = Statement(
    "api_tokens.select_principal",
    "Find the user, scopes and remaining lifetime of a valid token.",
    """
    SELECT api_tokens.id AS token_id, api_tokens.scopes, users.id AS user_id, users.name, users.role,
           users.must_change_password, api_tokens.expires_at - {now} AS left_us,
           (COALESCE(api_tokens.last_used_at, 0) < {now} - CAST(:stale_us AS bigint)) AS is_stale
    FROM api_tokens JOIN users ON users.id = api_tokens.user_id
    WHERE api_tokens.token_hash = :token_hash AND api_tokens.revoked_at IS NULL AND users.disabled_at IS NULL
      AND (api_tokens.expires_at IS NULL OR api_tokens.expires_at > {now})
    """,
)

SELECT_VALID = Statement(
    "api_tokens.select_valid",
    "Find which of the given tokens are valid, with their users and scopes.",
    """
    SELECT api_tokens.id AS token_id, api_tokens.scopes, users.id AS user_id, users.name, users.role,
           users.must_change_password, api_tokens.expires_at - {now} AS left_us, FALSE AS is_stale
    FROM {given} JOIN api_tokens ON api_tokens.id = given_id JOIN users ON users.id = api_tokens.user_id
    WHERE api_tokens.revoked_at IS NULL AND users.disabled_at IS NULL
      AND (api_tokens.expires_at IS NULL OR api_tokens.expires_at > {now})
    """,
    input_columns={"given_id": "text"},
)

TOUCH = Statement(
    "api_tokens.touch", "Record the last use of a token.", "UPDATE api_tokens SET last_used_at = {now} WHERE id = :id"
)

SELECT_BY_USER = Statement(
    "api_tokens.select_by_user",
    "List a user's valid tokens, newest first.",
    """
    SELECT id, name, scopes, created_at, expires_at, last_used_at FROM api_tokens
    WHERE user_id = :user_id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > {now})
    ORDER BY id DESC
    """,
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


@dataclass(frozen=True, slots=True)
class NewApiToken:
    """A token to be remembered. ``secret`` is shown to its owner once and never stored."""

    id: str
    user_id: str
    name: str
    secret: str
    scopes: tuple[str, ...] = (ALL_SCOPES,)
    ttl_us: int | None = None
    """How long it can be used; None for ever."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Whom a credential belongs to: a token, or a session."""

    user_id: str
    name: str
    role: Role
    credential_id: str
    scopes: frozenset[str]
    must_change_password: bool = False
    expires_in_us: int | None = None
    """How long it can still be used; None for ever."""
    needs_touch: bool = False
    """Whether the note of its last use is old enough to be written again."""


@dataclass(frozen=True, slots=True)
class ApiTokenRow:
    """What its owner may see of a token."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created_at: int
    expires_at: int | None
    last_used_at: int | None


def new_secret() -> str:
    """Make a token that nobody can guess."""
    return PREFIX + secrets.token_urlsafe(32)


def digest_secret(secret: str) -> str:
    """What is stored of a secret that we made. It has 256 random bits, so a plain digest cannot be searched."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


async def insert(tx: Tx, token: NewApiToken) -> None:
    """Remember a token."""
    await tx.execute(
        INSERT,
        id=token.id,
        user_id=token.user_id,
        name=token.name,
        token_hash=digest_secret(token.secret),
        scopes=json.dumps(list(token.scopes)),
        life_us=token.ttl_us,
    )


async def find_principal(tx: Tx, secret: str) -> Principal | None:
    """Find whom ``secret`` belongs to; nobody if it is unknown, expired, revoked, or its user is disabled."""
    row = await fetch_one(tx, SELECT_PRINCIPAL, token_hash=digest_secret(secret), stale_us=_STALE_US)
    return None if row is None else _holder(row)


async def find_valid(tx: Tx, token_ids: Collection[str]) -> list[Principal]:
    """The holders of those of the tokens that can still be used."""
    return [_holder(row) for row in await tx.fetch(SELECT_VALID, [(token_id,) for token_id in token_ids])]


def _holder(row: Row) -> Principal:
    return Principal(
        row["user_id"],
        row["name"],
        Role(row["role"]),
        row["token_id"],
        frozenset(json.loads(row["scopes"])),
        bool(row["must_change_password"]),
        row["left_us"],
        bool(row["is_stale"]),
    )


async def touch(tx: Tx, token_id: str) -> None:
    """Note that a token was used."""
    await tx.execute(TOUCH, id=token_id)


async def list_by_user(tx: Tx, user_id: str) -> list[ApiTokenRow]:
    """List what a user can still use."""
    return [_token(row) for row in await tx.fetch(SELECT_BY_USER, user_id=user_id)]


async def revoke(tx: Tx, user_id: str, token_id: str) -> None:
    """End one token; somebody else's is not found."""
    if not await tx.execute(REVOKE, id=token_id, user_id=user_id):
        raise NotFound("token", token_id)


async def revoke_all(tx: Tx, user_id: str, *, except_id: str = "") -> int:
    """End all tokens of a user but one; return how many."""
    return await tx.execute(REVOKE_OTHERS, user_id=user_id, except_id=except_id)


def _token(row: Row) -> ApiTokenRow:
    scopes = tuple(json.loads(row["scopes"]))
    return ApiTokenRow(row["id"], row["name"], scopes, row["created_at"], row["expires_at"], row["last_used_at"])
