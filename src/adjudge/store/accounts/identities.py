"""Identities: who somebody is to another provider. Issuer and subject together name one person for ever."""

from __future__ import annotations

from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement

FIND = Statement(
    "identities.find",
    "Find the user of an identity provider's subject.",
    "SELECT user_id FROM identities WHERE issuer = :issuer AND subject = :subject",
)

LINK = Statement(
    "identities.link",
    "Link an identity provider's subject to a user.",
    "INSERT INTO identities (issuer, subject, user_id, created_at) VALUES (:issuer, :subject, :user_id, {now})",
)


async def find_user_by_identity(tx: Tx, *, issuer: str, subject: str) -> str | None:
    """The user whom the provider means."""
    row = await fetch_one(tx, FIND, issuer=issuer, subject=subject)
    return None if row is None else str(row["user_id"])


async def link_identity(tx: Tx, *, issuer: str, subject: str, user_id: str) -> None:
    """Remember whom the provider means."""
    await tx.execute(LINK, issuer=issuer, subject=subject, user_id=user_id)
