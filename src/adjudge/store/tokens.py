"""API tokens: only their digests are kept, so that whoever reads the database cannot act for anybody."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass

from adjudge.domain.access import EVERYTHING, Role
from adjudge.store.driver import Tx, first
from adjudge.store.statement import Statement

PREFIX = "adj_"
"""So that a leaked token is recognised for what it is."""

INSERT = Statement(
    "tokens.insert",
    "Remember the digest of a new token.",
    """
    INSERT INTO api_tokens (id, user_id, name, token_hash, scopes, created_at, expires_at)
    VALUES (:id, :user_id, :name, :token_hash, :scopes, {now}, :expires_at)
    """,
)

SELECT_HOLDER = Statement(
    "tokens.select_holder",
    "Find whom a usable token belongs to, and what it may do.",
    """
    SELECT api_tokens.id AS token_id, api_tokens.scopes, users.id AS user_id, users.name, users.role
    FROM api_tokens JOIN users ON users.id = api_tokens.user_id
    WHERE api_tokens.token_hash = :token_hash AND api_tokens.revoked_at IS NULL AND users.disabled_at IS NULL
      AND (api_tokens.expires_at IS NULL OR api_tokens.expires_at > {now})
    """,
)


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token to be remembered. ``secret`` is shown to its owner once and never stored."""

    id: str
    user_id: str
    name: str
    secret: str
    scopes: tuple[str, ...] = (EVERYTHING,)
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class Holder:
    """Whom a token belongs to."""

    user_id: str
    name: str
    role: Role
    token_id: str
    scopes: frozenset[str]


def new_secret() -> str:
    """Make a token that nobody can guess."""
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(secret: str) -> str:
    """What is stored of a token. It has 256 random bits, so a plain digest cannot be searched."""
    return hashlib.sha256(secret.encode()).hexdigest()


async def add(tx: Tx, token: NewToken) -> None:
    """Remember a token."""
    await tx.execute(
        INSERT,
        id=token.id,
        user_id=token.user_id,
        name=token.name,
        token_hash=digest_of(token.secret),
        scopes=json.dumps(list(token.scopes)),
        expires_at=token.expires_at,
    )


async def holder_of(tx: Tx, secret: str) -> Holder | None:
    """Find whom ``secret`` belongs to; nobody if it is unknown, expired, revoked, or its user is disabled."""
    row = await first(tx, SELECT_HOLDER, token_hash=digest_of(secret))
    if row is None:
        return None
    scopes = frozenset(json.loads(row["scopes"]))
    return Holder(row["user_id"], row["name"], Role(row["role"]), row["token_id"], scopes)
