"""Invitations: codes with which an account can be created. Only the digest of a code is stored."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from adjudge.domain.errors import NotFound
from adjudge.domain.permissions import Role
from adjudge.store.accounts.api_tokens import digest_secret
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.rows import column_values
from adjudge.store.engine.statement import Statement

PREFIX = "inv_"


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """An invitation to be created; ``code`` is shown once and never stored."""

    id: str
    code: str
    created_by: str
    role: Role = Role.CONTESTANT
    note: str | None = None
    max_uses: int = 1
    ttl_us: int | None = None


@dataclass(frozen=True, slots=True)
class InvitationRow:
    """An invitation as admins see it."""

    id: str
    role: str
    note: str | None
    max_uses: int
    uses: int
    created_by: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    @property
    def revoked(self) -> bool:
        return self.revoked_at is not None


INSERT = Statement(
    "invitations.insert",
    "Insert an invitation with the digest of its code.",
    """
    INSERT INTO invitations (id, code_hash, role, note, max_uses, created_by, created_at, expires_at)
    VALUES (:id, :code_hash, :role, :note, :max_uses, :created_by, {now}, {now} + CAST(:ttl_us AS bigint))
    """,
)

REDEEM = Statement(
    "invitations.redeem",
    "Use a valid code once; the last use is granted to one caller only.",
    """
    UPDATE invitations SET uses = uses + 1
    WHERE code_hash = :code_hash AND revoked_at IS NULL AND uses < max_uses
      AND (expires_at IS NULL OR expires_at > {now})
    RETURNING id, role
    """,
)

PAGE = Statement(
    "invitations.page",
    "List invitations, newest first, keyset-paginated.",
    """
    SELECT {columns} FROM invitations WHERE id < :before ORDER BY id DESC LIMIT :limit
    """,
    row=InvitationRow,
)

REVOKE = Statement(
    "invitations.revoke",
    "Revoke an invitation.",
    "UPDATE invitations SET revoked_at = {now} WHERE id = :id AND revoked_at IS NULL",
)


def new_code() -> str:
    return PREFIX + secrets.token_urlsafe(18)


async def insert(tx: Tx, invitation: NewInvitation) -> None:
    await tx.execute(INSERT, code_hash=digest_secret(invitation.code), **column_values(invitation))


async def redeem(tx: Tx, code: str) -> tuple[str, Role] | None:
    """Use a code once; return the invitation's id and its role, or None if the code is not valid."""
    row = await fetch_one(tx, REDEEM, code_hash=digest_secret(code))
    return None if row is None else (row["id"], Role(row["role"]))


async def page(tx: Tx, *, before: str, limit: int) -> list[InvitationRow]:
    """List invitations, newest first; ``before`` is the last id of the previous page."""
    return await tx.fetch(PAGE, before=before, limit=limit)


async def revoke(tx: Tx, invitation_id: str) -> None:
    if not await tx.execute(REVOKE, id=invitation_id):
        raise NotFound("invitation", invitation_id)
