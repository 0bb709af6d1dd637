"""One-time links that set a new password. Only the digest of a link's token is stored."""

from __future__ import annotations

import secrets
from typing import Final

from adjudge.store.accounts.api_tokens import digest_secret
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement

_PREFIX: Final = "rst_"
_KEPT_US: Final = 30 * 86_400 * 1_000_000

INSERT = Statement(
    "password_resets.insert",
    "Insert a one-time link with the digest of its token.",
    """
    INSERT INTO password_resets (id, user_id, token_hash, created_at, expires_at)
    VALUES (:id, :user_id, :token_hash, {now}, {now} + CAST(:ttl_us AS bigint))
    """,
)
FIND = Statement(
    "password_resets.find",
    "Find the user of a valid link.",
    """
    SELECT user_id FROM password_resets WHERE token_hash = :token_hash AND used_at IS NULL AND expires_at > {now}
    """,
)
USE = Statement(
    "password_resets.use",
    "Use a valid link once; later links of the user become invalid, too.",
    """
    UPDATE password_resets SET used_at = {now}
    WHERE user_id = (
        SELECT user_id FROM password_resets WHERE token_hash = :token_hash AND used_at IS NULL AND expires_at > {now})
      AND used_at IS NULL
    RETURNING user_id
    """,
)
DELETE_OLD = Statement(
    "password_resets.delete_old",
    "Delete links that expired long ago.",
    f"""
    DELETE FROM password_resets WHERE id IN (
        SELECT id FROM password_resets WHERE expires_at < {{now}} - {_KEPT_US} LIMIT :limit)
    """,
)


def new_token() -> str:
    return _PREFIX + secrets.token_urlsafe(32)


async def insert(tx: Tx, reset_id: str, user_id: str, token: str, *, ttl_sec: int) -> None:
    """Insert a one-time link."""
    digest = digest_secret(token)
    await tx.execute(INSERT, id=reset_id, user_id=user_id, token_hash=digest, ttl_us=ttl_sec * 1_000_000)


async def find_user_id(tx: Tx, token: str) -> str | None:
    """The user of a valid link."""
    row = await fetch_one(tx, FIND, token_hash=digest_secret(token))
    return None if row is None else str(row["user_id"])


async def use(tx: Tx, token: str) -> str | None:
    """Use a link; return its user, or None if it is used, expired or unknown."""
    rows = await tx.fetch(USE, token_hash=digest_secret(token))
    return str(rows[0]["user_id"]) if rows else None


async def delete_old(tx: Tx, *, limit: int = 500) -> int:
    """Delete links that expired long ago; return how many."""
    return await tx.execute(DELETE_OLD, limit=limit)
